#include "lightcone/device/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "lightcone/base/error.h"

namespace lc {

namespace {

// A large block is aligned to huge pages; with small pages, streaming weights would wait for page table walks.
constexpr std::size_t kHuge = 2 << 20;
// A smaller range is committed at once, so runs never have to commit more.
constexpr std::size_t kAtOnce = 32 << 20;
constexpr std::size_t kMost = std::size_t{1} << 47;  // no processor has more addresses for a process

std::byte* map(std::size_t bytes, int access) {
  if (bytes > 2 * kMost) return nullptr;
  void* p = ::mmap(nullptr, bytes, access, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? nullptr : static_cast<std::byte*>(p);
}

// Returns null if the system has no such block.
std::byte* pages(std::size_t bytes, int access) {
  if (bytes < kHuge) return map(bytes, access);
  std::byte* const p = map(bytes + kHuge, access);
  if (!p) return nullptr;
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

Memory::Memory(std::size_t bytes, Pages kind) : bytes_(std::max<std::size_t>(bytes, 1)) {
  data_ = kind == Pages::Huge ? pages(bytes_, PROT_READ | PROT_WRITE) : map(bytes_, PROT_READ | PROT_WRITE);
  if (!data_) throw Error("memory", str_cat("the system has no ", bytes, " bytes to give"));
#ifdef MADV_NOHUGEPAGE
  if (kind == Pages::Small) ::madvise(data_, bytes_, MADV_NOHUGEPAGE);
#endif
}
void Memory::zero(std::size_t at, std::size_t bytes) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t end = at + bytes, first = std::min((at + page - 1) / page * page, end);
  const std::size_t last = std::max(end / page * page, first);
  const bool given = last > first && ::madvise(data_ + first, last - first, MADV_DONTNEED) == 0;
  std::memset(data_ + at, 0, (given ? first : end) - at);
  if (given) std::memset(data_ + last, 0, end - last);
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

Reserved::Reserved(std::size_t bytes) : bytes_(std::max<std::size_t>(bytes, 1)) {
  if (bytes_ < kAtOnce) {
    data_ = pages(bytes_, PROT_READ | PROT_WRITE);
    committed_ = bytes_;
    return;
  }
  if (bytes_ > kMost) return;
  granules_.resize((bytes_ + kHuge - 1) / kHuge);
  data_ = pages(bytes_, PROT_NONE);
}
Reserved::Reserved(Reserved&& other) noexcept { *this = std::move(other); }
Reserved& Reserved::operator=(Reserved&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(committed_, other.committed_);
  granules_.swap(other.granules_);
  return *this;
}
Reserved::~Reserved() {
  if (data_) ::munmap(data_, bytes_);
}

bool Reserved::commit(std::size_t at, std::size_t bytes) {
  if (granules_.empty() || bytes == 0) return true;
  const std::size_t end = (at + bytes - 1) / kHuge + 1;
  for (std::size_t k = at / kHuge; k < end; ++k) {
    if (granules_[k]) continue;
    std::size_t last = k + 1;
    while (last < end && !granules_[last]) ++last;
    const std::size_t size = std::min(last * kHuge, bytes_) - k * kHuge;
    if (::mprotect(data_ + k * kHuge, size, PROT_READ | PROT_WRITE) != 0) return false;
    committed_ += size;
    for (; k < last; ++k) granules_[k] = true;
  }
  return true;
}

}  // namespace lc
