#include "lightcone/backends/cuda/memory.h"

#include <algorithm>
#include <new>

#include "lightcone/base/error.h"

namespace lc::backends::cuda {
namespace {

constexpr std::size_t kAlignment = 256;
constexpr std::size_t kMost = std::size_t{1} << 60;  // above any device's memory; sums of such sizes do not overflow
constexpr std::size_t kKeptPart = 8;                 // kept blocks have at most 1/8 of the device's memory

std::size_t up(std::size_t n, std::size_t to) { return (n + to - 1) / to * to; }
// Returns true if a kept block of this many bytes may serve a request for `want`.
bool fits(std::size_t bytes, std::size_t want) { return bytes - want <= want / 8 + (4u << 10); }

}  // namespace

// Memory that the driver allocated as one piece.
class Block final : public DeviceBuffer {
 public:
  Block(std::shared_ptr<Memory> memory, std::size_t bytes, api::Address address, std::size_t room)
      : DeviceBuffer(bytes, address), memory_(std::move(memory)), room_(room) {}
  ~Block() override { memory_->give(address_, room_); }

 private:
  std::shared_ptr<Memory> memory_;
  std::size_t room_;
};

// A range of addresses, some pieces of which have memory.
class Range final : public DeviceBuffer {
 public:
  Range(std::shared_ptr<Memory> memory, std::size_t bytes, std::size_t granule)
      : DeviceBuffer(bytes, 0),
        memory_(std::move(memory)),
        granule_(granule),
        has_memory_(up(bytes, granule) / granule) {}
  ~Range() override;
  // Returns false if there are not enough addresses.
  bool reserve();
  bool commit(std::size_t at, std::size_t bytes) override;
  std::size_t committed() const override { return std::min(committed_, size()); }

 private:
  struct Mapping {
    api::Address at;
    std::size_t bytes;
  };
  const Context& context() const { return memory_->stream().context(); }
  bool map(std::size_t first, std::size_t last);
  void give_access(const Mapping& m, api::Allocation memory);

