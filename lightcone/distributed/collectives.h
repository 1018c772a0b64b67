// Collective operations of graphs: composites over the ranks of a mesh. Each rank has a graph of its own with the same
// operations in the same order; shard() (shard.h) makes such graphs, and people may write them.
//
// Derivatives are those of the sum of all ranks' losses: that of all_reduce() is all_reduce(), that of all_gather() is
// reduce_scatter(), and the other way round. The reference evaluates them in f64 if all ranks interpret at once.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lightcone/core/composite.h"
#include "lightcone/distributed/communicator.h"
#include "lightcone/distributed/mesh.h"

namespace lc {

namespace distributed {
class Exchange;
}

// One rank's door to the others. Copies share it; it must be used by one thread at a time.
class Collectives {
 public:
  // Throws Error if the mesh and the communicator differ in the number of ranks.
  Collectives(Mesh mesh, std::shared_ptr<Communicator> communicator);

  const Mesh& mesh() const;
  int rank() const;
  Communicator& communicator() const;
  // Throws Error on every rank unless all gave the same text: the version, the mesh and the model, before the first
  // step.
  void check_same(const std::string& what, const std::string& text) const;

  // `axes` are the names of mesh axes; ranks that differ along them form a group (torch.distributed's process group).
  // The sum, or the maximum, of all ranks' x, with its shape.
  Tensor all_reduce(Operand x, const std::vector<std::string>& axes, ReduceOp r = ReduceOp::Sum) const;
  // All ranks' x, stacked along a new first axis: [group, ...].
  Tensor all_gather(Operand x, const std::vector<std::string>& axes) const;
  // x is [group, ...]; the reduction of all ranks' row of this rank's place: [...].
  Tensor reduce_scatter(Operand x, const std::vector<std::string>& axes, ReduceOp r = ReduceOp::Sum) const;
  // x is [group, ...]; row j of the result is rank j's row of this rank's place.
  Tensor all_to_all(Operand x, const std::vector<std::string>& axes) const;
  // The x of the rank at this place of the group.
  Tensor broadcast(Operand x, const std::vector<std::string>& axes, int root = 0) const;
  // The x of the rank `by` places before this one; before the first comes the last, or zeros if not `ring`. A send and
  // a receive at once (collective_permute of XLA).
  Tensor shift(Operand x, const std::string& axis, int by, bool ring = true) const;

  // Messages between two ranks of programs that differ, such as the stages of a pipeline. Both give a message the same
  // number, and each rank's messages come in one order: `after` is any value that has to be there before, the result of
  // the rank's previous message for one. send() returns a value to be used as `after`; ordered() makes `x` wait for it,
  // without which nothing would need the last message. They have no derivative.
  Tensor send(Operand x, int to, std::int64_t message, Operand after) const;
  Tensor receive(const TensorType& type, int from, std::int64_t message, Operand after) const;
  Tensor ordered(Operand x, Operand after) const;

  // The composite of a operation, to recognise a node: is(node, c.composite(Collective::Operation::AllReduce)).
  const CompositeRef& composite(Collective::Operation operation) const;
  // The same on several arrays of one element type at once, with a result for each.
  CompositeRef composite(Collective::Operation operation, std::size_t arrays) const;

  struct Impl;

 private:
  const std::shared_ptr<distributed::Exchange>& exchange() const;
  std::shared_ptr<Impl> impl_;
};

}  // namespace lc
