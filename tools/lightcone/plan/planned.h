// What `lightcone plan` makes of a configuration: the program of one rank, its plan, and times measured here.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "../train/task.h"
#include "lightcone/distributed/mesh.h"
#include "lightcone/distributed/planning/planned_ranks.h"
#include "lightcone/distributed/planning/step_plan.h"
#include "lightcone/distributed/sharding/shard.h"

namespace lc::tool {

// What is planned: a model on ranks, as `lightcone train` divides it.
struct Layout {
  RanksConfig ranks;
  ModelConfig model;
  const Mesh& mesh() const { return ranks.mesh; }
};
// As `lightcone train` has it. Throws Error if an axis of the mesh is neither data nor model, or if nothing can be
// divided along model.
ShardSpecs specs_of(const Graph& g, const Layout& layout);

// How the program of a rank is compiled.
struct RankOptions {
  int threads = 1;
  std::optional<DType> autocast = {};
};
Program compile_rank(const Graph& g, const Layout& layout, std::shared_ptr<Communicator> rank, const RankOptions& o);

// Gives all inputs, parameters and states some numbers, which are no one's.
void fill(const Program& p, Context& c);

// Seconds of each kernel and of the rest of a run: medians of several runs.
struct KernelTimes {
  std::vector<double> kernel_seconds;  // by NodeId
  double other_seconds = 0;
};
KernelTimes kernel_times(const Program& p, Context& c, int runs, const std::function<void()>& before_each = {});
// Those of one rank's program on this machine, while so many copies of it run, as the ranks of a machine do.
// Exchanges are pretended.
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
