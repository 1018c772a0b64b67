// Ensembles of decision trees, walked for all samples and trees at once: each step gathers the nodes' features and
// thresholds and goes on to one of two children. A leaf is its own child.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "lightcone/onnx/parts/scores.h"
#include "lightcone/ops/special/special.h"

namespace lc::onnx {
namespace {

constexpr int kMostSteps = 256;                             // the deepest tree
constexpr std::int64_t kMostVotes = std::int64_t{1} << 22;  // in a table that a file need not justify

enum class Branch : std::uint8_t { Leq, Lt, Gte, Gt, Eq, Neq, Leaf, Member };

struct Vote {
  std::int64_t node, target;
  double weight;
};

// All trees in one list of nodes.
struct Forest {
  Integers feature = {}, yes = {}, no = {}, missing = {}, roots = {};
  std::vector<double> threshold = {};
  std::vector<Branch> branch = {};
  std::vector<std::vector<double>> sets = {};  // one for each Member, in their order
  std::int64_t targets = 0;
  std::vector<Vote> votes = {};  // by node and target, one of each
  std::int64_t nodes() const { return std::ssize(feature); }
};

// Sorts votes by node and target, and adds those of one node for one target in their order.
void join(std::vector<Vote>& votes) {
  const auto key = [](const Vote& v) { return std::pair(v.node, v.target); };
  std::ranges::stable_sort(votes, {}, key);
  std::size_t kept = 0;
  for (std::size_t k = 0; k < votes.size(); ++k) {
    if (kept > 0 && key(votes[kept - 1]) == key(votes[k])) votes[kept - 1].weight += votes[k].weight;
    else votes[kept++] = votes[k];
  }
  votes.resize(kept);
}

// The longest way from a root to a leaf. Throws Error for a circle, and for a child that does not exist.
int depth_of(const Call& c, const Forest& f) {
  std::vector<std::int64_t> level = f.roots;
  for (int depth = 0;; ++depth) {
    std::vector<std::int64_t> next;
    for (const std::int64_t k : level) {
      if (k < 0 || k >= f.nodes()) c.refuse("has a node with a child that does not exist");
      const auto at = static_cast<std::size_t>(k);
      if (f.branch[at] == Branch::Leaf) continue;
      next.push_back(f.yes[at]), next.push_back(f.no[at]);
    }
    if (next.empty()) return depth;
    std::ranges::sort(next);
    next.erase(std::unique(next.begin(), next.end()), next.end());
    if (depth >= kMostSteps) c.refuse(str_cat("has a tree of more than ", kMostSteps, " levels"));
    level = std::move(next);
  }
}

Tensor decision(const Tensor& x, const Tensor& threshold, Branch b) {
  switch (b) {
    case Branch::Leq: return x <= threshold;
    case Branch::Lt: return x < threshold;
    case Branch::Gte: return x >= threshold;
    case Branch::Gt: return x > threshold;
    case Branch::Eq: return eq(x, threshold);
    default: return ne(x, threshold);
  }
}

// The sets of nodes that test membership: a row of `members` each, and for each node the number of its row.
struct SetTables {
  Tensor members, of_node;
  std::int64_t most = 1;  // members of a row
};
SetTables set_tables(Call& c, const Forest& f, DType type) {
  std::size_t most = 1;
  for (const auto& set : f.sets) most = std::max(most, set.size());
  if (most * f.sets.size() > static_cast<std::size_t>(kMostVotes)) c.refuse("has sets that are too large");
  std::vector<double> table(most * f.sets.size(), std::numeric_limits<double>::quiet_NaN());  // equals nothing
  for (std::size_t k = 0; k < f.sets.size(); ++k)
    std::ranges::copy(f.sets[k], table.begin() + static_cast<std::ptrdiff_t>(k * most));
  Integers set_of_node;
  std::int64_t next = 0;
  for (const Branch b : f.branch) set_of_node.push_back(b == Branch::Member ? next++ : 0);
  const auto width = static_cast<std::int64_t>(most);
  return {floats(c, table, {std::ssize(f.sets), width}, type), whole_numbers(c, set_of_node), width};
}
// Whether each value [n, trees] is a member of the set of its node `at`.
Tensor is_member(const SetTables& sets, const Tensor& value, const Tensor& at) {
  const Shape s = value.shape(), all{s[0], s[1], sets.most};
  const Tensor set = index_select(sets.of_node, 0, at.reshape({s[0] * s[1]}));
  return any(eq(index_select(sets.members, 0, set).reshape(all), value.unsqueeze(2).expand(all)), {2});
}

// The leaf that each sample of x [n, f] reaches in each tree: i64 [n, trees].
Tensor leaves_of(Call& c, const Forest& f, const Tensor& x) {
  const int depth = depth_of(c, f);
  const Shape s{x.extent(0), std::ssize(f.roots)};
  Tensor at = expand_to(c, whole_numbers(c, f.roots), s);
  const auto of_node = [&](const Tensor& table) {
    return index_select(table, 0, at.reshape({s[0] * s[1]})).reshape(s);
  };
  std::map<Branch, std::int64_t> kinds;
  for (const Branch b : f.branch)
    if (b != Branch::Leaf) ++kinds[b];
  Integers kind;
  for (const Branch b : f.branch) kind.push_back(static_cast<std::int64_t>(b));
  const Tensor feature = whole_numbers(c, f.feature), yes = whole_numbers(c, f.yes), no = whole_numbers(c, f.no),
               threshold = floats(c, f.threshold, {f.nodes()}, x.dtype());
  const SetTables sets = kinds.contains(Branch::Member) ? set_tables(c, f, x.dtype()) : SetTables();
  c.importer.spend(depth * std::ssize(kinds));
  const bool tracks = std::ranges::any_of(f.missing, [](std::int64_t v) { return v != 0; });
  const Tensor mode = kinds.size() > 1 ? whole_numbers(c, kind) : Tensor(),
               missing = tracks ? whole_numbers(c, f.missing) : Tensor();
  for (int k = 0; k < depth; ++k) {
    const Tensor value = gather(x, 1, of_node(feature)), limit = of_node(threshold);
    Tensor goes;
    for (const auto& [b, n] : kinds) {
      const Tensor d = b == Branch::Member ? is_member(sets, value, at) : decision(value, limit, b);
      if (!goes.defined()) goes = d;
      else goes = where(eq(of_node(mode), static_cast<std::int64_t>(b)), d, goes);
    }
    if (tracks) goes = logical_or(goes, logical_and(isnan(value), ne(of_node(missing), 0)));
    at = where(goes, of_node(yes), of_node(no));
  }
  return at;
}

enum class Aggregate : std::uint8_t { Sum, Average, Min, Max };

// Each tree's votes joined: [n, targets].
Tensor joined_votes(Call& c, const Forest& f, const Tensor& leaf, Aggregate how, DType type) {
  const std::int64_t size = f.nodes() * f.targets;
  if (size > kMostVotes && size > 64 * (std::ssize(f.votes) + f.nodes()))
    c.refuse(str_cat("has ", f.targets, " targets, and leaves that vote for few of them"));
  const bool extremes = how == Aggregate::Min || how == Aggregate::Max;
  const double none = how == Aggregate::Min   ? std::numeric_limits<double>::infinity()
                      : how == Aggregate::Max ? -std::numeric_limits<double>::infinity()
                                              : 0;
  std::vector<double> table(static_cast<std::size_t>(size), none);
  for (const Vote& v : f.votes) table[static_cast<std::size_t>(v.node * f.targets + v.target)] = v.weight;
  const Dim n = leaf.extent(0), trees = leaf.extent(1);
  const Tensor rows = index_select(floats(c, table, {f.nodes(), f.targets}, type), 0, leaf.reshape({n * trees}))
                          .reshape({n, trees, f.targets});
  if (!extremes) {
    const Tensor all = sum(rows, {1});
    return how == Aggregate::Sum ? all : all / static_cast<double>(f.roots.size());
  }
  const Tensor best = how == Aggregate::Min ? amin(rows, {1}) : amax(rows, {1});
  return where(isinf(best), zeros_like(best), best);
}

// ---- reading the attributes -----------------------------------------------------------------------------

// The attribute `name`, or `name`_as_tensor.
std::vector<double> numbers_or_tensor(Call& c, const std::string& name, bool* wide = nullptr) {
  if (!c.has_attribute(name + "_as_tensor")) return c.numbers(name);
  const TensorData& t = c.tensor(name + "_as_tensor");
  const auto type = dtype_of(t.type);
  if (!type) c.refuse(str_cat("has ", name, " of a type that is not supported"));
  if (wide && *type == DType::F64) *wide = true;
  std::vector<double> r;
  for (std::size_t k = 0; k < t.bytes.size() / size_of(*type); ++k)
    r.push_back(is_float(*type) ? load_f64(t.bytes.data(), *type, k)
                                : static_cast<double>(load_i64(t.bytes.data(), *type, k)));
  return r;
}
Branch branch_of(const Call& c, std::string_view mode) {
  constexpr std::string_view kNames[] = {"BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE", "BRANCH_GT",
                                         "BRANCH_EQ",  "BRANCH_NEQ", "LEAF"};
  const auto at = std::ranges::find(kNames, mode);
  if (at == std::end(kNames)) c.refuse(str_cat("has the mode ", mode));
  return static_cast<Branch>(at - std::begin(kNames));
}
Aggregate aggregate_of(const Call& c, std::string_view name) {
  if (name == "SUM") return Aggregate::Sum;
  if (name == "AVERAGE") return Aggregate::Average;
  if (name == "MIN") return Aggregate::Min;
  if (name == "MAX") return Aggregate::Max;
  c.refuse(str_cat("joins votes by ", name));
}

// Finds nodes, which a file names by their tree and a number. Files number the nodes of a tree in their order, so the
// place of one follows from that of the first; a sorted list is for others.
class NodeNames {
 public:
  NodeNames(const Integers& tree, const Integers& id) : tree_(tree), id_(id) {
    for (std::size_t k = 0; k < tree.size(); ++k)
      if (k == 0 || tree[k] != tree[k - 1]) first_.try_emplace(tree[k], k);
    bool in_order = true;
    for (std::size_t k = 0; in_order && k < tree.size(); ++k) in_order = by_order(tree[k], id[k]) == std::int64_t(k);
    if (in_order) return;
    for (std::size_t k = 0; k < tree.size(); ++k) sorted_.push_back({tree[k], id[k], std::int64_t(k)});
    std::ranges::sort(sorted_);
  }
  bool has_twins() const {
    return std::ranges::adjacent_find(sorted_, [](const Entry& a, const Entry& b) {
             return a.tree == b.tree && a.id == b.id;
           }) != sorted_.end();
  }
  std::int64_t find(std::int64_t tree, std::int64_t id) const {  // -1: there is none
    if (sorted_.empty()) return by_order(tree, id);
    const auto at = std::ranges::lower_bound(sorted_, Entry{tree, id, 0});
    return at != sorted_.end() && at->tree == tree && at->id == id ? at->place : -1;
  }

