// Exchange: the calls of one rank's collectives, shared by its composites and their kernels.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "lightcone/core/attributes.h"
#include "lightcone/core/composite.h"
#include "lightcone/distributed/communicator.h"
#include "lightcone/distributed/mesh.h"

namespace lc::distributed {

// What a node's attributes say, for one rank.
struct Call {
  Collective::Operation operation = Collective::Operation::AllReduce;
  ReduceOp reduction = ReduceOp::Sum;
  std::vector<int> group;
  int place = 0, root = 0;
  int only = -1;            // AllReduce: the one place that gets the sum, the others get zeros; -1: all
  std::vector<int> source;  // Permute: for each place
};

class Exchange {
 public:
  Exchange(Mesh mesh, std::shared_ptr<Communicator> communicator)
      : mesh_(std::move(mesh)), communicator_(std::move(communicator)) {}

  // Reads "axes" (names joined by +), "reduction", "root", "only", "by" and "ring".
  Call call(Collective::Operation operation, const Attributes& a) const;
  Call everybody() const;
  // The attributes of the shift the other way.
  static Attributes reversed(const Attributes& a);
  void run(const Call& c, DType type, std::size_t n, const void* in, void* out);
  // Sends elements to a rank, or receives them from it. Ranks number their messages alike.
  void send(int to, std::uint64_t message, DType type, std::size_t n, const void* in);
  void receive(int from, std::uint64_t message, DType type, std::size_t n, void* out);
  std::vector<std::size_t> gather(const Call& group, std::size_t number);
  // The composite of each operation, of which the nodes of graphs are owners.
  std::array<std::weak_ptr<const Composite>, 6> composites;
  std::array<std::weak_ptr<const Composite>, 2> messages;  // send, receive
  int rank() const { return communicator_->rank(); }

 private:
  Mesh mesh_;
  std::shared_ptr<Communicator> communicator_;
  std::uint64_t operations_ = 0;
};

}  // namespace lc::distributed
