// The choice of what an operation divides.
#include <algorithm>
#include <cmath>

#include "lightcone/distributed/sharding/sharder.h"

namespace lc::distributed {
namespace {

// Rows are chosen on the ranks that have them, if it is known how many that are.
bool may_index(const Plan& p, int label, std::optional<std::size_t> operand) {
  for (std::size_t k = 0; k < p.in.size(); ++k)
    for (std::size_t i = 0; i < p.rule.operands[k].size(); ++i)
      if (p.rule.operands[k][i] == label && !p.in[k].view.shape()[i].is_constant()) return false;
  return !operand || static_cast<int>(*operand) != p.rule.index;
}

}  // namespace

bool Plan::uses(int mesh_axis) const {
  return std::ranges::any_of(axes, [&](const Axes& a) { return std::ranges::find(a, mesh_axis) != a.end(); });
}
std::vector<Axes> Plan::of(const std::vector<int>& labels) const {
  std::vector<Axes> all;
  for (const int l : labels) all.push_back(l < 0 ? Axes() : axes[static_cast<std::size_t>(l)]);
  return all;
}

std::vector<TensorType> results_of(const Node& n) {
  return n.results.empty() ? std::vector<TensorType>{{n.dtype, n.shape}} : n.results;
}

Plan Sharder::plan(NodeId id) {
  const Node& n = src_[id];
  Plan p;
  if (auto rule = sharding_rule(src_, n)) {
    p.rule = std::move(*rule);
  } else {
    for (const Edge& e : n.in) p.rule.operands.emplace_back(e.view.shape().size(), -1);
    for (const TensorType& t : results_of(n)) p.rule.results.emplace_back(t.shape.size(), -1);
    note_whole(n);
  }
  p.in = n.in;
  for (const TensorType& t : results_of(n)) p.out.push_back(t.shape);
  p.own_labels = static_cast<int>(p.rule.labels.size());
  if (!p.rule.local) split_labels(n, p);
  p.axes.resize(p.rule.labels.size());
  for (const std::size_t k : by_weight(n)) {
    const std::vector<Axes> have = seen(p.in[k]);
    for (std::size_t i = 0; i < have.size(); ++i) offer(n, p, p.rule.operands[k][i], have[i], k);
  }
  if (hints_[id] && p.rule.results.size() == 1)
    if (p.out[0] == n.shape)
      for (std::size_t i = 0; i < n.shape.size(); ++i) offer(n, p, p.rule.results[0][i], hints_[id]->axes[i], {});
  let_rows_travel(n, p);
  keep_sums(n, p);
  return p;
}

namespace {

// Replaces each axis of a label by two, of which the inner one gets the new label.
void split_axes(std::vector<int>& labels, Shape& shape, int label, const Dim& outer, int inner) {
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] != label) continue;
    const auto at = static_cast<std::ptrdiff_t>(i);
    const Dim rest = shape[i] / outer;
    shape[i] = outer;
    shape.insert(shape.begin() + at + 1, rest);
    labels.insert(labels.begin() + at + 1, inner);
    ++i;
  }
}
bool can_split(const std::vector<int>& labels, const Shape& shape, int label, const Dim& outer) {
  for (std::size_t i = 0; i < labels.size(); ++i)
    if (labels[i] == label && (outer == Dim(0) || !(shape[i] % outer == Dim(0)))) return false;
  return true;
}

}  // namespace

