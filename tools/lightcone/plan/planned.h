// What `lightcone plan` makes of a configuration: the program of one rank, its plan, and times measured here.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "../commands.h"
#include "../train/task.h"
#include "lightcone/distributed/mesh.h"
#include "lightcone/distributed/planning/pipeline_plan.h"
#include "lightcone/distributed/planning/planned_ranks.h"
#include "lightcone/distributed/planning/step_plan.h"
#include "lightcone/distributed/sharding/shard.h"

namespace lc::tool {

// What is planned: a model on ranks, as `lightcone train` divides it, and besides along an axis "pipe" into the stages
// of a pipeline, and a rank's batch into parts that are computed one after the other.
struct Layout {
  RanksConfig ranks;
  ModelConfig model;
  int microbatches = 1;
  const Mesh& mesh() const { return ranks.mesh; }
  int stages() const;
  std::vector<int> rank_of_each_stage() const;  // the first rank of each; {0} without a pipeline
};
// As `lightcone train` has it. Throws Error if an axis of the mesh is none of data, model and pipe, or if nothing can
// be divided along model.
ShardSpecs specs_of(const Graph& g, const Layout& layout);

// How the program of a rank is compiled.
struct RankOptions {
  int threads = 1;
  bool runs = false;  // false: it has a plan, and its loops no machine code
};
Program compile_rank(const Graph& g, const Layout& layout, std::shared_ptr<Communicator> rank, const RankOptions& o);

// Gives all inputs, parameters and states some numbers, which are no one's.
void fill(const Program& p, Context& c);

// Seconds of each kernel and of the rest of a run: medians of several runs.
struct KernelTimes {
  std::vector<double> kernel_seconds;  // by NodeId
  double other_seconds = 0;
  std::vector<double> runs = {};  // the sum of all kernels, for each run
};
KernelTimes kernel_times(const Program& p, Context& c, int runs, const std::function<void()>& before_each = {});
// Measures one rank's program on this machine, while so many copies of it run, as the ranks of a machine do. Ranks wait
// for the slowest of them: all kernels together take as long as those of a run's slowest copy. Exchanges are pretended.
KernelTimes measure_kernels(const Graph& g, const Layout& layout, int rank, int threads, int copies, int runs);

// The link between ranks of this machine, and the speed of sums, measured by ranks that MPI has started.
struct MeasuredLinks {
  Link link;
  double reduced_bytes_per_second = 0;
};
MeasuredLinks measure_links(Communicator& ranks, Communicator& short_messages, std::size_t short_bytes);
double measure_sums();  // bytes a second that reduce_rows() adds up on one processor

double median(std::vector<double> v);

// The plan of a layout.
struct Planned {
  Layout layout;
  StepPlan step;  // a pipeline has that of its slowest stage, with the memory of its fullest one
  std::optional<PipelinePlan> pipeline = {};
};
// The machines, as the options describe them; what they leave out is measured here.
Cluster cluster_of(const PlanCommand& o, int ranks);
Planned planned(const PlanCommand& o, const Graph& g, const Layout& layout, const Cluster& cluster);
// Plans all meshes, and prints what is found.
void plan_all(const PlanCommand& o, const Graph& g, const TrainConfig& config);

}  // namespace lc::tool
