#include "driver/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace lc::simulators::cuda {
namespace {

constexpr std::size_t kPage = 4096, kAlignment = 256, kClosedBlocks = 256;

std::size_t round_up(std::size_t n, std::size_t unit) { return (n + unit - 1) / unit * unit; }

bool untouched(const char* begin, const char* end) {
  return std::all_of(begin, end, [](char c) { return c == static_cast<char>(0xff); });
}

// Returns the last of `ranges` that begins at or before `a`.
template <class Map>
auto last_before(const Map& ranges, Address a) {
  auto i = ranges.upper_bound(a);
  return i == ranges.begin() ? ranges.end() : std::prev(i);
}

bool within(Address a, std::size_t bytes, Address begin, std::size_t length) {
  return a >= begin && a - begin <= length && bytes <= length - (a - begin);
}

}  // namespace

Code Allocations::allocate(std::size_t bytes, Address* out) {
  if (bytes == 0) return kInvalidValue;
  const std::size_t aligned = round_up(bytes, kAlignment), page_bytes = round_up(aligned, kPage);
  void* p = mmap(nullptr, page_bytes + 2 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return kOutOfMemory;
  const Block block{static_cast<char*>(p), page_bytes, bytes};
  if (mprotect(block.pages + kPage, page_bytes, PROT_READ | PROT_WRITE) != 0) {
    munmap(p, page_bytes + 2 * kPage);
    return kOutOfMemory;
  }
  std::memset(block.pages + kPage, 0xff, page_bytes);
  *out = address(block.pages + kPage + page_bytes - aligned);
  blocks_.emplace(*out, block);
  used_ += aligned;
  return kSuccess;
}

void Allocations::close(const Block& b) {
  mmap(b.pages + kPage, b.page_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  closed_.push_back(b);
  if (closed_.size() <= kClosedBlocks) return;
  munmap(closed_.front().pages, closed_.front().page_bytes + 2 * kPage);
  closed_.pop_front();
}

Code Allocations::free(Address a) {
  if (a == 0) return kSuccess;
  const auto i = blocks_.find(a);
  if (i == blocks_.end()) return kInvalidValue;
  const Block b = i->second;
  const char *begin = b.pages + kPage, *end = begin + b.page_bytes;
  const bool clean = untouched(begin, pointer(a)) && untouched(pointer(a) + b.bytes, end);
  used_ -= round_up(b.bytes, kAlignment);
  blocks_.erase(i);
  close(b);
  return clean ? kSuccess : kIllegalAddress;
}

bool Allocations::holds(Address a, std::size_t bytes) const {
  const auto i = last_before(blocks_, a);
  return i != blocks_.end() && within(a, bytes, i->first, i->second.bytes);
}

void Allocations::clear() {
  for (const auto& [a, b] : blocks_) munmap(b.pages, b.page_bytes + 2 * kPage);
  for (const Block& b : closed_) munmap(b.pages, b.page_bytes + 2 * kPage);
  blocks_.clear();
  closed_.clear();
  used_ = 0;
}

Physical::~Physical() {
  used_ -= bytes_;
  ::close(file_);
}

Code AddressSpace::create(std::size_t bytes, Address* handle) {
  if (bytes == 0 || bytes % kGranularity != 0) return kInvalidValue;
  const int file = memfd_create("fake_cuda", MFD_CLOEXEC);
  if (file < 0) return kOutOfMemory;
  void* p = ftruncate(file, static_cast<off_t>(bytes)) == 0
                ? mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
                : MAP_FAILED;
  if (p == MAP_FAILED) return ::close(file), kOutOfMemory;
  std::memset(p, 0xff, bytes);
  munmap(p, bytes);
  *handle = next_handle_++;
  handles_.emplace(*handle, std::make_shared<Physical>(file, bytes, used_));
  return kSuccess;
}

// Memory that is mapped stays allocated.
Code AddressSpace::release(Address handle) { return handles_.erase(handle) != 0 ? kSuccess : kInvalidValue; }

Code AddressSpace::reserve(std::size_t bytes, std::size_t alignment, Address* out) {
  if (bytes == 0 || bytes % kGranularity != 0 || (alignment & (alignment - 1)) != 0) return kInvalidValue;
  const std::size_t unit = std::max(alignment, kGranularity);
  void* p = mmap(nullptr, bytes + unit, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return kOutOfMemory;
  const Address begin = address(p), aligned = round_up(begin, unit);
  if (aligned != begin) munmap(p, aligned - begin);
  if (const std::size_t rest = begin + unit - aligned; rest != 0) munmap(pointer(aligned + bytes), rest);
  *out = aligned;
  reserved_.emplace(aligned, bytes);
  return kSuccess;
}

Code AddressSpace::unreserve(Address a, std::size_t bytes) {
  const auto i = reserved_.find(a);
  if (i == reserved_.end() || i->second != bytes) return kInvalidValue;
  const auto inside = mapped_.lower_bound(a);
  if (inside != mapped_.end() && inside->first < a + bytes) return kInvalidValue;
  munmap(pointer(a), bytes);
  reserved_.erase(i);
  return kSuccess;
}

Code AddressSpace::map(Address a, std::size_t bytes, Address handle) {
  const auto h = handles_.find(handle);
  const auto r = last_before(reserved_, a);
  if (h == handles_.end() || bytes != h->second->bytes() || a % kGranularity != 0) return kInvalidValue;
  if (r == reserved_.end() || !within(a, bytes, r->first, r->second)) return kInvalidValue;
  const auto next = mapped_.lower_bound(a);
  if (next != mapped_.end() && next->first < a + bytes) return kInvalidValue;
  const auto before = last_before(mapped_, a);
  if (before != mapped_.end() && before->first + before->second.bytes > a) return kInvalidValue;
  if (mmap(pointer(a), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, h->second->file(), 0) == MAP_FAILED)
    return kOutOfMemory;
  mapped_.emplace(a, Mapping{bytes, h->second, false});
  return kSuccess;
}

bool AddressSpace::whole_mappings(Address a, std::size_t bytes) const {
  const Address end = a + bytes;
  while (a < end) {
    const auto i = mapped_.find(a);
    if (i == mapped_.end()) return false;
    a += i->second.bytes;
  }
  return bytes != 0 && a == end;
}

Code AddressSpace::unmap(Address a, std::size_t bytes) {
  if (!whole_mappings(a, bytes)) return kInvalidValue;
  mmap(pointer(a), bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  mapped_.erase(mapped_.find(a), mapped_.lower_bound(a + bytes));
  return kSuccess;
}

Code AddressSpace::set_access(Address a, std::size_t bytes, unsigned flags) {
  if (!whole_mappings(a, bytes) || (flags != 0 && flags != 1 && flags != 3)) return kInvalidValue;
  const int protection = flags == 0 ? PROT_NONE : flags == 1 ? PROT_READ : PROT_READ | PROT_WRITE;
  if (mprotect(pointer(a), bytes, protection) != 0) return kOutOfMemory;
  for (auto i = mapped_.find(a); i != mapped_.end() && i->first < a + bytes; ++i) i->second.open = flags != 0;
  return kSuccess;
}

// A range may span adjacent mappings.
bool AddressSpace::holds(Address a, std::size_t bytes) const {
  const Address end = a + bytes;
  auto i = last_before(mapped_, a);
  if (i == mapped_.end() || end < a) return false;
  while (i != mapped_.end() && i->first <= a && a < i->first + i->second.bytes && i->second.open) {
    a = i->first + i->second.bytes;
    if (a >= end) return true;
    ++i;
  }
  return false;
}

void AddressSpace::clear() {
  for (const auto& [a, bytes] : reserved_) munmap(pointer(a), bytes);
  mapped_.clear();
  handles_.clear();
  reserved_.clear();
}

bool PinnedMemory::overlaps(Address a, std::size_t bytes) const {
  const auto before = last_before(ranges_, a);
  if (before != ranges_.end() && before->first + before->second.bytes > a) return true;
  const auto next = ranges_.lower_bound(a);
  return next != ranges_.end() && next->first < a + bytes;
}

Code PinnedMemory::allocate(std::size_t bytes, void** out) {
  if (bytes == 0) return kInvalidValue;
  void* p = std::aligned_alloc(kPage, round_up(bytes, kPage));
  if (p == nullptr) return kOutOfMemory;
  std::memset(p, 0xff, bytes);
  ranges_.emplace(address(p), Range{bytes, true});
  *out = p;
  return kSuccess;
}

Code PinnedMemory::free(void* p) {
  const auto i = ranges_.find(address(p));
  if (i == ranges_.end() || !i->second.own) return kInvalidValue;
  ranges_.erase(i);
  std::free(p);
  return kSuccess;
}

Code PinnedMemory::enroll(void* p, std::size_t bytes) {
  if (p == nullptr || bytes == 0) return kInvalidValue;
  if (overlaps(address(p), bytes)) return kHostMemoryAlreadyRegistered;
  ranges_.emplace(address(p), Range{bytes, false});
  return kSuccess;
}

Code PinnedMemory::discharge(void* p) {
  const auto i = ranges_.find(address(p));
  if (i == ranges_.end() || i->second.own) return kHostMemoryNotRegistered;
  ranges_.erase(i);
  return kSuccess;
}

bool PinnedMemory::holds(const void* p, std::size_t bytes) const {
  const auto i = last_before(ranges_, address(p));
  return i != ranges_.end() && within(address(p), bytes, i->first, i->second.bytes);
}

std::size_t PinnedMemory::bytes() const {
  std::size_t n = 0;
  for (const auto& [a, range] : ranges_) n += range.bytes;
  return n;
}

void PinnedMemory::clear() {
  for (const auto& [a, range] : ranges_)
    if (range.own) std::free(pointer(a));
  ranges_.clear();
}

}  // namespace lc::simulators::cuda
