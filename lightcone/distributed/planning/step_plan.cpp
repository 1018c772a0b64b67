#include "lightcone/distributed/planning/step_plan.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <queue>
#include <set>
#include <utility>

#include "lightcone/base/error.h"
#include "lightcone/device/kernel.h"
#include "lightcone/device/prepared.h"
#include "lightcone/distributed/exchange.h"
#include "lightcone/distributed/planning/walk.h"
#include "lightcone/runtime/profile/profiler.h"
#include "lightcone/runtime/profile/timeline.h"

namespace lc {
namespace {

using distributed::Exchanged;
using distributed::exchanging;
using distributed::ExchangingKernel;
using distributed::Messages;

std::size_t number(const Dim& d, const char* what) {
  const auto n = d.constant();
  if (!n) throw Error("plan", str_cat(what, " depends on a size that is open: ", d));
  return static_cast<std::size_t>(*n);
}

// ---- memory ---------------------------------------------------------------------------------------------------------

PlannedMemory memory_of(const Graph& g, const MemoryPlan& plan) {
  PlannedMemory m;
  const auto live = g.live();
  std::set<NodeId> states, gradients;
  for (const Assignment& a : g.assignments()) states.insert(a.state);
  for (NodeId id = 0; id < g.size(); ++id) {
    if (!live[id] || g[id].op != Op::Input) continue;
    (g[id].parameter ? m.parameters : states.contains(id) ? m.states : m.inputs) += plan.nodes[id].bytes;
  }
  for (const Assignment& a : g.assignments())
    for (const Edge& e : g[a.next.node].in)
      if (g[e.node].op == Op::Kernel && plan.nodes[e.node].bytes == plan.nodes[a.state].bytes) gradients.insert(e.node);
  const MemoryTimeline t = memory_timeline(g, plan);
  if (!t.steps.empty()) {
    const std::size_t peak = t.peak();
    for (const MemorySpan& s : t.spans) {
      if (s.scratch || s.first > peak || s.last < peak) continue;
      if (gradients.contains(s.node)) m.gradients += s.bytes;
      else if (exchanging(g[s.node])) m.gathered += s.bytes;
    }
  }
  m.values = plan.arena_bytes - m.gathered - m.gradients;
  m.program = plan.total_bytes();
  return m;
}

// ---- time -----------------------------------------------------------------------------------------------------------

// The nodes that a run computes, in its order.
std::vector<NodeId> order_of(const Graph& g) {
  const auto live = g.live();
  const Prepared prepared = find_prepared(g);
  std::vector<NodeId> order;
  for (NodeId id = 0; id < g.size(); ++id)
    if (live[id] && g[id].op != Op::Input && !prepared.node[id]) order.push_back(id);
  return order;
}

// When all is done if each exchange begins as soon as its operand and the link are there, and kernels run in the order
// in which they can.
class Overlapped {
 public:
  Overlapped(const Graph& g, const std::vector<NodeId>& order, const std::vector<double>& seconds)
      : g_(g), seconds_(seconds), waits_(g.size()), ready_(g.size()), readers_(g.size()) {
    const std::set<NodeId> computed(order.begin(), order.end());
    for (const NodeId id : order) {
      std::set<NodeId> operands;
      for (const Edge& e : g[id].in)
        if (computed.contains(e.node) && operands.insert(e.node).second) readers_[e.node].push_back(id);
      waits_[id] = operands.size();
      if (operands.empty()) pending_.emplace(0.0, id);
    }
  }

  double run() {
    double clock = 0, link = 0, end = 0;
    std::set<NodeId> can_run;
    while (!pending_.empty() || !can_run.empty()) {
      if (can_run.empty()) clock = std::max(clock, pending_.top().first);
      while (!pending_.empty() && pending_.top().first <= clock) {
        const auto [ready, id] = pending_.top();
        pending_.pop();
        if (!exchanging(g_[id])) {
          can_run.insert(id);
          continue;
        }
        link = std::max(link, ready) + seconds_[id];
        finish(id, link);
        end = std::max(end, link);
      }
      if (can_run.empty()) continue;
      const NodeId id = *can_run.begin();
      can_run.erase(can_run.begin());
      clock += seconds_[id];
      finish(id, clock);
    }
    return std::max(clock, end);
  }

