#include "lightcone/runtime/value_memory.h"

#include <algorithm>
#include <bit>

#include "lightcone/base/error.h"
#include "lightcone/device/kernel.h"

namespace lc {
namespace {

bool in_arena(const MemoryPlan& p, NodeId id) { return p.nodes[id].where == Placement::Where::Arena; }

std::size_t at_sizes(const Dim& bytes, const Bindings& sizes) {
  return static_cast<std::size_t>(std::max<std::int64_t>(bytes.eval(sizes), 0));
}

// Returns usable memory of this many bytes, or null if there is not enough.
std::unique_ptr<Buffer> taken(Device& device, std::size_t bytes) {
  if (auto reserved = device.reserve(bytes)) return reserved->commit(0, bytes) ? std::move(reserved) : nullptr;
  try {
    return device.allocate(bytes);
  } catch (const Error&) {
    return nullptr;
  }
}

// Returns the symbols in the sizes of some nodes, with their bounds.
std::map<std::string, Bounds> symbols_of(const Graph& g, std::span<const NodeId> nodes) {
  std::map<std::string, Bounds> all;
  for (const NodeId id : nodes)
    for (const Dim& d : g[id].shape)
      if (!d.is_constant()) all.merge(d.symbols());
  return all;
}

}  // namespace

ValueMemory::ValueMemory(const Graph& g, std::span<const NodeId> order, std::span<const NodeId> parts,
                         const MemoryPlan& largest, Device& device)
    : g_(g),
      order_(order),
      parts_(parts),
      largest_(largest),
      device_(device),
      memory_(device.reserve(largest.arena_bytes)),
      room_(g.size()) {
  for (const NodeId id : order)
    if (largest.scratch_bytes[id]) scratch_.push_back({id, g[id].kernel->scratch_bytes(largest.workers)});
  fitted_ = !memory_;
}

void ValueMemory::fit(const Bindings& sizes, std::span<const std::size_t> bytes) {
  if (!fitted_) {
    if (!commit(sizes, bytes)) refuse(sizes);
    return;
  }
  if (memory_ && fits(own_, sizes, bytes)) return;
  // Leave room to grow if there is enough memory, otherwise take exactly the current sizes.
  const auto bounds = symbols_of(g_, order_);
  Bindings more = sizes;
  for (auto& [name, value] : more)
    if (const auto b = bounds.find(name); b != bounds.end() && value > 0)
      value = std::min(b->second.hi, static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(value))));
  if (!lay_out(more, sizes, bytes) && !lay_out(sizes, sizes, bytes)) refuse(sizes);
}

// Commits pages in the layout for the largest sizes.
bool ValueMemory::commit(const Bindings& sizes, std::span<const std::size_t> bytes) {
  const auto make_room = [&](std::size_t offset, std::size_t want, std::size_t& room) {
    if (want <= room) return true;
    if (!memory_->commit(offset, want)) return false;
    room = want;
    return true;
  };
  for (const NodeId id : order_)
    if (in_arena(largest_, id) && !make_room(largest_.nodes[id].offset, bytes[id], room_[id])) return false;
  for (const NodeId id : parts_) room_[id] = std::max(room_[id], bytes[id]);
  for (const auto& [state, offset] : largest_.snapshots)
    if (!make_room(offset, bytes[state], room_[state])) return false;
  for (Scratch& s : scratch_)
    if (!make_room(largest_.scratch[s.node], at_sizes(s.bytes, sizes), s.room)) return false;
  return true;
}

bool ValueMemory::fits(const MemoryPlan& p, const Bindings& sizes, std::span<const std::size_t> bytes) const {
  const auto fit = [&](NodeId id) { return bytes[id] <= p.nodes[id].bytes; };
  return std::all_of(order_.begin(), order_.end(), fit) && std::all_of(parts_.begin(), parts_.end(), fit) &&
         std::all_of(p.snapshots.begin(), p.snapshots.end(), [&](const auto& s) { return fit(s.first); }) &&
         std::all_of(scratch_.begin(), scratch_.end(),
                     [&](const Scratch& s) { return at_sizes(s.bytes, sizes) <= p.scratch_bytes[s.node]; });
}

// Allocates memory for a new layout; the values in the previous memory are lost.
bool ValueMemory::lay_out(const Bindings& planned, const Bindings& sizes, std::span<const std::size_t> bytes) {
  MemoryPlan p = make_plan(g_, largest_.workers, planned);
  if (!fits(p, sizes, bytes)) return false;
  std::fill(room_.begin(), room_.end(), std::size_t{0});
  memory_.reset();
  std::unique_ptr<Buffer> fresh = taken(device_, p.arena_bytes);
  if (!fresh) return false;
  own_ = std::move(p);
  memory_ = std::move(fresh);
  for (const NodeId id : order_) room_[id] = own_.nodes[id].bytes;
  for (const NodeId id : parts_) room_[id] = own_.nodes[id].bytes;
  for (const auto& [state, offset] : own_.snapshots) room_[state] = own_.nodes[state].bytes;
  return true;
}

void ValueMemory::refuse(const Bindings& sizes) const {
  const auto needed = [&](const Bindings& at) { return make_plan(g_, largest_.workers, at).arena_bytes; };
  const std::size_t now = needed(sizes);
  std::string bound, counts_most;
  std::size_t least = now;
  for (const auto& [name, b] : symbols_of(g_, order_)) {
    const auto at = sizes.find(name);
    if (at == sizes.end()) continue;
    bound += str_cat(bound.empty() ? "" : ", ", name, " = ", at->second);
    Bindings smaller = sizes;
    smaller[name] = b.lo;
    if (const std::size_t without = needed(smaller); without < least) least = without, counts_most = name;
  }
  throw Error("memory",
              str_cat("the values in flight take ", now, " bytes", bound.empty() ? "" : " for " + bound,
                      now == largest_.arena_bytes ? "" : str_cat(" (", largest_.arena_bytes, " for the largest sizes)"),
                      ", which ", device_.shares_host_memory() ? "the system" : device_.name(), " has not to give",
                      counts_most.empty() ? "" : str_cat(": lower '", counts_most, "', which counts most")));
}

}  // namespace lc
