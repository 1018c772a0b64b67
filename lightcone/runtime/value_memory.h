// The memory of one context's values in flight.
//
// Addresses are reserved for the largest sizes, and pieces of them are committed as sizes are bound: a program whose
// "batch" may be 64 takes the memory of one picture when it is 1. Where the system has not that many addresses (a limit
// on virtual memory), the values are laid out anew for the sizes at hand.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "lightcone/core/graph.h"
#include "lightcone/device/device.h"
#include "lightcone/device/plan.h"

namespace lc {

class ValueMemory {
 public:
  // `order`: the nodes that compute. `largest`, the plan for the bounds, stays where it is.
  ValueMemory(const Graph& g, std::span<const NodeId> order, std::span<const NodeId> parts, const MemoryPlan& largest,
              Device& device);

  // Makes room for these sizes; `bytes`, by NodeId, is what each value takes. Nothing is allocated or asked of the
  // system when there was room before. An Error names the symbol that counts most.
  void fit(const Bindings& sizes, std::span<const std::size_t> bytes);
  bool has_room(NodeId id, std::size_t bytes) const { return bytes <= room_[id]; }

  const MemoryPlan& plan() const { return fitted_ ? own_ : largest_; }  // where each value lies
  BufferSlice at(std::size_t offset) const { return {memory_.get(), offset}; }
  std::size_t committed() const { return memory_ ? memory_->committed() : 0; }

 private:
  struct Scratch {
    NodeId node;
    Dim bytes;
    std::size_t room = 0;
  };
  bool commit(const Bindings& sizes, std::span<const std::size_t> bytes);
  bool fits(const MemoryPlan& p, const Bindings& sizes, std::span<const std::size_t> bytes) const;
  bool lay_out(const Bindings& planned, const Bindings& sizes, std::span<const std::size_t> bytes);
  [[noreturn]] void refuse(const Bindings& sizes) const;

  const Graph& g_;
  std::span<const NodeId> order_, parts_;
  const MemoryPlan& largest_;
  Device& device_;
  MemoryPlan own_;
  bool fitted_ = false;  // laid out for the sizes at hand
  std::unique_ptr<Buffer> memory_;
  std::vector<std::size_t> room_;  // by NodeId; of a state: for its value before the run
  std::vector<Scratch> scratch_;
};

}  // namespace lc
