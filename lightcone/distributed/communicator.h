// Communicator: how ranks exchange arrays. A transport implements one function; collectives.h makes operations of
// graphs from it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lightcone/core/dtype.h"

namespace lc {

enum class ReduceOp : std::uint8_t { Sum, Max };

// One collective operation of a group of ranks. Each rank of the group calls it with the same fields (but `place`).
struct Collective {
  enum class Operation : std::uint8_t {
    AllReduce,      // in [n] -> out [n]: the reduction of all
    AllGather,      // in [n] -> out [group, n]
    ReduceScatter,  // in [group, n] -> out [n]: the reduction of everybody's row of this rank's place
    AllToAll,       // in [group, n] -> out [group, n]: row j comes from rank j's row of this rank's place
    Broadcast,      // in [n] -> out [n]: that of the rank at place `root`
    Permute,        // in [n] -> out [n]: that of the rank at place source[place]; zeros if that is -1
    Send,           // in [n] of place 0 -> out [n] of place 1, in a group of two; the other pointers are null
  };
  Operation operation = Operation::AllReduce;
  ReduceOp reduction = ReduceOp::Sum;
  DType dtype = DType::F32;
  std::size_t n = 0;                // elements, as above
  std::span<const int> group = {};  // ranks of the communicator, in the order of their places
  int place = 0;                    // this rank's in the group
  int root = 0;
  std::span<const int> source = {};  // Permute: for each place
  std::uint64_t tag = 0;             // identifies the operation in the program: ranks must not run different ones
};
// One of several arrays that an operation exchanges at once.
struct Piece {
  const void* in = nullptr;
  void* out = nullptr;
  std::size_t n = 0;  // elements, as in Collective
};
std::string_view name(Collective::Operation operation);  // "all_reduce"
std::string str(const Collective& c);                    // "all_reduce (sum) of 8 f32 among 4 ranks, operation 3"

// One rank of a set of ranks. One thread at a time uses it, not always the same one: operations that run while kernels
// do have a thread of their own.
//
// Results do not depend on the transport: sums add the ranks' numbers in the order of their places, narrow floats in
// f32. Every operation ends within the time-out: if another rank does not come, has ended, or calls another operation,
// it throws Error, and so do all later ones.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::string name() const = 0;  // "threads", "MPI"
  // Runs a collective. `in` and `out` hold the elements that the operation states, and do not overlap.
  virtual void run(const Collective& c, const void* in, void* out) = 0;
  // Runs a collective on several arrays at once (NCCL's ncclGroupStart, torch's all_gather_coalesced): the bits are
  // those of one operation for each, which is what it does unless a transport saves messages. `c.n` is the sum of
  // theirs.
  virtual void run_together(const Collective& c, std::span<const Piece> pieces);
};

// Reduces the rows: out[k] = in[0][k] + in[1][k] + ..., or their maximum, for k in [begin, end). Sums of narrow floats
// and of halves are f32; NaN is larger than any number; bool adds as "or".
void reduce_rows(DType dtype, ReduceOp r, std::span<const void* const> in, void* out, std::size_t begin,
                 std::size_t end);

struct ThreadRanksOptions {
  double timeout_s = 60;  // how long a rank waits for others in one operation
};
// Returns `n` ranks that are threads of this process, one communicator for each. Ends of ranks (the destruction of
// their communicator) are seen by all others. For tests, and for several models on one machine.
std::vector<std::shared_ptr<Communicator>> threads(int n, const ThreadRanksOptions& o = {});

}  // namespace lc