// Rows of [texts, length] in one axis are divided along the length: for the rule they are two axes.
void Sharder::split_labels(const Node& n, Plan& p) const {
  const auto find = [&]() -> std::optional<std::pair<int, Dim>> {
    for (const std::size_t k : by_weight(n)) {
      const Tracks t = tracks(view_of(p.in[k]), shards(held(p.in[k]).s));
      for (std::size_t i = 0; i < t.outer.size(); ++i) {
        const int label = p.rule.operands[k][i];
        if (label < 0 || !t.outer[i]) continue;
        const LabelKind kind = p.rule.labels[static_cast<std::size_t>(label)];
        bool possible = kind != LabelKind::Whole && kind != LabelKind::Indexed;
        for (std::size_t o = 0; o < p.in.size(); ++o)
          possible = possible && can_split(p.rule.operands[o], p.in[o].view.shape(), label, *t.outer[i]);
        for (std::size_t o = 0; o < p.out.size(); ++o)
          possible = possible && can_split(p.rule.results[o], p.out[o], label, *t.outer[i]);
        if (possible) return std::pair(label, *t.outer[i]);
      }
    }
    return std::nullopt;
  };
  while (const auto split = find()) {
    const auto [label, outer] = *split;
    const int inner = static_cast<int>(p.rule.labels.size());
    p.rule.labels.push_back(p.rule.labels[static_cast<std::size_t>(label)]);
    for (std::size_t k = 0; k < p.in.size(); ++k) {
      Shape s = p.in[k].view.shape();
      split_axes(p.rule.operands[k], s, label, outer, inner);
      if (s != p.in[k].view.shape()) p.in[k].view = p.in[k].view.reshape(s);
    }
    for (std::size_t k = 0; k < p.out.size(); ++k) split_axes(p.rule.results[k], p.out[k], label, outer, inner);
  }
}

// A table whose rows are chosen by indices, and the indices, are divided along one axis of the mesh: experts and texts,
// say. Either every rank gets the whole table, or it gets all rows, answers for its part of the table, and results are
// added up where their rows were. That is what an all_to_all of tokens does if nobody knows beforehand which ranks they
// go to: all sizes are those of the graph.
void Sharder::let_rows_travel(const Node& n, Plan& p) const {
  const auto bytes = [](DType type, const Shape& s) {
    return static_cast<double>(size_of(type)) * static_cast<double>(product(s).bounds().hi);
  };
  const auto table_label = std::ranges::find(p.rule.labels, LabelKind::Indexed) - p.rule.labels.begin();
  if (table_label == std::ssize(p.rule.labels) || !p.axes[static_cast<std::size_t>(table_label)].empty()) return;
  for (std::size_t t = 0; t < n.in.size(); ++t) {
    const auto& labels = p.rule.operands[t];
    const auto at = std::ranges::find(labels, static_cast<int>(table_label)) - labels.begin();
    if (at == std::ssize(labels)) continue;
    const Axes axes = seen(p.in[t])[static_cast<std::size_t>(at)];
    const auto rows = std::ranges::find(p.axes, axes) - p.axes.begin();
    const auto& result = p.rule.results[0];
    if (axes.size() != 1 || exchanger_.any_serial(axes) || rows == std::ssize(p.axes) ||
        std::ranges::find(result, static_cast<int>(rows)) == result.end() ||
        std::ranges::find(labels, static_cast<int>(rows)) != labels.end() ||
        !may_index(p, static_cast<int>(table_label), t))
      return;
    double moved = bytes(n.dtype, n.shape);
    for (std::size_t k = 0; k < n.in.size(); ++k)
      if (std::ranges::find(p.rule.operands[k], static_cast<int>(rows)) != p.rule.operands[k].end())
        moved += bytes(src_[n.in[k].node].dtype, n.in[k].view.shape());
    if (moved >= bytes(src_[n.in[t].node].dtype, n.in[t].view.shape())) return;
    p.axes[static_cast<std::size_t>(table_label)] = axes;
    p.axes[static_cast<std::size_t>(rows)].clear();
    p.travels = static_cast<int>(rows);
    return;
  }
}

// Operands that depend on data come first, then large ones.
std::vector<std::size_t> Sharder::by_weight(const Node& n) const {
  std::vector<std::size_t> order;
  for (std::size_t k = 0; k < n.in.size(); ++k) order.push_back(k);
  const auto weight = [&](std::size_t k) {
    const Node& from = src_[n.in[k].node];
    return std::pair(static_cast<bool>(depends_on_data_[n.in[k].node]),
                     static_cast<double>(size_of(from.dtype)) * static_cast<double>(product(from.shape).bounds().hi));
  };
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return weight(a) > weight(b); });
  return order;
}

