// tensor_parallel(): which weights and caches several ranks divide, read off the graph.
//
// Axes that an operation divides together are one group: the rows of the matrices of queries, keys and values, the
// heads of attention and of the cache, and the columns of the matrix behind them. A group is divided as a whole or not
// at all. It is worth the weights that it divides, and costs the numbers that the ranks exchange for each token: sums
// over one of its axes, and values that something reads whole. Groups are taken in the order of their worth for the
// cost, as long as no value would be divided twice. For a transformer these are the divisions of Megatron-LM.
#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "lightcone/distributed/sharding/rules.h"
#include "lightcone/distributed/sharding/sharder.h"
#include "lightcone/distributed/sharding/strategies.h"
#include "lightcone/passes/composites.h"

namespace lc {
namespace distributed {
namespace {

// A group must divide at least this part of all weights for each exchange that it needs, which takes its time however
// little is sent.
constexpr double kLeastPart = 1.0 / 4096;

class AxisGroups {
 public:
  AxisGroups(const Graph& g, int ranks) : g_(g), ranks_(ranks), live_(g.live()) {
    number_axes();
    for (NodeId id = 0; id < g_.size(); ++id)
      if (live_[id]) join(id);
    for (const Assignment& a : g_.assignments()) join_state(a);
    count();
  }

  // For each parameter and state that is divided, its axis.
  std::map<NodeId, std::size_t> chosen() const;

 private:
  struct Group {
    double worth = 0, sent = 0, exchanges = 0;
    bool impossible = false;
    std::vector<std::size_t> axes;
  };

  // ---- axes --------------------------------------------------------------------------------------

  void number_axes();
  std::size_t axis_of(NodeId id, std::size_t result, std::size_t axis) const { return first_[id][result] + axis; }
  std::size_t root_of(std::size_t a) {
    while (parent_[a] != a) a = parent_[a] = parent_[parent_[a]];
    return a;
  }
  void unite(std::size_t a, std::size_t b) { parent_[root_of(a)] = root_of(b); }

  // ---- how operations join them ------------------------------------------------------------------

  bool may_divide(const Dim& extent) const { return extent.is_constant() && divides(ranks_, extent); }
  // The axis of the operand's own value that an axis of its view divides with; the value's axes that nothing in the
  // view follows are read whole.
  std::vector<int> followed(const Edge& e);
  bool may_divide(const Node& n, const ShardingRule& r, std::size_t label) const;
  void join(NodeId id);
  void join_label(NodeId id, const ShardingRule& r, std::size_t label, const std::vector<std::vector<int>>& from);
  void join_state(const Assignment& a);

  // ---- what it costs -----------------------------------------------------------------------------

  void read_whole(NodeId id, std::size_t axis) { whole_.insert(axis_of(id, 0, axis)); }
  // Numbers for each token: values have as many rows as tokens are given at once.
  double elements(const Shape& s) const {
    return static_cast<double>(product(s).bounds().hi) / static_cast<double>(rows_);
  }
  bool stays(NodeId id) const;
  void count();

