// The memory of one context's intermediate values.
//
// Addresses are reserved for the largest sizes, and pieces of them are committed as sizes are bound: a program whose
// "batch" may be 64 takes the memory of one picture if it is 1. If the system has too few addresses (a limit on virtual
// memory), the values are laid out anew for the current sizes.
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
  // `order` has the nodes that compute. `largest`, the plan for the upper bounds, must outlive this object.
  ValueMemory(const Graph& g, std::span<const NodeId> order, std::span<const NodeId> parts, const MemoryPlan& largest,
              Device& device);

  // Makes room for these sizes; `bytes` has the bytes of each value by NodeId. Calls neither the allocator nor the
  // system if there is room already. Throws Error with the symbol that contributes most if there is not enough memory.
  void fit(const Bindings& sizes, std::span<const std::size_t> bytes);
  bool has_room(NodeId id, std::size_t bytes) const { return bytes <= room_[id]; }

  const MemoryPlan& plan() const { return fitted_ ? own_ : largest_; }  // locations of the values
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
  bool fitted_ = false;  // own_ is laid out for the current sizes
  std::unique_ptr<Buffer> memory_;
  std::vector<std::size_t> room_;  // by NodeId; for a state: room for its value from before the run
  std::vector<Scratch> scratch_;
};

}  // namespace lc