 private:
  void finish(NodeId id, double at) {
    for (const NodeId reader : readers_[id]) {
      ready_[reader] = std::max(ready_[reader], at);
      if (--waits_[reader] == 0) pending_.emplace(ready_[reader], reader);
    }
  }

  const Graph& g_;
  const std::vector<double>& seconds_;
  std::vector<std::size_t> waits_;
  std::vector<double> ready_;
  std::vector<std::vector<NodeId>> readers_;
  using Event = std::pair<double, NodeId>;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> pending_;
};

class Planner {
 public:
  Planner(const Program& program, const Cluster& cluster, const StepPlanOptions& o)
      : g_(program.graph()), memory_(program.plan()), cluster_(cluster), o_(o), seconds_(g_.size()) {
    turns_ = std::max(1.0, cluster.ranks_per_processor);
  }

  StepPlan run() {
    plan_.memory = memory_of(g_, memory_);
    const std::vector<NodeId> order = order_of(g_);
    for (const NodeId id : order) plan_.steps.push_back(step(id));
    distributed::Walk walk(plan_.steps);
    walk.run(nullptr);
    plan_.other_seconds = o_.other_seconds;
    plan_.seconds = walk.clock() + plan_.other_seconds;
    if (o_.overlap) plan_.seconds = Overlapped(g_, order, seconds_).run() + plan_.other_seconds;
    plan_.exposed_seconds = plan_.seconds - plan_.computing_seconds();
    return std::move(plan_);
  }

 private:
  PlannedStep step(NodeId id) {
    PlannedStep s{.node = id};
    const ExchangingKernel* k = exchanging(g_[id]);
    if (!k) {
      kernel(id);
      s.seconds = seconds_[id];
      return s;
    }
    const Exchanged e = k->exchanged();
    s.message = e.call.message;
    if (e.half == Exchanged::Half::Wait) {
      s.kind = PlannedStep::Kind::Wait, s.node = g_[id].in[0].node;
    } else if (e.received()) {
      s.kind = PlannedStep::Kind::Receive;  // the plan of the other rank counts the message
    } else {
      s.kind = e.half == Exchanged::Half::Start ? PlannedStep::Kind::Start : PlannedStep::Kind::Exchange;
      s.sends = e.call.operation == Collective::Operation::Send;
      s.busy_seconds = exchange(id, e), s.seconds = seconds_[id];
    }
    return s;
  }

  void kernel(NodeId id) {
    const bool is_part = g_[id].op == Op::Kernel && g_[id].kernel->part();
    if (is_part) return;
    const NodeWork work = work_of(g_, memory_, id);
    const auto flops = static_cast<double>(number(work.flops, "arithmetic")),
               bytes = static_cast<double>(number(work.read + work.written, "memory traffic"));
    ++plan_.kernels;
    plan_.flops += flops, plan_.memory_traffic += bytes;
    const double computing = cluster_.flops_per_second > 0 ? flops / cluster_.flops_per_second : 0,
                 moving = cluster_.bytes_per_second > 0 ? bytes / cluster_.bytes_per_second : 0;
    const bool measured = !o_.kernel_seconds.empty();
    seconds_[id] = measured ? o_.kernel_seconds.at(id) : turns_ * std::max(computing, moving);
    (computing >= moving ? plan_.arithmetic_seconds : plan_.traffic_seconds) += seconds_[id];
  }

