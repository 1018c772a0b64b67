#include "lightcone/distributed/sharding/stages.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>

#include "lightcone/base/error.h"
#include "lightcone/composites/composites.h"
#include "lightcone/passes/gradient_marks.h"

namespace lc::distributed {
namespace {

double elements(const Shape& s) { return static_cast<double>(product(s).bounds().hi); }
double bytes_of(const Node& n) { return elements(n.shape) * static_cast<double>(size_of(n.dtype)); }

class Finder {
 public:
  Finder(const Graph& g, int n, const std::function<double(const Graph&, NodeId)>& cost)
      : g_(g), n_(n), cost_(cost), live_(g.live()), data_(g.size()), varies_(g.size()), present_(g.size()) {
    stages_.of.assign(g.size(), kUnknown), stages_.backward.resize(g.size());
    for (const Assignment& a : g.assignments()) next_[a.state] = a.next.node, live_[a.state] = true;
  }

  Stages run() {
    classify();
    cut();
    go_backward_to_parameters();
    follow_names();
    place_the_rest();
    for (NodeId id = 0; id < g_.size(); ++id) {
      int& s = stages_.of[id];
      if (g_[id].op == Op::Result) s = stages_.of[g_[id].in[0].node];
      if (s == kUnknown) s = kEveryStage;
    }
    return std::move(stages_);
  }

 private:
  static constexpr int kUnknown = -2;
  bool is_input(NodeId id) const { return g_[id].op == Op::Input; }
  bool is_data(NodeId id) const { return is_input(id) && !g_[id].parameter && !next_.contains(id); }
  bool forward(NodeId id) const { return data_[id] && varies_[id] && !stages_.backward[id]; }

  // What depends on data and numbers alone, or on states that no parameter has a part in, is computed wherever it is
  // needed.
  void classify() {
    for (NodeId id = 0; id < g_.size(); ++id) {
      const Node& n = g_[id];
      data_[id] = is_data(id), varies_[id] = n.parameter;
      stages_.backward[id] = is(n, gradient_seed());
      for (const Edge& e : n.in) {
        data_[id] |= data_[e.node], varies_[id] |= varies_[e.node];
        stages_.backward[id] |= stages_.backward[e.node];
      }
    }
    // A state is as its next value; one that others change is not known at once.
    for (bool changed = true; changed;) {
      changed = false;
      for (const auto& [state, next] : next_)
        if (varies_[next] && !varies_[state]) varies_[state] = changed = true;
      for (NodeId id = 0; changed && id < g_.size(); ++id)
        for (const Edge& e : g_[id].in) varies_[id] |= varies_[e.node];
    }
    for (NodeId id = 0; id < g_.size(); ++id)
      if (!varies_[id]) stages_.of[id] = kEveryStage;
  }

  // ---- the forward pass -------------------------------------------------------------------------

  // The bytes of values that are made at node k or before and read after it, by k.
  std::vector<double> crossing() const {
    std::vector<NodeId> last(g_.size(), 0);
    for (NodeId id = 0; id < g_.size(); ++id)
      if (live_[id] && forward(id))
        for (const Edge& e : g_[id].in) last[e.node] = id;
    std::vector<double> change(g_.size() + 1);
    for (NodeId id = 0; id < g_.size(); ++id)
      if (forward(id) && last[id] > id) change[id] += bytes_of(g_[id]), change[last[id]] -= bytes_of(g_[id]);
    for (std::size_t k = 1; k < change.size(); ++k) change[k] += change[k - 1];
    return change;
  }

  void cut() {
    std::vector<NodeId> nodes;
    std::vector<double> until;  // cost up to and with each of them
    double total = 0;
    for (NodeId id = 0; id < g_.size(); ++id)
      if (live_[id] && forward(id)) nodes.push_back(id), until.push_back(total += cost_(g_, id));
    if (n_ == 1) {
      for (const NodeId id : nodes) stages_.of[id] = 0;
      stages_.cost = {total};
      return;
    }
    if (nodes.size() < static_cast<std::size_t>(n_))
      throw Error("shard", str_cat("a pipeline of ", n_, " stages needs more than ", nodes.size(), " operations"));
    const std::vector<double> bytes = crossing();
    std::size_t first = 0;
    for (int s = 0; s < n_; ++s) {
      const std::size_t end = s + 1 == n_ ? nodes.size() : end_of_stage(s, first, nodes, until, bytes);
      for (std::size_t k = first; k < end; ++k) stages_.of[nodes[k]] = s;
      stages_.cost.push_back(until[end - 1] - (first ? until[first - 1] : 0));
      if (s + 1 < n_) stages_.bytes_sent.push_back(bytes[nodes[end - 1]]);
      first = end;
    }
  }

  // Among the cuts within 0.4 of a stage of the ideal one, the nearest of those that few bytes cross.
  std::size_t end_of_stage(int s, std::size_t first, const std::vector<NodeId>& nodes, const std::vector<double>& until,
                           const std::vector<double>& bytes) const {
    const double each = until.back() / n_, ideal = each * (s + 1);
    const std::size_t most = nodes.size() - static_cast<std::size_t>(n_ - s - 1);
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t k = first + 1; k <= most; ++k)
      if (std::abs(until[k - 1] - ideal) <= 0.4 * each) least = std::min(least, bytes[nodes[k - 1]]);
    std::size_t best = 0;
    for (std::size_t k = first + 1; k <= most; ++k) {
      const double off = std::abs(until[k - 1] - ideal);
      const bool few = bytes[nodes[k - 1]] <= 1.1 * least && off <= 0.4 * each;
      if ((few || std::isinf(least)) && (best == 0 || off < std::abs(until[best - 1] - ideal))) best = k;
    }
    return best;
  }

