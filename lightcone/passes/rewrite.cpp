#include "lightcone/passes/rewrite.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace lc {

Pat::Pat(PatNode n) : node_(std::make_shared<const PatNode>(std::move(n))) {}
Pat::Pat(double v) : Pat(PatNode{.kind = PatNode::Kind::Literal, .value = v}) {}
Pat any() { return Pat(PatNode{}); }
Pat op(Op op, std::vector<Pat> in) { return Pat(PatNode{.kind = PatNode::Kind::Node, .op = op, .in = std::move(in)}); }

Tensor Match::operator[](const Pat& p) const {
  for (const auto& [pat, edge] : bound)
    if (pat == p.get()) return {graph, edge};
  throw Error("rewrite", "a rule asks for a pattern that is not part of its left side");
}

namespace {

bool pads(const View& v) {
  return std::any_of(v.moves().begin(), v.moves().end(), [](const Move& m) { return m.kind == MoveKind::Pad; });
}

// Matches a pattern. Variables and literals accept any view; an inner node must be read through the identity view.
bool match(const Pat& p, const Edge& e, Match& m, bool root) {
  const Node& n = m.graph[e.node];
  for (const auto& [pat, edge] : m.bound)
    if (pat == p.get()) return edge == e;
  const std::size_t mark = m.bound.size();
  bool ok = false;
  switch (p->kind) {
    case PatNode::Kind::Any: ok = true; break;
    case PatNode::Kind::Literal:
      ok = n.op == Op::Constant && !pads(e.view) &&
           std::bit_cast<std::uint64_t>(n.value) == std::bit_cast<std::uint64_t>(p->value);
      break;
    case PatNode::Kind::Node: {
      if (n.op != p->op || !(root || e.view.identity())) break;
      const auto try_order = [&](bool swap) {
        for (std::size_t i = 0; i < p->in.size(); ++i)
          if (!match(p->in[i], n.in[swap ? p->in.size() - 1 - i : i], m, false)) {
            m.bound.erase(m.bound.begin() + static_cast<std::ptrdiff_t>(mark), m.bound.end());
            return false;
          }
        return true;
      };
      ok = try_order(false) || (info(n.op).has(kCommutes) && p->in.size() == 2 && try_order(true));
      break;
    }
  }
  if (ok) m.bound.emplace_back(p.get(), e);
  return ok;
}

Tensor build(const Pat& p, const Match& m) {
  for (const auto& [pat, edge] : m.bound)
    if (pat == p.get()) return {m.graph, edge};
  if (p->kind == PatNode::Kind::Literal) return full_like(m.root, p->value);
  if (p->kind == PatNode::Kind::Any) throw Error("rewrite", "a rule has an unbound variable on its right side");
  std::vector<Tensor> in;
  for (const Pat& i : p->in) in.push_back(build(i, m));
  return apply(p->op, in, SourceLocation::current(), {.axis = m.root.node().axis});
}

bool applies(const Rule& r, DType t) { return r.dtypes == For::All || (r.dtypes == For::Floats) == is_float(t); }

// The dtype that decides if a rule applies: that of the operands, because the result may be a bool.
DType operand_type(const Graph& g, const Node& n) { return n.in.empty() ? n.dtype : g[n.in.back().node].dtype; }

Edge improve(Graph& g, NodeId id, const std::vector<std::vector<const Rule*>>& by_op, PassLog& log) {
  Edge e{id, View(g[id].shape)};
  for (int budget = 16; budget-- > 0;) {  // a bound, so that a rule that loops cannot hang
    const Op op = g[e.node].op;
    bool changed = false;
    for (const Rule* r : by_op[static_cast<std::size_t>(op)]) {
      Match m{g, Tensor(g, e), {}};
      if (!e.view.identity() || !applies(*r, operand_type(g, g[e.node])) || !match(r->from, e, m, true)) continue;
      const OpScope scope(g[e.node].where);
      const std::optional<Tensor> t = r->to ? build(*r->to, m) : r->make(m);
      if (!t || t->edge() == e) continue;
      if (t->shape() != m.root.shape() || t->dtype() != m.root.dtype())
        throw Error("rewrite", "the rule '" + r->name + "' changed a shape or an element type");
      ++log.fired[r->name];
      e = t->edge();
      changed = true;
      break;
    }
    if (!changed) break;
  }
  return e;
}

Pass one_sweep(std::string name, std::vector<Rule> rules) {
  return {std::move(name), [rules = std::move(rules)](const Graph& src, PassLog& log) {
            std::vector<std::vector<const Rule*>> by_op(std::size(kOps));
            for (const Rule& r : rules) by_op[static_cast<std::size_t>(r.from->op)].push_back(&r);
            return copy_graph(
                src, [&](Graph& dst, NodeId, Node n) { return improve(dst, dst.add(std::move(n)), by_op, log); });
          }};
}

}  // namespace

Compiler rewrite(std::string name, std::vector<Rule> rules) {
  for (const Rule& r : rules)
    if (r.from->kind != PatNode::Kind::Node)
      throw Error("rewrite", "the left side of the rule '" + r.name + "' is not an operation");
  Pass p = one_sweep(std::move(name), rules);
  for (const Rule& r : rules) p.parts.push_back(one_sweep(r.name, {r}));
  return Compiler(std::move(p));
}

}  // namespace lc
