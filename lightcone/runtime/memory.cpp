#include "lightcone/runtime/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <utility>

#include "lightcone/core/error.h"

namespace lc {

Memory::Memory(std::size_t bytes) : bytes_(std::max<std::size_t>(bytes, 1)) {
  void* p = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) throw Error("memory", cat("the system has no ", bytes_, " bytes to give"));
#ifdef MADV_HUGEPAGE
  if (bytes_ >= (std::size_t{8} << 20)) ::madvise(p, bytes_, MADV_HUGEPAGE);
#endif
  data_ = static_cast<std::byte*>(p);
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
