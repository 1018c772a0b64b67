#include "lightcone/distributed/shard.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "lightcone/composites/composites.h"
#include "lightcone/distributed/rules.h"
#include "lightcone/distributed/specs.h"
#include "lightcone/passes/composites.h"

namespace lc {
namespace distributed {
namespace {

// A value of the whole graph, on this rank.
struct Held {
  Tensor local;
  Sharding s;
};

class Sharder {
 public:
  Sharder(const Graph& src, const Collectives& ranks, const ShardSpecs& specs, PassLog& log)
      : src_(src), ranks_(ranks), mesh_(ranks.mesh()), specs_(specs), log_(log), to_(src.size()) {}

  Graph run() {
    read_specs();
    find_hints();
    const auto live = src_.live();
    for (NodeId id = 0; id < src_.size(); ++id)
      if (live[id] || is_state(id)) node(id);
    note_whole_parameters();
    for (const Root& r : src_.roots())
      dst_.root(r.name, at(r.edge, std::vector<Axes>(r.edge.view.shape().size()), {}).edge());
    for (const Assignment& a : src_.assignments())
      dst_.assignment(to_[a.state][0].local.edge().node, at(a.next, given_.at(a.state).axes, {}).edge());
    return std::move(dst_);
  }

 private:
  bool is_state(NodeId id) const {
    return std::ranges::any_of(src_.assignments(), [&](const Assignment& a) { return a.state == id; });
  }

  void read_specs() {
    for (NodeId id = 0; id < src_.size(); ++id) {
      const Node& n = src_[id];
      if (n.op != Op::Input) continue;
      given_.emplace(id, sharding_of(mesh_, specs_, n.name, n.shape));
    }
  }

  // Values that depend on data, and not on parameters and states alone, stay where they are when two operands cannot.
  // What becomes the next value of a state is best computed as the state is spread, and so are its elementwise
  // operands.
  void find_hints() {
    depends_on_data_.resize(src_.size()), hints_.resize(src_.size());
    for (NodeId id = 0; id < src_.size(); ++id) {
      const Node& n = src_[id];
      depends_on_data_[id] =
          (n.op == Op::Input && !n.parameter && !is_state(id)) ||
          std::ranges::any_of(n.in, [&](const Edge& e) { return depends_on_data_[e.node] != false; });
    }
    for (const Assignment& a : src_.assignments())
      if (a.next.view.identity()) hint(a.next.node, given_.at(a.state));
    for (NodeId id = static_cast<NodeId>(src_.size()); id-- > 0;) {
      if (!hints_[id]) continue;
      const Node& n = src_[id];
      const bool passes = info(n.op).kind == Kind::Elementwise || info(n.op).kind == Kind::Copy;
      for (const Edge& e : n.in)
        if (passes && e.view.identity()) hint(e.node, *hints_[id]);
    }
  }
  void hint(NodeId id, const Sharding& s) {
    if (!hints_[id] && !s.is_whole()) hints_[id] = s;
  }

  // ---- nodes -----------------------------------------------------------------------------------

  void node(NodeId id) {
    const Node& n = src_[id];
    const OpScope scope(n.where);
    const View whole(n.shape);
    if (n.op == Op::Input) {
      const Sharding& s = given_.at(id);
      const Node part{.op = Op::Input,
                      .dtype = n.dtype,
                      .shape = local(mesh_, n.shape, s),
                      .parameter = n.parameter,
                      .name = n.name,
                      .where = n.where};
      to_[id] = {{Tensor(dst_, {dst_.add(part), View(part.shape)}), s}};
    } else if (info(n.op).kind == Kind::Leaf) {
      to_[id] = {{Tensor(dst_, {dst_.adopt(n, {}), whole}), Sharding(n.shape.size())}};
    } else if (n.op == Op::Result) {
      to_[id] = {to_[n.in[0].node].at(static_cast<std::size_t>(n.axis))};
    } else if (n.op == Op::Kernel) {
      throw Error("shard", "the graph has kernels of a device already: put shard() in front of it");
    } else {
      operation(id);
    }
  }