 private:
  struct Entry {
    std::int64_t tree, id, place;
    auto operator<=>(const Entry&) const = default;
  };
  std::int64_t by_order(std::int64_t tree, std::int64_t id) const {
    const auto first = first_.find(tree);
    if (first == first_.end()) return -1;
    const std::size_t begin = first->second;
    const std::uint64_t behind = static_cast<std::uint64_t>(id) - static_cast<std::uint64_t>(id_[begin]);
    if (behind >= tree_.size() - begin) return -1;
    const std::size_t at = begin + behind;
    return tree_[at] == tree && id_[at] == id ? static_cast<std::int64_t>(at) : -1;
  }
  const Integers &tree_, &id_;
  std::map<std::int64_t, std::size_t> first_;  // by tree
  std::vector<Entry> sorted_;
};

// Reads nodes_* and the votes, whose attributes begin with `prefix`.
Forest forest_of(Call& c, const std::string& prefix, std::int64_t targets, bool* wide) {
  Forest f{.targets = targets};
  const Integers tree = c.integers("nodes_treeids"), id = c.integers("nodes_nodeids");
  f.feature = c.integers("nodes_featureids");
  const Integers yes = c.integers("nodes_truenodeids"), no = c.integers("nodes_falsenodeids");
  f.missing = c.integers("nodes_missing_value_tracks_true", {});
  f.threshold = numbers_or_tensor(c, "nodes_values", wide);
  c.ignore("nodes_hitrates"), c.ignore("nodes_hitrates_as_tensor");
  for (const std::string_view m : c.texts("nodes_modes")) f.branch.push_back(branch_of(c, m));
  const std::size_t n = tree.size();
  f.missing.resize(f.missing.empty() ? n : f.missing.size(), 0);
  for (const std::size_t size :
       {id.size(), f.feature.size(), yes.size(), no.size(), f.threshold.size(), f.branch.size(), f.missing.size()})
    if (size != n) c.refuse("has attributes nodes_* of different lengths");
  if (n == 0 || targets < 1 || targets > kMostVotes) c.refuse("has no nodes, no targets, or too many");
  const NodeNames names(tree, id);
  if (names.has_twins()) c.refuse("has a node twice");
  std::vector<bool> child(n);
  for (std::size_t k = 0; k < n; ++k) {
    const bool leaf = f.branch[k] == Branch::Leaf;
    f.yes.push_back(leaf ? static_cast<std::int64_t>(k) : names.find(tree[k], yes[k]));
    f.no.push_back(leaf ? static_cast<std::int64_t>(k) : names.find(tree[k], no[k]));
    if (leaf) f.feature[k] = 0;
    else
      for (const std::int64_t to : {f.yes[k], f.no[k]})
        if (to >= 0) child[static_cast<std::size_t>(to)] = true;
  }
  for (std::size_t k = 0; k < n; ++k)
    if (!child[k]) f.roots.push_back(static_cast<std::int64_t>(k));
  if (f.roots.empty()) c.refuse("has no root");
  const Integers vote_tree = c.integers(prefix + "_treeids"), vote_node = c.integers(prefix + "_nodeids"),
                 target = c.integers(prefix + "_ids");
  const std::vector<double> weight = numbers_or_tensor(c, prefix + "_weights", wide);
  if (vote_node.size() != vote_tree.size() || target.size() != vote_tree.size() || weight.size() != vote_tree.size())
    c.refuse(str_cat("has attributes ", prefix, "_* of different lengths"));
  for (std::size_t k = 0; k < target.size(); ++k) {
    const std::int64_t node = names.find(vote_tree[k], vote_node[k]);
    if (node < 0 || target[k] < 0 || target[k] >= targets) c.refuse("has a vote of a leaf that does not exist");
    f.votes.push_back({node, target[k], weight[k]});
  }
  join(f.votes);
  return f;
}
// Samples in the type in which thresholds are compared.
Tensor tree_samples(Call& c, bool wide) {
  const Tensor x = c.x();
  const Tensor y = x.to(wide || x.dtype() == DType::F64 ? DType::F64 : DType::F32);
  return y.rank() == 1 ? y.unsqueeze(0) : y;
}
Tensor with_base(Call& c, const Tensor& y, const std::vector<double>& base) {
  if (base.empty()) return y;
  return y + expand_to(c, floats(c, base, {std::ssize(base)}, y.dtype()), y.shape());
}

Values tree_regressor(Call& c) {
  bool wide = false;
  const Forest f = forest_of(c, "target", c.integer("n_targets", 1), &wide);
  const Tensor x = tree_samples(c, wide);
  const Aggregate how = aggregate_of(c, c.text("aggregate_function", "SUM"));
  const Tensor leaf = leaves_of(c, f, x), votes = joined_votes(c, f, leaf, how, x.dtype());
  const std::vector<double> base = numbers_or_tensor(c, "base_values");
  Tensor y = with_base(c, votes, base);
  if (!base.empty() && f.targets > 1) {  // as in onnxruntime, a target without a vote stays 0
    Forest present = f;
    for (Vote& v : present.votes) v.weight = 1;
    y = where(joined_votes(c, present, leaf, Aggregate::Max, x.dtype()) > 0, y, votes);
  }
  return {transformed(c, y, c.text("post_transform", "NONE")).to(DType::F32)};
}

Values tree_classifier(Call& c) {
  const ClassLabels l = class_labels(c, "classlabels_int64s");
  bool wide = false;
  const Forest f = forest_of(c, "class", l.count, &wide);
  const Tensor x = tree_samples(c, wide);
  const std::vector<double> base = numbers_or_tensor(c, "base_values");
  const std::string_view transform = c.text("post_transform", "NONE");
  Tensor y = joined_votes(c, f, leaves_of(c, f, x), Aggregate::Sum, x.dtype());
  std::map<std::int64_t, bool> voted;
  bool positive = true;
  for (const Vote& v : f.votes) voted[v.target] = true, positive = positive && v.weight >= 0;
  const bool one = l.count == 2 && voted.size() == 1;
  const auto above = [&](const Tensor& score) { return (score > (positive ? 0.5 : 0.0)).to(DType::I64); };
  if (one && voted.contains(0) && base.size() < 2) {  // one score, of the second class
    const Tensor s = base.empty() ? y.select(1, 0) : y.select(1, 0) + base[0];
    const auto how = positive ? BinaryScores::Complement : BinaryScores::Negative;
    return {l.choose(c, above(s)), two_scores(c, s, transform, how).to(DType::F32)};
  }
  if (one && base.empty()) return {l.choose(c, above(y.select(1, 1))), transformed(c, y, transform).to(DType::F32)};
  y = with_base(c, y, base);
  return {l.choose(c, argmax(y, 1)), transformed(c, y, transform).to(DType::F32)};
}

// The newer form: inner nodes and leaves are two lists, which are joined here, leaves behind the nodes.
Values tree_ensemble(Call& c) {
  Forest f{.targets = c.integer("n_targets", 1)};
  f.feature = c.integers("nodes_featureids"), f.yes = c.integers("nodes_truenodeids");
  f.no = c.integers("nodes_falsenodeids"), f.roots = c.integers("tree_roots");
  f.missing = c.integers("nodes_missing_value_tracks_true", {});
  const Integers yes_leaf = c.integers("nodes_trueleafs"), no_leaf = c.integers("nodes_falseleafs"),
                 target = c.integers("leaf_targetids");
  c.ignore("nodes_hitrates");
  const auto listed = [&](std::string_view name) {
    const TensorData& t = c.tensor(name);
    const auto type = dtype_of(t.type);
    if (!type) c.refuse(str_cat("has ", name, " of a type that is not supported"));
    std::vector<double> r;
    for (std::size_t k = 0; k < t.bytes.size() / size_of(*type); ++k)
      r.push_back(is_float(*type) ? load_f64(t.bytes.data(), *type, k)
                                  : static_cast<double>(load_i64(t.bytes.data(), *type, k)));
    return r;
  };
  f.threshold = listed("nodes_splits");
  const std::vector<double> modes = listed("nodes_modes"), weight = listed("leaf_weights");
  if (c.has_attribute("membership_values")) {  // each set ends with NaN
    f.sets.emplace_back();
    for (const double v : listed("membership_values")) {
      if (std::isnan(v)) f.sets.emplace_back();
      else f.sets.back().push_back(v);
    }
    if (f.sets.back().empty()) f.sets.pop_back();
  }
  if (std::ranges::count(modes, 6.0) != std::ssize(f.sets)) c.refuse("has not one set for each test of membership");
  const std::size_t n = f.feature.size();
  f.missing.resize(f.missing.empty() ? n : f.missing.size(), 0);
  for (const std::size_t size :
       {f.yes.size(), f.no.size(), yes_leaf.size(), no_leaf.size(), f.threshold.size(), modes.size(), f.missing.size()})
    if (size != n) c.refuse("has attributes nodes_* of different lengths");
  if (target.size() != weight.size() || f.targets < 1 || f.targets > kMostVotes)
    c.refuse("has attributes leaf_* of different lengths, no targets, or too many");
  const auto count = static_cast<std::int64_t>(n), leaves = std::ssize(target);
  const auto child = [&](std::int64_t to, bool leaf) {
    if (to < 0 || to >= (leaf ? leaves : count)) c.refuse("has a node with a child that does not exist");
    return leaf ? to + count : to;
  };
  for (std::size_t k = 0; k < n; ++k) {
    if (!(modes[k] >= 0 && modes[k] <= 6)) c.refuse("has a mode that is not 0 to 6");
    f.branch.push_back(modes[k] == 6 ? Branch::Member : static_cast<Branch>(static_cast<int>(modes[k])));
    f.yes[k] = child(f.yes[k], yes_leaf[k] != 0), f.no[k] = child(f.no[k], no_leaf[k] != 0);
  }
  for (std::size_t k = 0; k < target.size(); ++k) {
    if (target[k] < 0 || target[k] >= f.targets) c.refuse("has a vote for a target that does not exist");
    f.feature.push_back(0), f.threshold.push_back(0), f.missing.push_back(0), f.branch.push_back(Branch::Leaf);
    f.yes.push_back(count + static_cast<std::int64_t>(k)), f.no.push_back(count + static_cast<std::int64_t>(k));
    f.votes.push_back({count + static_cast<std::int64_t>(k), target[k], weight[k]});
  }
  const Tensor x = tree_samples(c, false);
  constexpr std::string_view kTransforms[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
  constexpr Aggregate kHow[] = {Aggregate::Average, Aggregate::Sum, Aggregate::Min, Aggregate::Max};
  const std::int64_t how = c.integer("aggregate_function", 1), transform = c.integer("post_transform", 0);
  if (how < 0 || how > 3 || transform < 0 || transform > 4) c.refuse("has a number that stands for no function");
  const Tensor y = joined_votes(c, f, leaves_of(c, f, x), kHow[how], x.dtype());
  return {transformed(c, y, kTransforms[transform]).to(c.x().dtype())};
}

}  // namespace

void add_trees(Operators& t) {
  const Operator rows[] = {
      {kMl, "TreeEnsemble", 5, tree_ensemble, "gathers, a step for each level"},
      {kMl, "TreeEnsembleClassifier", 1, tree_classifier, "gathers, a step for each level; argmax"},
      {kMl, "TreeEnsembleRegressor", 1, tree_regressor, "gathers, a step for each level"},
  };
  t.insert(t.end(), std::begin(rows), std::end(rows));
}

}  // namespace lc::onnx