// Divides the axes of a label, unless that is impossible or they are divided already.
void Sharder::offer(const Node& n, Plan& p, int label, const Axes& axes, std::optional<std::size_t> operand) const {
  if (label < 0 || axes.empty()) return;
  const auto l = static_cast<std::size_t>(label);
  const LabelKind kind = p.rule.labels[l];
  if (!p.axes[l].empty() || kind == LabelKind::Whole || !p.rule.whole_pieces(l, mesh_.extent(axes)) ||
      (kind == LabelKind::Indexed && !may_index(p, label, operand)))
    return;
  if (p.rule.together && p.rule.together->second == label) {
    const auto first = static_cast<std::size_t>(p.rule.together->first);
    if (exchanger_.any_serial(axes)) return;
    offer(n, p, p.rule.together->first, axes, operand);
    if (p.axes[first] != axes) return;
  } else if (std::ranges::any_of(axes, [&](int a) { return p.uses(a); })) {
    return;
  }
  const int ranks = mesh_.extent(axes);
  const auto fits = [&](const std::vector<int>& labels, const Shape& shape) {
    for (std::size_t i = 0; i < labels.size(); ++i)
      if (labels[i] == label && !divides(ranks, shape[i])) return false;
    return true;
  };
  for (std::size_t k = 0; k < n.in.size(); ++k)
    if (!fits(p.rule.operands[k], p.in[k].view.shape())) return;
  for (std::size_t k = 0; k < p.out.size(); ++k)
    if (!fits(p.rule.results[k], p.out[k])) return;
  p.axes[l] = axes;
}
// Sums of parts stay what they are through linear operations.
void Sharder::keep_sums(const Node& n, Plan& p) const {
  if (p.rule.linear.empty()) return;
  for (int a = 0; a < static_cast<int>(mesh_.axes().size()); ++a) {
    std::size_t sums = 0;
    bool kept = !p.uses(a);
    for (std::size_t k = 0; k < n.in.size(); ++k) {
      const bool is_sum = std::ranges::find(held(n.in[k]).s.partial, a) != held(n.in[k]).s.partial.end();
      sums += is_sum;
      kept = kept && (is_sum == p.rule.linear[k] || is_factor(n, k));
    }
    if (kept && sums > 0 && (n.op != Op::Mul || sums == 1)) p.kept.push_back(a);
  }
}
// Parts may be multiplied one by one with a number, but not with anything that may be infinite: 0 times that is NaN.
bool Sharder::is_factor(const Node& n, std::size_t k) const {
  const Node& from = src_[n.in[k].node];
  return n.op == Op::Mul && from.op == Op::Constant && std::isfinite(from.value);
}

void Sharder::note_whole(const Node& n) {
  double bytes = 0;
  for (const Edge& e : n.in)
    if (!held(e).s.is_whole())
      bytes += static_cast<double>(size_of(src_[e.node].dtype)) *
               static_cast<double>(product(src_[e.node].shape).bounds().hi);
  if (bytes == 0) return;
  const std::string what = n.composite ? n.composite->name : std::string(info(n.op).name);
  log_.notes.push_back(str_cat("every rank computes all of ", what, n.where.known() ? " at " : "", n.where.str(),
                               ", for which there is no rule of sharding: ", bytes / 1e6, " MB are gathered for it"));
}

// Where parameters are divided, those that are not should be few.
void Sharder::note_whole_parameters() {
  double all = 0, whole = 0;
  std::vector<std::pair<double, std::string>> largest;
  for (const auto& [id, s] : given_) {
    const Node& n = src_[id];
    if (!n.parameter) continue;
    const double bytes = static_cast<double>(size_of(n.dtype)) * static_cast<double>(product(n.shape).bounds().hi);
    all += bytes;
    if (s.is_whole()) whole += bytes, largest.emplace_back(-bytes, n.name);
  }
  constexpr double kNoticed = 1.0 / 32;
  if (whole == all || whole < kNoticed * all) return;
  std::ranges::sort(largest);
  std::string names;
  for (std::size_t k = 0; k < std::min<std::size_t>(largest.size(), 3); ++k)
    names += str_cat(k ? ", " : "", "'", largest[k].second, "'");
  log_.notes.push_back(str_cat("of ", all / 1e6, " MB of parameters every rank holds ", whole / 1e6, " MB whole: ",
                               names, largest.size() > 3 ? str_cat(" and ", largest.size() - 3, " more") : ""));
}

}  // namespace lc::distributed
