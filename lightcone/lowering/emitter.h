// Emitter: the base class of the devices' emitters. An emitter builds a new graph in which each result of a Partition
// is a kernel node.
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

  // A kernel node that is not in the new graph yet.
  struct Draft {
    Node node;
    std::vector<NodeId> operands;  // nodes of the old graph that the kernel reads
  };
  Draft draft(NodeId result) const;
  // Adds an operand: the value of node k of the old graph, which must have been emitted.
  void read(Draft& d, const Graph& dst, NodeId k) const;
  // Does the same, but reads the value from node `from` of the new graph, where it is repacked.
  void read_from(Draft& d, const Graph& dst, NodeId from, NodeId k) const;
  // Adds the node with its kernel and returns its id. `kind` ("matmul", "loop") is counted in the log and named in the
  // kernel's origin; `shapes` holds the shapes of its products (steps() in passes/origin.h).
  NodeId finish(Graph& dst, Draft d, std::shared_ptr<Kernel> kernel, const std::string& kind, NodeId result,
                const std::map<NodeId, std::string>& shapes = {});

  // Adds a kernel that repacks a parameter. It runs once, when the parameter is loaded. Returns the node of its result.
  NodeId add_packed(Graph& dst, NodeId parameter, DType dtype, Dim elements, std::shared_ptr<Kernel> kernel);
  // Returns the nodes that outputs of the graph read, and the states that are assigned. They cannot be repacked.
  std::set<NodeId> read_by_roots() const;
  // Returns the bytes of the value that a slice_scatter overwrites in part; 0 for any other node.
  Dim base_bytes(NodeId id) const;

  // Emits the inputs that are used and the results of the partition, in order, and copies roots and assignments.
  // Returns the new graph.
  Graph emit_all(const Partition& partition);
  virtual void emit_node(Graph& dst, NodeId id) = 0;  // emits the node and sets new_id_[id]
  virtual bool waits(NodeId) const { return false; }  // true if a reader emits the node

  const Graph& g_;
  std::shared_ptr<Device> device_;
  PassLog& log_;
  std::vector<NodeId> new_id_;  // nodes of the new graph, by node of the old one

 private:
  std::string device_name_;
};

}  // namespace lc::lowering
