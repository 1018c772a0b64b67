// The plan of a pipeline: its stages have programs of their own, and wait for each other.
//
//   std::vector<StagePlan> stages;
//   for (const int rank : mesh.group(0, std::vector{mesh.axis("pipe")})) {
//     const Collectives c(mesh, planned_ranks(mesh.size(), rank));
//     stages.push_back(plan_stage(compile(graph, shard(c, specs, {.pipeline = "pipe"}) | generic() | cpu()), cluster));
//   }
//   const PipelinePlan plan = join_stages(std::move(stages));
//
// The ranks of one stage are alike, and one of them stands for all.
#pragma once

#include <vector>

#include "lightcone/distributed/planning/step_plan.h"

namespace lc {

// What a rank of one stage does in a run, in its order.
struct StagePlan {
  struct Step {
    enum class Kind : std::uint8_t {
      Kernel,
      Exchange,  // with the ranks of its stage, or a message to another one, until it is done
      Start,     // the same, in the background
      Wait,      // for what has been started
      Receive,   // a message of another stage
    } kind = Kind::Kernel;
    double seconds = 0;
    double busy_seconds = 0;    // Start: a processor is busy that kernels need
    NodeId node = 0;            // Start's own; Wait's is that of its Start
    bool sends = false;         // a message to another stage
    std::uint64_t message = 0;  // the number of what is sent or received
  };
  StepPlan plan;  // as if all that it receives were there at once
  std::vector<Step> steps;
};
// As plan_step(). Throws Error for StepPlanOptions::overlap, too, for kernels keep their order here.
StagePlan plan_stage(const Program& program, const Cluster& cluster, const StepPlanOptions& o = {});

struct PipelinePlan {
  // Each stage has one. Their `seconds` are those of the whole pipeline's step, with `waiting_seconds` for other
  // stages.
  std::vector<StepPlan> stages;
  std::size_t fullest = 0, slowest = 0;  // the stages that need most memory, and that wait least
  double seconds() const { return stages[slowest].seconds; }
};
// Runs the stages beside each other: one that receives a message waits until it has been sent. Throws Error if stages
// wait for each other in a circle.
PipelinePlan join_stages(std::vector<StagePlan> stages);

}  // namespace lc