  // ---- parameters -------------------------------------------------------------------------------

  // What depends on parameters alone, and these themselves, is where the forward pass reads it first.
  void go_backward_to_parameters() {
    for (NodeId id = static_cast<NodeId>(g_.size()); id-- > 0;) {
      if (!live_[id] || stages_.of[id] < 0) continue;
      for (const Edge& e : g_[id].in) {
        int& s = stages_.of[e.node];
        const bool moves = !data_[e.node] && !stages_.backward[e.node];
        if (s == kUnknown || (moves && s >= 0)) s = s < 0 ? stages_.of[id] : std::min(s, stages_.of[id]);
      }
    }
  }

  // "<parameter>.exp_avg" is where the parameter is.
  void follow_names() {
    std::map<std::string, int, std::less<>> homes;
    for (NodeId id = 0; id < g_.size(); ++id)
      if (is_input(id) && stages_.of[id] >= 0) homes[g_[id].name] = stages_.of[id];
    for (NodeId id = 0; id < g_.size(); ++id) {
      if (!is_input(id) || stages_.of[id] != kUnknown) continue;
      const auto home = homes.find(g_[id].name.substr(0, g_[id].name.rfind('.')));
      if (home != homes.end()) stages_.of[id] = home->second;
    }
  }

  // ---- the backward pass ------------------------------------------------------------------------

  // Each node is computed where most bytes of its operands are already, in the earliest such stage: a gradient goes to
  // the values of the forward pass that it meets.
  void place_the_rest() {
    for (NodeId id = 0; id < g_.size(); ++id) {
      const Node& n = g_[id];
      if (is_input(id) || stages_.of[id] == kEveryStage) continue;
      if (stages_.of[id] == kUnknown) stages_.of[id] = nearest(n);
      if (stages_.of[id] < 0) continue;
      present_[id].insert(stages_.of[id]);
      for (const Edge& e : n.in)
        if (stages_.of[e.node] >= 0) present_[e.node].insert(stages_.of[id]);
    }
  }

  int nearest(const Node& n) {
    std::map<int, double> there;
    for (const Edge& e : n.in) {
      if (stages_.of[e.node] == kEveryStage) continue;
      if (stages_.of[e.node] == kUnknown) continue;  // an input that nothing else has placed: it comes here
      present_[e.node].insert(stages_.of[e.node]);
      for (const int s : present_[e.node]) there[s] += bytes_of(g_[e.node]);
    }
    int best = there.empty() ? 0 : there.begin()->first;
    for (const auto& [s, bytes] : there)
      if (bytes > there[best]) best = s;
    for (const Edge& e : n.in)
      if (stages_.of[e.node] == kUnknown) stages_.of[e.node] = best;
    return best;
  }

  const Graph& g_;
  int n_;
  const std::function<double(const Graph&, NodeId)>& cost_;
  std::vector<bool> live_;
  std::vector<char> data_, varies_;     // depends on data; on parameters
  std::vector<std::set<int>> present_;  // the stages that have a value
  std::map<NodeId, NodeId> next_;       // for each state
  Stages stages_;
};

}  // namespace

double operation_cost(const Graph& g, NodeId id) {
  const Node& n = g[id];
  const auto operand = [&](std::size_t k) { return n.in[k].view.shape(); };
  if (is(n, builtin::attention()) || is(n, builtin::attention_gradients())) {
    const Shape keys = operand(1);
    return 2 * elements(operand(0)) * elements({keys[keys.size() - 2]});
  }
  if (is(n, builtin::gather_mm())) return elements(operand(0)) * elements({operand(1)[1]});
  double all = 0;
  for (const TensorType& t : n.results) all += elements(t.shape);
  return n.results.empty() ? elements(n.shape) : all;
}

Stages find_stages(const Graph& g, int n, const std::function<double(const Graph&, NodeId)>& cost) {
  return Finder(g, n, cost).run();
}

Ticks pipeline_ticks(PipelineSchedule schedule, int stages, int parts) {
  const auto n = static_cast<std::size_t>(stages), m = static_cast<std::size_t>(parts);
  Ticks t;
  t.forward.resize(n), t.backward.resize(n);
  const auto done = [&](const std::vector<int>& row, std::size_t part) {
    return part < row.size() && row[part] < t.total;
  };
  for (; std::ranges::any_of(t.backward, [&](const auto& row) { return row.size() < m; }); ++t.total)
    for (std::size_t s = 0; s < n; ++s) {
      auto &f = t.forward[s], &b = t.backward[s];
      const bool f_ready = f.size() < m && (s == 0 || done(t.forward[s - 1], f.size()));
      const bool b_ready = b.size() < m && done(f, b.size()) && (s + 1 == n || done(t.backward[s + 1], b.size()));
      // One forward, one backward: a stage keeps the activations of as many parts as stages follow it.
      const std::size_t room = schedule == PipelineSchedule::AllForwardAllBackward ? m : n - s;
      const bool full = f.size() - b.size() >= room || f.size() == m;
      if (full ? b_ready : false) b.push_back(t.total);
      else if (!full && f_ready) f.push_back(t.total);
    }
  return t;
}

}  // namespace lc::distributed