  // Returns how long it keeps a processor busy that kernels need.
  double exchange(NodeId id, const Exchanged& e) {
    std::vector<std::size_t> pieces;
    for (const Dim& d : e.elements) pieces.push_back(number(d, "an exchange"));
    const std::size_t n = std::accumulate(pieces.begin(), pieces.end(), std::size_t{0});
    const Collective c{.operation = e.call.operation,
                       .reduction = e.call.reduction,
                       .dtype = e.type,
                       .n = n,
                       .group = e.call.group,
                       .place = e.call.place,
                       .root = e.call.root,
                       .source = e.call.source};
    const Messages m = distributed::messages_of(c, cluster_, pieces);
    const double seconds = distributed::seconds_of(m, cluster_);
    seconds_[id] = seconds;
    add_up(m, seconds);
    auto known = std::ranges::find_if(plan_.collectives, [&](const PlannedCollective& p) {
      return p.operation == c.operation && p.dtype == c.dtype && p.n == n && p.axes == e.call.axes &&
             p.arrays == pieces.size();
    });
    if (known == plan_.collectives.end()) {
      plan_.collectives.push_back({c.operation, c.dtype, n, pieces.size(), e.call.axes, c.group.size(),
                                   what_it_computes(g_[id]), 0, m, seconds});
      known = plan_.collectives.end() - 1;
    }
    ++known->times;
    return (1 - std::clamp(cluster_.spare_processors, 0.0, 1.0)) * distributed::processor_seconds_of(m, cluster_);
  }

  void add_up(const Messages& m, double seconds) {
    const double copies = turns_ * cluster_.within.seconds_per_byte * m.within.bytes;
    plan_.exchange_seconds += seconds;
    plan_.bytes_between += m.between.bytes, plan_.bytes_within += m.within.bytes;
    plan_.between_seconds += cluster_.between.seconds_per_byte * m.between.bytes;
    plan_.within_seconds += copies;
    plan_.latency_seconds += std::max(cluster_.between.seconds(m.between.rounds, m.between.messages, 0),
                                      turns_ * cluster_.within.seconds(m.within.rounds, m.within.messages, 0));
    if (cluster_.reduced_bytes_per_second > 0)
      plan_.sum_seconds += turns_ * m.reduced_bytes / cluster_.reduced_bytes_per_second;
    plan_.memory.transport = std::max(plan_.memory.transport, m.buffer_bytes);
  }

  const Graph& g_;
  const MemoryPlan& memory_;
  const Cluster& cluster_;
  const StepPlanOptions& o_;
  std::vector<double> seconds_;  // by NodeId
  double turns_ = 1;
  StepPlan plan_;
};

}  // namespace

std::string StepPlan::bound() const {
  // Exchanges that kernels hide bound nothing; what is exposed belongs to what exchanges spend most on.
  const double exchanges = std::max(exchange_seconds, 1e-300), part = exposed_seconds / exchanges;
  const std::array<std::pair<double, const char*>, 7> all{{{arithmetic_seconds, "arithmetic"},
                                                           {traffic_seconds, "memory traffic"},
                                                           {between_seconds * part, "the links between machines"},
                                                           {within_seconds * part, "the links within a machine"},
                                                           {latency_seconds * part, "the latency of messages"},
                                                           {sum_seconds * part, "sums of exchanged numbers"},
                                                           {waiting_seconds, "waiting for other stages"}}};
  return std::ranges::max_element(all, {}, &std::pair<double, const char*>::first)->second;
}

StepPlan plan_step(const Program& program, const Cluster& cluster, const StepPlanOptions& o) {
  if (cluster.ranks_per_machine < 1) throw Error("plan", "a machine has at least one rank");
  if (o.kernel_seconds.empty() && cluster.flops_per_second <= 0 && cluster.bytes_per_second <= 0)
    throw Error("plan", "neither the rates of the processor nor measured seconds of the kernels are known");
  if (!o.kernel_seconds.empty() && o.kernel_seconds.size() != program.graph().size())
    throw Error("plan", str_cat(o.kernel_seconds.size(), " measured seconds for ", program.graph().size(), " nodes"));
  return Planner(program, cluster, o).run();
}

}  // namespace lc