  std::shared_ptr<Memory> memory_;
  std::size_t granule_, committed_ = 0;
  std::vector<bool> has_memory_;  // by granule
  std::vector<Mapping> mappings_;
};

bool Range::reserve() {
  context().enter();
  const std::size_t all = has_memory_.size() * granule_;
  const api::Result r = context().api().reserve_addresses(&address_, all, 0, 0, 0);
  if (r == api::Result::OutOfMemory || r == api::Result::InvalidValue) return false;
  context().check(r, "reserve addresses");
  return true;
}

Range::~Range() {
  if (!address_) return;
  memory_->stream().wait_quietly();
  for (const Mapping& m : mappings_) context().quietly([&](const api::Driver& a) { return a.unmap(m.at, m.bytes); });
  context().quietly([&](const api::Driver& a) { return a.free_addresses(address_, has_memory_.size() * granule_); });
}

bool Range::commit(std::size_t at, std::size_t bytes) {
  if (bytes == 0) return true;
  if (at > size() || bytes > size() - at) return false;
  const std::size_t end = (at + bytes - 1) / granule_ + 1;
  for (std::size_t k = at / granule_; k < end; ++k) {
    if (has_memory_[k]) continue;
    std::size_t last = k + 1;
    while (last < end && !has_memory_[last]) ++last;
    if (!map(k, last)) return false;
    k = last;
  }
  return true;
}

// Maps granules [first, last), none of which has memory yet.
bool Range::map(std::size_t first, std::size_t last) {
  const Mapping m{address_ + first * granule_, (last - first) * granule_};
  api::AllocationProperties properties;
  properties.location.id = context().device();
  mappings_.reserve(mappings_.size() + 1);
  api::Allocation memory = 0;
  if (!memory_->take_from_driver(
          [&](const api::Driver& a) { return a.create_memory(&memory, m.bytes, &properties, 0); }))
    return false;
  give_access(m, memory);
  mappings_.push_back(m);
  std::fill(has_memory_.begin() + static_cast<std::ptrdiff_t>(first),
            has_memory_.begin() + static_cast<std::ptrdiff_t>(last), true);
  committed_ += m.bytes;
  memory_->stream().ask("set memory to zero",
                        [&](const api::Driver& a, api::Stream* s) { return a.fill(m.at, 0, m.bytes, s); });
  return true;
}

// The mapping keeps the memory until it is unmapped.
void Range::give_access(const Mapping& m, api::Allocation memory) {
  const api::Result mapped = context().api().map(m.at, m.bytes, 0, memory, 0);
  context().quietly([&](const api::Driver& a) { return a.release_memory(memory); });
  context().check(mapped, "give addresses memory");
  api::AccessDescription access;
  access.location.id = context().device();
  const api::Result open = context().api().set_access(m.at, m.bytes, &access, 1);
  if (open != api::Result::Success) context().quietly([&](const api::Driver& a) { return a.unmap(m.at, m.bytes); });
  context().check(open, "open memory to its kernels");
}

// ---- the memory -------------------------------------------------------------------------------

Memory::Memory(std::shared_ptr<Stream> stream) : stream_(std::move(stream)) {
  const Context& c = stream_->context();
  c.enter();
  std::size_t all = 0;
  c.check(c.api().device_memory(&all, c.device()), "say how much memory it has");
  most_kept_ = all / kKeptPart;
  if (!c.attribute(api::DeviceAttribute::VirtualMemoryManagementSupported)) return;
  api::AllocationProperties properties;
  properties.location.id = c.device();
  c.check(c.api().granularity(&granule_, &properties, api::GranularityFlags::Minimum), "say how it reserves memory");
}

Memory::~Memory() {
  stream_->wait_quietly();
  for (const auto& [bytes, at] : free_)
    stream_->context().quietly([&, at = at](const api::Driver& a) { return a.free(at); });
}

std::unique_ptr<Buffer> Memory::allocate(std::size_t bytes) {
  if (std::unique_ptr<Buffer> b = allocate_or_null(bytes)) return b;
  throw Error("cuda", str_cat("the device has no ", bytes, " bytes to give: ", stream_->context().memory_words(),
                              "; close other programs that use it, or take a smaller batch, context or model"));
}

std::unique_ptr<Buffer> Memory::allocate_or_null(std::size_t bytes) {
  if (bytes > kMost) return nullptr;
  std::size_t room = up(std::max<std::size_t>(bytes, 1), kAlignment);
  api::Address at = 0;
  {
    const std::lock_guard lock(mutex_);
    if (const auto it = free_.lower_bound(room); it != free_.end() && fits(it->first, room)) {
      room = it->first, at = it->second;
      kept_ -= room;
      free_.erase(it);
    }
  }
  if (!at && !take_from_driver([&](const api::Driver& a) { return a.allocate(&at, room); })) return nullptr;
  std::unique_ptr<Block> block;
  try {
    block = std::make_unique<Block>(shared_from_this(), bytes, at, room);
  } catch (const std::bad_alloc&) {
    give(at, room);
    throw;
  }
  stream_->ask("set memory to zero", [&](const api::Driver& a, api::Stream* s) { return a.fill(at, 0, room, s); });
  return block;
}

std::unique_ptr<Buffer> Memory::reserve(std::size_t bytes) {
  if (!granule_ || bytes <= granule_) return allocate_or_null(bytes);
  if (bytes > kMost) return nullptr;
  auto range = std::make_unique<Range>(shared_from_this(), bytes, granule_);
  if (!range->reserve()) return nullptr;
  return range;
}

void Memory::give(api::Address at, std::size_t bytes) noexcept {
  if (stream_->context().is_lost()) return;
  {
    const std::lock_guard lock(mutex_);
    if (kept_ + bytes <= most_kept_) try {
        free_.emplace(bytes, at);
        kept_ += bytes;
        return;
      } catch (const std::bad_alloc&) {  // the driver gets it back below
      }
  }
  stream_->wait_quietly();
  stream_->context().quietly([&](const api::Driver& a) { return a.free(at); });
}

void Memory::trim() {
  std::multimap<std::size_t, api::Address> unused;
  {
    const std::lock_guard lock(mutex_);
    unused.swap(free_);
    kept_ = 0;
  }
  if (unused.empty()) return;
  stream_->wait_quietly();
  for (const auto& [bytes, at] : unused)
    stream_->context().quietly([&, at = at](const api::Driver& a) { return a.free(at); });
}

}  // namespace lc::backends::cuda