  const Graph& g_;
  const int ranks_;
  const std::vector<bool> live_;
  std::vector<std::vector<std::size_t>> first_;        // by node and result, the number of its first axis
  std::vector<std::pair<NodeId, std::size_t>> owner_;  // by axis: its node, and which axis of a result it is
  std::vector<std::size_t> parent_;
  std::vector<char> from_data_, from_state_;  // by node: it depends on an input that is set for each run, on a state
  std::set<NodeId> states_, next_;
  std::set<std::string> data_symbols_;
  std::int64_t rows_ = 1;
  std::set<std::size_t> whole_;                       // axes that something reads whole
  std::vector<std::size_t> cut_;                      // axes whose parts would cut blocks of a quantised format
  std::vector<std::pair<std::size_t, double>> sums_;  // an axis over which is summed, numbers of the sum
  std::map<std::size_t, Group> groups_;               // by the axis that stands for it
  double weights_ = 0;
};

void AxisGroups::number_axes() {
  for (const Assignment& a : g_.assignments()) {
    states_.insert(a.state);
    next_.insert(a.next.node);
  }
  first_.resize(g_.size()), from_data_.resize(g_.size()), from_state_.resize(g_.size());
  for (NodeId id = 0; id < g_.size(); ++id) {
    const Node& n = g_[id];
    if (n.op == Op::Result) {
      first_[id] = {first_[n.in[0].node][static_cast<std::size_t>(n.axis)]};
    } else {
      for (const TensorType& t : results_of(n)) {
        first_[id].push_back(owner_.size());
        for (std::size_t i = 0; i < t.shape.size(); ++i) owner_.emplace_back(id, i);
      }
    }
    const bool is_state = states_.contains(id);
    const bool is_data = n.op == Op::Input && !n.parameter && !is_state;
    from_data_[id] = is_data, from_state_[id] = is_state;
    for (const Edge& e : n.in) from_data_[id] |= from_data_[e.node], from_state_[id] |= from_state_[e.node];
    if (is_data && live_[id])
      for (const Dim& d : n.shape)
        for (const auto& [symbol, bounds] : d.symbols())
          data_symbols_.insert(symbol), rows_ = std::max(rows_, bounds.hi);
    if (n.op == Op::Input && n.parameter && live_[id])
      weights_ += static_cast<double>(size_of(n.dtype)) * static_cast<double>(product(n.shape).bounds().hi);
  }
  parent_.resize(owner_.size());
  std::iota(parent_.begin(), parent_.end(), std::size_t{0});
}

std::vector<int> AxisGroups::followed(const Edge& e) {
  std::vector<int> of(e.view.shape().size(), -1);
  const Shape& base = e.view.base();
  for (std::size_t a = 0; a < base.size(); ++a) {
    if (!may_divide(base[a])) continue;
    std::vector<int> shards(base.size(), 1);
    shards[a] = ranks_;
    const std::vector<int> t = tracks(e.view, shards).of;
    const auto at = std::ranges::find(t, static_cast<int>(a));
    if (at == t.end()) read_whole(e.node, a);
    else of[static_cast<std::size_t>(at - t.begin())] = static_cast<int>(a);
  }
  return of;
}

bool AxisGroups::may_divide(const Node& n, const ShardingRule& r, std::size_t label) const {
  if (r.labels[label] == LabelKind::Whole || !r.whole_pieces(label, ranks_)) return false;
  const auto fit = [&](const std::vector<int>& labels, const Shape& shape) {
    for (std::size_t i = 0; i < labels.size(); ++i)
      if (labels[i] == static_cast<int>(label) && !may_divide(shape[i])) return false;
    return true;
  };
  for (std::size_t k = 0; k < n.in.size(); ++k)
    if (!fit(r.operands[k], n.in[k].view.shape())) return false;
  const auto results = results_of(n);
  for (std::size_t k = 0; k < results.size(); ++k)
    if (!fit(r.results[k], results[k].shape)) return false;
  return true;
}

void AxisGroups::join(NodeId id) {
  const Node& n = g_[id];
  if (n.in.empty() || n.op == Op::Result) return;
  std::vector<std::vector<int>> from;
  for (const Edge& e : n.in) from.push_back(followed(e));
  const std::optional<ShardingRule> r = sharding_rule(g_, n);
  std::vector<bool> divided(r ? r->labels.size() : 0);
  for (std::size_t l = 0; l < divided.size(); ++l)
    if ((divided[l] = may_divide(n, *r, l))) join_label(id, *r, l, from);
  for (std::size_t k = 0; k < n.in.size(); ++k)
    for (std::size_t i = 0; i < from[k].size(); ++i) {
      const int label = r ? r->operands[k][i] : -1;
      const bool index = r && label >= 0 && static_cast<int>(k) == r->index &&
                         r->labels[static_cast<std::size_t>(label)] == LabelKind::Indexed;
      if (from[k][i] < 0) continue;
      const auto axis = static_cast<std::size_t>(from[k][i]);
      if (label < 0 || index || !divided[static_cast<std::size_t>(label)]) read_whole(n.in[k].node, axis);
      if (label >= 0 && !r->whole_pieces(static_cast<std::size_t>(label), ranks_))
        cut_.push_back(axis_of(n.in[k].node, 0, axis));
    }
}

void AxisGroups::join_label(NodeId id, const ShardingRule& r, std::size_t label,
                            const std::vector<std::vector<int>>& from) {
  const Node& n = g_[id];
  std::optional<std::size_t> one;
  const auto add = [&](std::size_t axis) {
    if (one) unite(axis, *one);
    else one = axis;
  };
  // A value that depends on nothing but numbers is everywhere, and each rank takes what it needs of it.
  for (std::size_t k = 0; k < n.in.size(); ++k)
    for (std::size_t i = 0; i < from[k].size(); ++i)
      if (const Node& p = g_[n.in[k].node];
          r.operands[k][i] == static_cast<int>(label) && from[k][i] >= 0 && (p.op == Op::Input || !p.in.empty()))
        add(axis_of(n.in[k].node, 0, static_cast<std::size_t>(from[k][i])));
  bool in_result = false;
  const auto results = results_of(n);
  for (std::size_t k = 0; k < results.size(); ++k)
    for (std::size_t i = 0; i < r.results[k].size(); ++i)
      if (r.results[k][i] == static_cast<int>(label)) add(axis_of(id, k, i)), in_result = true;
  if (one && !in_result)
    for (const TensorType& t : results) sums_.emplace_back(*one, 2 * elements(t.shape));
}

void AxisGroups::join_state(const Assignment& a) {
  const std::vector<int> from = followed(a.next);
  for (std::size_t i = 0; i < from.size(); ++i)
    if (from[i] >= 0) unite(axis_of(a.next.node, 0, static_cast<std::size_t>(from[i])), axis_of(a.state, 0, i));
}

// Whether a value is never sent whole: weights, and all that grows with the context.
bool AxisGroups::stays(NodeId id) const {
  if (!from_data_[id] || states_.contains(id) || next_.contains(id)) return true;
  for (const Dim& d : g_[id].shape)
    for (const auto& [symbol, bounds] : d.symbols())
      if (!data_symbols_.contains(symbol)) return true;
  return false;
}

void AxisGroups::count() {
  for (std::size_t a = 0; a < owner_.size(); ++a) {
    const auto [id, axis] = owner_[a];
    const Node& n = g_[id];
    if (!live_[id] || (n.in.empty() && n.op != Op::Input)) continue;
    Group& group = groups_[root_of(a)];
    group.axes.push_back(a);
    if (n.op != Op::Input) continue;
    if (!may_divide(n.shape[axis])) group.impossible = true;
    if (n.parameter)
      group.worth += static_cast<double>(size_of(n.dtype)) * static_cast<double>(product(n.shape).bounds().hi);
  }
  for (const Root& r : g_.roots())
    for (std::size_t i = 0; i < g_[r.edge.node].shape.size(); ++i) whole_.insert(axis_of(r.edge.node, 0, i));
  for (const auto& [axis, numbers] : sums_) groups_[root_of(axis)].sent += numbers, ++groups_[root_of(axis)].exchanges;
  for (const std::size_t a : whole_) {
    Group& group = groups_[root_of(a)];
    group.sent += elements(g_[owner_[a].first].shape), ++group.exchanges;
    if (stays(owner_[a].first)) group.impossible = true;
  }
  for (const std::size_t a : cut_) groups_[root_of(a)].impossible = true;
  for (auto& [one, group] : groups_) {  // no value is divided twice among the same ranks
    std::set<NodeId> values;
    for (const std::size_t a : group.axes)
      if (!values.insert(owner_[a].first).second && g_[owner_[a].first].results.empty()) group.impossible = true;
  }
}

std::map<NodeId, std::size_t> AxisGroups::chosen() const {
  std::vector<const Group*> best;
  for (const auto& [one, group] : groups_)
    if (!group.impossible && group.worth > 0 && group.worth >= group.exchanges * kLeastPart * weights_)
      best.push_back(&group);
  std::ranges::stable_sort(best,
                           [](const Group* a, const Group* b) { return a->sent * b->worth < b->sent * a->worth; });
  std::map<NodeId, std::size_t> divided, inputs;
  for (const Group* group : best) {
    if (std::ranges::any_of(group->axes, [&](std::size_t a) { return divided.contains(owner_[a].first); })) continue;
    for (const std::size_t a : group->axes) {
      const auto [id, axis] = owner_[a];
      divided.emplace(id, axis);
      if (g_[id].op == Op::Input && (g_[id].parameter || states_.contains(id))) inputs.emplace(id, axis);
    }
  }
  return inputs;
}

}  // namespace
}  // namespace distributed

ShardSpecs tensor_parallel(const Graph& g, const std::string& mesh_axis, int ranks) {
  if (ranks < 1) throw Error("tensor_parallel", str_cat(ranks, " ranks: at least 1 is needed"));
  ShardSpecs specs;
  if (ranks == 1) return specs;
  PassLog ignored;
  const Graph written_out = inline_transparent(g, ignored);
  for (const auto& [id, axis] : distributed::AxisGroups(written_out, ranks).chosen()) {
    ShardSpec s{written_out[id].name, std::vector<std::string>(axis + 1)};
    s.axes.back() = mesh_axis;
    specs.push_back(std::move(s));
  }
  if (specs.empty())
    throw Error("tensor_parallel", str_cat("there is nothing in this graph that ", ranks, " ranks can divide"));
  return specs;
}

}  // namespace lc
