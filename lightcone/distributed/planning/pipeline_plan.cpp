#include "lightcone/distributed/planning/pipeline_plan.h"

#include <algorithm>
#include <utility>

#include "lightcone/base/error.h"
#include "lightcone/distributed/planning/walk.h"

namespace lc {

using distributed::Arrivals;
using distributed::Walk;

PipelinePlan join_stages(std::vector<StepPlan> stages) {
  if (stages.empty()) throw Error("plan", "a pipeline has at least one stage");
  std::vector<Walk> all;
  for (const StepPlan& s : stages) all.emplace_back(s.steps);
  Arrivals arrivals;
  for (bool moved = true; moved;) {
    moved = false;
    for (Walk& w : all) moved = w.run(&arrivals) || moved;
  }
  double end = 0;
  for (std::size_t k = 0; k < all.size(); ++k) {
    if (!all[k].done()) throw Error("plan", str_cat("stage ", k, " waits for a message that no stage sends"));
    end = std::max(end, all[k].clock() + stages[k].other_seconds);
  }
  PipelinePlan p;
  for (std::size_t k = 0; k < all.size(); ++k) {
    StepPlan s = std::move(stages[k]);
    s.waiting_seconds = all[k].waited() + end - all[k].clock() - s.other_seconds;
    s.seconds = end;
    s.exposed_seconds = end - s.waiting_seconds - s.computing_seconds();
    p.stages.push_back(std::move(s));
  }
  const auto place = [&](auto best) { return static_cast<std::size_t>(best - p.stages.begin()); };
  p.fullest = place(std::ranges::max_element(p.stages, {}, [](const StepPlan& s) { return s.memory.total(); }));
  p.slowest = place(std::ranges::min_element(p.stages, {}, &StepPlan::waiting_seconds));
  return p;
}

}  // namespace lc
