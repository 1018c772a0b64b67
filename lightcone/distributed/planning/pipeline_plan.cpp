#include "lightcone/distributed/planning/pipeline_plan.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "lightcone/base/error.h"
#include "lightcone/distributed/exchange.h"
#include "lightcone/distributed/planning/walk.h"

namespace lc {
namespace {

using distributed::Exchanged;
using Step = StagePlan::Step;

Step step_of(const Graph& g, NodeId id, double seconds) {
  Step s{.seconds = seconds, .node = id};
  const auto* kernel = distributed::exchanging(g[id]);
  if (!kernel) return s;
  const Exchanged e = kernel->exchanged();
  s.message = e.call.message;
  s.sends = e.call.operation == Collective::Operation::Send && !e.received();
  if (e.received()) s.kind = Step::Kind::Receive;
  else if (e.half == Exchanged::Half::Both) s.kind = Step::Kind::Exchange;
  else if (e.half == Exchanged::Half::Start) s.kind = Step::Kind::Start;
  else s.kind = Step::Kind::Wait, s.node = g[id].in[0].node;
  return s;
}

// When messages have arrived, by their number. Numbers count the messages of all stages.
using Arrivals = std::unordered_map<std::uint64_t, double>;

// One stage on its way through its steps.
class Stage {
 public:
  explicit Stage(const std::vector<Step>& steps) : steps_(steps) {}

  // Goes on until the end, or to a message that has not been sent. Returns false if it could not take a single step.
  bool run(Arrivals& arrivals) {
    const std::size_t from = next_;
    while (next_ < steps_.size() && take(steps_[next_], arrivals)) ++next_;
    return next_ > from;
  }
  bool done() const { return next_ == steps_.size(); }
  double clock() const { return clock_; }
  double waited() const { return waited_; }

 private:
  bool take(const Step& s, Arrivals& arrivals) {
    switch (s.kind) {
      case Step::Kind::Kernel: clock_ += s.seconds; break;
      case Step::Kind::Exchange:
      case Step::Kind::Start:
        link_ = std::max(link_, clock_) + s.seconds;
        if (s.sends) arrivals[s.message] = link_;
        if (s.kind == Step::Kind::Exchange) clock_ = link_;
        else ends_[s.node] = link_, owed_ += s.busy_seconds;
        break;
      case Step::Kind::Wait: clock_ = std::max(clock_ + std::exchange(owed_, 0), ends_.at(s.node)); break;
      case Step::Kind::Receive: {
        const auto arrival = arrivals.find(s.message);
        if (arrival == arrivals.end()) return false;
        clock_ = std::max(clock_, link_);  // messages and exchanges have one order
        waited_ += std::max(0.0, arrival->second - clock_);
        link_ = clock_ = std::max(clock_, arrival->second);
        break;
      }
    }
    return true;
  }

  const std::vector<Step>& steps_;
  std::size_t next_ = 0;
  double clock_ = 0, link_ = 0, waited_ = 0;  // when the processor and the link are free
  double owed_ = 0;                           // the processor's work on exchanges that have begun
  std::unordered_map<NodeId, double> ends_;
};

}  // namespace

StagePlan plan_stage(const Program& program, const Cluster& cluster, const StepPlanOptions& o) {
  if (o.overlap) throw Error("plan", "what could be reached at best is not planned for the stages of a pipeline");
  StagePlan s{.plan = plan_step(program, cluster, o), .steps = {}};
  const Graph& g = program.graph();
  for (const NodeId id : distributed::order_of_run(g)) {
    s.steps.push_back(step_of(g, id, s.plan.node_seconds[id]));
    s.steps.back().busy_seconds = s.plan.node_busy_seconds[id];
  }
  return s;
}

PipelinePlan join_stages(std::vector<StagePlan> stages) {
  if (stages.empty()) throw Error("plan", "a pipeline has at least one stage");
  std::vector<Stage> all;
  for (const StagePlan& s : stages) all.emplace_back(s.steps);
  Arrivals arrivals;
  for (bool moved = true; moved;) {
    moved = false;
    for (Stage& s : all) moved = s.run(arrivals) || moved;
  }
  double end = 0;
  for (std::size_t k = 0; k < all.size(); ++k) {
    if (!all[k].done()) throw Error("plan", str_cat("stage ", k, " waits for a message that no stage sends"));
    end = std::max(end, all[k].clock() + stages[k].plan.other_seconds);
  }
  PipelinePlan p;
  for (std::size_t k = 0; k < all.size(); ++k) {
    StepPlan s = std::move(stages[k].plan);
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