  struct Plan {
    ShardingRule rule;
    std::vector<Axes> axes;  // by label
    Axes kept;               // sums of parts that the operation passes on
    bool uses(int mesh_axis) const {
      return std::ranges::any_of(axes, [&](const Axes& a) { return std::ranges::find(a, mesh_axis) != a.end(); });
    }
    std::vector<Axes> of(const std::vector<int>& labels) const {
      std::vector<Axes> all;
      for (const int l : labels) all.push_back(l < 0 ? Axes() : axes[static_cast<std::size_t>(l)]);
      return all;
    }
  };

  std::vector<TensorType> results_of(const Node& n) const {
    return n.results.empty() ? std::vector<TensorType>{{n.dtype, n.shape}} : n.results;
  }

  void operation(NodeId id) {
    const Node& n = src_[id];
    const Plan p = plan(id);
    std::vector<Tensor> in;
    for (std::size_t k = 0; k < n.in.size(); ++k) in.push_back(at(n.in[k], p.of(p.rule.operands[k]), p.kept));
    Axes sums = p.kept;
    for (std::size_t l = 0; l < p.rule.labels.size(); ++l) {
      const LabelKind kind = p.rule.labels[l];
      if (kind == LabelKind::Indexed && !p.axes[l].empty()) move_index(n, p, static_cast<int>(l), in);
      const bool added = kind == LabelKind::Sum || (kind == LabelKind::Indexed && !in_results(p, static_cast<int>(l)));
      if (added) sums.insert(sums.end(), p.axes[l].begin(), p.axes[l].end());
    }
    std::ranges::sort(sums);
    const std::vector<Tensor> out = emit(n, in);
    for (std::size_t k = 0; k < out.size(); ++k) {
      Held h{out[k], Sharding()};
      h.s.axes = p.of(p.rule.results[k]);
      h.s.partial = sums;
      for (std::size_t l = 0; l < p.rule.labels.size(); ++l)
        if (p.rule.labels[l] == LabelKind::Max && !p.axes[l].empty())
          h.local = exchanged("all_reduce", ranks_.all_reduce(h.local, names(p.axes[l]), ReduceOp::Max));
      to_[id].push_back(std::move(h));
    }
  }

  static bool in_results(const Plan& p, int label) {
    return std::ranges::any_of(p.rule.results, [&](const auto& r) { return std::ranges::find(r, label) != r.end(); });
  }

  // A rank that has rows [first, first + length) finds row i at i - first; what it does not have is out of range.
  void move_index(const Node& n, const Plan& p, int label, std::vector<Tensor>& in) const {
    const Axes& axes = p.axes[static_cast<std::size_t>(label)];
    for (std::size_t k = 0; k < n.in.size(); ++k)
      for (std::size_t i = 0; i < p.rule.operands[k].size(); ++i) {
        if (p.rule.operands[k][i] != label) continue;
        const auto first = divided(n.in[k].view.shape()[i], mesh_.extent(axes)) * Dim(mesh_.place(ranks_.rank(), axes));
        Tensor& index = in[static_cast<std::size_t>(p.rule.index)];
        const Tensor wide = prim::cast(index, DType::I64);
        index = prim::add(wide, full_like(wide, -first.constant().value_or(0)));
        return;
      }
  }

  std::vector<Tensor> emit(const Node& n, const std::vector<Tensor>& in) {
    if (n.op == Op::Composite) return call(n.composite, in, n.attributes, SourceLocation(n.where.file, n.where.line));
    std::vector<Edge> edges;
    for (const Tensor& t : in) edges.push_back(t.edge());
    const NodeId made = dst_.adopt(n, std::move(edges));
    return {Tensor(dst_, {made, View(dst_[made].shape)})};
  }

  // ---- the choice ------------------------------------------------------------------------------

  Plan plan(NodeId id) {
    const Node& n = src_[id];
    Plan p;
    if (auto rule = sharding_rule(src_, n)) {
      p.rule = std::move(*rule);
    } else {
      for (const Edge& e : n.in) p.rule.operands.emplace_back(e.view.shape().size(), -1);
      for (const TensorType& t : results_of(n)) p.rule.results.emplace_back(t.shape.size(), -1);
      note_whole(n);
    }
    p.axes.resize(p.rule.labels.size());
    for (const std::size_t k : by_weight(n)) {
      const std::vector<Axes> have = seen(n.in[k]);
      for (std::size_t i = 0; i < have.size(); ++i) offer(n, p, p.rule.operands[k][i], have[i], k);
    }
    if (hints_[id] && p.rule.results.size() == 1)
      for (std::size_t i = 0; i < n.shape.size(); ++i) offer(n, p, p.rule.results[0][i], hints_[id]->axes[i], {});
    keep_sums(n, p);
    return p;
  }

