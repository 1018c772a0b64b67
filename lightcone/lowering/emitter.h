// What emitters have in common: they put a device's kernels into a new graph, a node for each result of a Partition.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "lightcone/device/kernel.h"
#include "lightcone/lowering/partition.h"

namespace lc::lowering {

class Emitter {
 public:
  Emitter(const Graph& g, std::shared_ptr<Device> device, PassLog& log, std::string device_name);
  Emitter(const Emitter&) = delete;
  virtual ~Emitter() = default;

 protected:
  static constexpr NodeId kNone = ~NodeId{0};  // in new_id_: not emitted yet

  // The node of a kernel on its way into the new graph.
  struct Draft {
    Node node;
    std::vector<NodeId> operands;  // in the old graph
  };
  Draft draft(NodeId result) const;
  // The kernel reads the value of node k of the old graph: as it is, or from node `from` of the new one.
  void read(Draft& d, const Graph& dst, NodeId k) const;
  void read_from(Draft& d, const Graph& dst, NodeId from, NodeId k) const;
  // Adds the node. `kind` ("matmul", "loop") is counted in the log and named in the kernel's origin; `shapes` are what
  // its steps multiply (passes/origin.h).
  NodeId finish(Graph& dst, Draft d, std::shared_ptr<Kernel> kernel, const std::string& kind, NodeId result,
                const std::map<NodeId, std::string>& shapes = {});

  // A parameter in another layout, as a kernel that runs once, when the parameter is loaded.
  NodeId add_packed(Graph& dst, NodeId parameter, DType dtype, Dim elements, std::shared_ptr<Kernel> kernel);
  // Values that are read as they are by results, and states that are assigned: their parameters cannot be packed.
  std::set<NodeId> read_by_roots() const;
  // Bytes of the value that a loop overwrites a part of (slice_scatter); 0 for other loops.
  Dim base_bytes(NodeId id) const;

  // Emits inputs that are used and results of the partition, in order, and copies roots and assignments.
  Graph emit_all(const Partition& partition);
  virtual void emit(Graph& dst, NodeId id) = 0;       // sets new_id_[id]
  virtual bool waits(NodeId) const { return false; }  // is it emitted by one of its readers?

  const Graph& g_;
  std::shared_ptr<Device> device_;
  PassLog& log_;
  std::vector<NodeId> new_id_;

 private:
  std::string device_name_;
};

}  // namespace lc::lowering
