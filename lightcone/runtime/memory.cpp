#include "lightcone/runtime/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "lightcone/core/error.h"

namespace lc {

namespace {

// A large block begins where a huge page can: in small ones a stream of weights would wait for the page tables.
constexpr std::size_t kHuge = 2 << 20;

std::byte* pages(std::size_t bytes) {
  void* p = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) throw Error("memory", cat("the system has no ", bytes, " bytes to give"));
  return static_cast<std::byte*>(p);
}

std::byte* huge_pages(std::size_t bytes) {
  std::byte* p = pages(bytes + kHuge);
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t before = -reinterpret_cast<std::uintptr_t>(p) % kHuge;
  const std::size_t used = before + (bytes + page - 1) / page * page;
  if (before) ::munmap(p, before);
  if (used < bytes + kHuge) ::munmap(p + used, bytes + kHuge - used);
#ifdef MADV_HUGEPAGE
  ::madvise(p + before, bytes, MADV_HUGEPAGE);
#endif
  return p + before;
}

}  // namespace

Memory::Memory(std::size_t bytes) : bytes_(std::max<std::size_t>(bytes, 1)) {
  data_ = bytes_ >= kHuge ? huge_pages(bytes_) : pages(bytes_);
}
Memory::Memory(Memory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
Memory& Memory::operator=(Memory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}
Memory::~Memory() {
  if (data_) ::munmap(data_, bytes_);
}

}  // namespace lc
