// The plan of a pipeline: its stages have programs of their own, and wait for each other.
//
//   std::vector<StepPlan> stages;
//   for (const int rank : mesh.group(0, std::vector{mesh.axis("pipe")})) {
//     const Collectives c(mesh, planned_ranks(mesh.size(), rank));
//     stages.push_back(plan_step(compile(graph, shard(c, specs, {.pipeline = "pipe"}) | generic() | cpu()), cluster));
//   }
//   const PipelinePlan plan = join_stages(std::move(stages));
//
// The ranks of one stage are alike, and one of them stands for all.
#pragma once

#include <vector>

#include "lightcone/distributed/planning/step_plan.h"

namespace lc {

struct PipelinePlan {
  // Each stage has one. Their `seconds` are those of the whole pipeline's step, with `waiting_seconds` for other
  // stages.
  std::vector<StepPlan> stages;
  std::size_t fullest = 0, slowest = 0;  // the stages that need most memory, and that wait least
  double seconds() const { return stages[slowest].seconds; }
};
// Runs the steps of the stages beside each other, in the order of their programs: one that receives a message waits
// until it has been sent. Throws Error if stages wait for each other in a circle.
PipelinePlan join_stages(std::vector<StepPlan> stages);

}  // namespace lc
