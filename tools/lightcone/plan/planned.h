// What `lightcone plan` makes of a configuration: the program of one rank, its plan, and times measured here.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "../train/task.h"
#include "lightcone/distributed/mesh.h"
#include "lightcone/distributed/planning/planned_ranks.h"
#include "lightcone/distributed/planning/step_plan.h"
#include "lightcone/distributed/sharding/shard.h"

namespace lc::tool {

// What of a training is divided among the ranks along "data", beside the batch.
enum class StateSharding : std::uint8_t { None, Moments, All };
std::string_view name(StateSharding s);  // "none", "optimizer", "full"

// A mesh with the axes "data", along which the batch is divided, and "model", along which matrices are.
struct Layout {
  Mesh mesh;
  StateSharding sharding = StateSharding::None;
};

// The specs of a layout. Along "model" the matrices of transformers are divided by heads, by the width of the
// feed-forward layers and by the vocabulary; those of a multilayer perceptron alternately by rows and columns. Throws
// Error if an axis has another name, or if nothing can be divided along one.
ShardSpecs specs_of(const Graph& g, const Layout& layout);

// How the program of a rank is compiled.
struct RankOptions {
  int threads = 1;
  std::optional<DType> autocast = {};
};
Program compile_rank(const Graph& g, const Layout& layout, std::shared_ptr<Communicator> rank, const RankOptions& o);

// Gives all inputs, parameters and states some numbers, which are no one's.
void fill(const Program& p, Context& c);

// Seconds of each kernel and of the rest of a run, medians of several runs of one rank's program on this machine. So
// many copies run at once, as ranks do that have a processor each. Exchanges are pretended.
struct KernelTimes {
  std::vector<double> kernel_seconds;  // by NodeId
  double other_seconds = 0;
};
KernelTimes measure_kernels(const Graph& g, const Layout& layout, const RankOptions& o, int copies, int runs);

// The link between ranks of this machine, and the speed of sums, measured by ranks that MPI has started.
struct MeasuredLinks {
  Link link;
  double reduced_bytes_per_second = 0;
};
MeasuredLinks measure_links(Communicator& ranks, Communicator& short_messages, std::size_t short_bytes);
double measure_sums();  // bytes a second that reduce_rows() adds up on one processor

double median(std::vector<double> v);

}  // namespace lc::tool