  // Operands that depend on data come first, then large ones.
  std::vector<std::size_t> by_weight(const Node& n) const {
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
  void offer(const Node& n, Plan& p, int label, const Axes& axes, std::optional<std::size_t> operand) const {
    if (label < 0 || axes.empty()) return;
    const auto l = static_cast<std::size_t>(label);
    const LabelKind kind = p.rule.labels[l];
    if (!p.axes[l].empty() || kind == LabelKind::Whole || !p.rule.whole_pieces(l, mesh_.extent(axes)) ||
        (kind == LabelKind::Indexed && !may_index(n, p, label, operand)))
      return;
    if (std::ranges::any_of(axes, [&](int a) { return p.uses(a); })) return;
    const int ranks = mesh_.extent(axes);
    const auto fits = [&](const std::vector<int>& labels, const Shape& shape) {
      for (std::size_t i = 0; i < labels.size(); ++i)
        if (labels[i] == label && !divides(ranks, shape[i])) return false;
      return true;
    };
    for (std::size_t k = 0; k < n.in.size(); ++k)
      if (!fits(p.rule.operands[k], n.in[k].view.shape())) return;
    const auto results = results_of(n);
    for (std::size_t k = 0; k < results.size(); ++k)
      if (!fits(p.rule.results[k], results[k].shape)) return;
    p.axes[l] = axes;
  }
  // Rows are chosen on the ranks that have them, if it is known how many that are.
  static bool may_index(const Node& n, const Plan& p, int label, std::optional<std::size_t> operand) {
    for (std::size_t k = 0; k < n.in.size(); ++k)
      for (std::size_t i = 0; i < p.rule.operands[k].size(); ++i)
        if (p.rule.operands[k][i] == label && !n.in[k].view.shape()[i].is_constant()) return false;
    return !operand || static_cast<int>(*operand) != p.rule.index;
  }

  // Sums of parts stay what they are through linear operations.
  void keep_sums(const Node& n, Plan& p) const {
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
  bool is_factor(const Node& n, std::size_t k) const {
    const Node& from = src_[n.in[k].node];
    return n.op == Op::Mul && from.op == Op::Constant && std::isfinite(from.value);
  }

  // ---- operands --------------------------------------------------------------------------------

  std::vector<int> shards(const Sharding& s) const {
    std::vector<int> n;
    for (const Axes& a : s.axes) n.push_back(mesh_.extent(a));
    return n;
  }
  const Held& held(const Edge& e) const { return to_[e.node][0]; }

  // The mesh axes along which the axes of an operand are divided as it lies.
  std::vector<Axes> seen(const Edge& e) const {
    const Sharding& s = held(e).s;
    const Tracks t = tracks(e.view, shards(s));
    std::vector<Axes> all;
    for (const int axis : t.of) all.push_back(axis < 0 ? Axes() : s.axes[static_cast<std::size_t>(axis)]);
    return all;
  }

  // The operand with its axes divided as `want` says. Sums of parts are added up, but for those over `kept`.
  Tensor at(const Edge& e, const std::vector<Axes>& want, const Axes& kept) {
    Held h = held(e);
    add_up(h, e.view, want, kept);
    Tracks t = tracks(e.view, shards(h.s));
    for (std::size_t axis = 0; axis < h.s.axes.size(); ++axis) {
      if (h.s.axes[axis].empty()) continue;
      const auto place = std::ranges::find(t.of, static_cast<int>(axis));
      if (place == t.of.end() || want[static_cast<std::size_t>(place - t.of.begin())] != h.s.axes[axis])
        gather(h, axis);
    }
    t = tracks(e.view, shards(h.s));
    Tensor x = h.local.with(h.local.view().then(local(e.view, shards(h.s))));
    for (std::size_t i = 0; i < want.size(); ++i) {
      const bool is_divided = t.of[i] >= 0 && !h.s.axes[static_cast<std::size_t>(t.of[i])].empty();
      if (want[i].empty() || is_divided) continue;
      const Dim length = divided(x.extent(static_cast<int>(i)), mesh_.extent(want[i])),
                first = length * Dim(mesh_.place(ranks_.rank(), want[i]));
      x = x.slice(static_cast<int>(i), first, first + length);
    }
    return x;
  }

  // Adds the ranks' parts: into parts of the result if those are wanted, else into the whole on every rank.
  void add_up(Held& h, const View& view, const std::vector<Axes>& want, const Axes& kept) {
    Axes whole;
    for (const int a : Axes(h.s.partial)) {
      if (std::ranges::find(kept, a) != kept.end()) continue;
      std::erase(h.s.partial, a);
      if (!scatter(h, view, want, a)) whole.push_back(a);
    }
    if (!whole.empty()) h.local = exchanged("all_reduce", ranks_.all_reduce(h.local, names(whole)));
  }
  bool scatter(Held& h, const View& view, const std::vector<Axes>& want, int mesh_axis) {
    const auto place = std::ranges::find(want, Axes{mesh_axis});
    if (place == want.end()) return false;
    const auto i = static_cast<std::size_t>(place - want.begin());
    auto parts = shards(h.s);
    const int axis = tracks(view, parts).of[i];
    if (axis < 0 || parts[static_cast<std::size_t>(axis)] > 1) return false;
    const auto at = static_cast<std::size_t>(axis);
    parts[at] = mesh_.axes()[static_cast<std::size_t>(mesh_axis)].size;
    const Dim extent = h.local.extent(axis);
    if (!divides(parts[at], extent) || tracks(view, parts).of[i] != axis) return false;
    // [.., n, ..] -> [ranks, .., n / ranks, ..]
    Shape rows = h.local.shape();
    rows[at] = divided(extent, parts[at]);
    rows.insert(rows.begin() + axis, Dim(parts[at]));
    std::vector<int> order{axis};
    for (int k = 0; k < static_cast<int>(rows.size()); ++k)
      if (k != axis) order.push_back(k);
    h.local =
        exchanged("reduce_scatter", ranks_.reduce_scatter(h.local.reshape(rows).permute(order), names({mesh_axis})));
    h.s.axes[at] = {mesh_axis};
    return true;
  }

  void gather(Held& h, std::size_t axis) {
    const Tensor rows = exchanged("all_gather", ranks_.all_gather(h.local, names(h.s.axes[axis])));
    Shape whole = h.local.shape();
    whole[axis] = whole[axis] * rows.extent(0);
    std::vector<int> order;
    for (int k = 1; k < rows.rank(); ++k) {
      if (k == static_cast<int>(axis) + 1) order.push_back(0);
      order.push_back(k);
    }
    h.local = rows.permute(order).reshape(whole);
    h.s.axes[axis].clear();
  }

  // ---- messages --------------------------------------------------------------------------------

  std::vector<std::string> names(const Axes& axes) const {
    std::vector<std::string> all;
    for (const int a : axes) all.push_back(mesh_.axes()[static_cast<std::size_t>(a)].name);
    return all;
  }
  Tensor exchanged(const char* what, Tensor t) {
    ++log_.fired[what];
    return t;
  }
  void note_whole(const Node& n) {
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
  void note_whole_parameters() {
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

  const Graph& src_;
  const Collectives& ranks_;
  const Mesh& mesh_;
  const ShardSpecs& specs_;
  PassLog& log_;
  Graph dst_;
  std::vector<std::vector<Held>> to_;  // by node: its results
  std::map<NodeId, Sharding> given_;
  std::vector<char> depends_on_data_;
  std::vector<std::optional<Sharding>> hints_;
};

void check_used(const Graph& g, const ShardSpecs& specs) {
  for (const ShardSpec& s : specs) {
    bool used = false;
    for (NodeId id = 0; id < g.size() && !used; ++id) used = g[id].op == Op::Input && fits(s, g[id].name);
    if (!used) throw Error("shard", str_cat("the spec '", s.name, "' fits no input of the graph"));
  }
}

}  // namespace
}  // namespace distributed

Compiler shard(const Collectives& ranks, ShardSpecs specs) {
  const auto run = [ranks, specs = std::move(specs)](const Graph& g, PassLog& log) {
    distributed::check_used(g, specs);
    const Graph written_out = inline_transparent(g, log);
    return distributed::Sharder(written_out, ranks, specs, log).run();
  };
  Pass p{"shard", run};
  p.required = true;
  p.redefines = true;
  return Compiler(std::move(p));
}

}  // namespace lc
