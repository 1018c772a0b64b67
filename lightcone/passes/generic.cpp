#include <algorithm>

#include "lightcone/composites/composites.h"
#include "lightcone/passes/composites.h"
#include "lightcone/passes/gradient_marks.h"
#include "lightcone/passes/passes.h"
#include "lightcone/passes/scales.h"
#include "lightcone/reference/interpreter.h"

namespace lc {
namespace {

// True if every element is one constant. Integers that no double can hold are Index nodes.
bool unpadded_constant(const Graph& g, const Edge& e) {
  const Node& n = g[e.node];
  const bool constant = n.op == Op::Constant || (n.op == Op::Index && n.shape.empty() && n.index.is_constant());
  return constant && std::none_of(e.view.moves().begin(), e.view.moves().end(),
                                  [](const Move& m) { return m.kind == MoveKind::Pad; });
}

// Folds an elementwise node of constant operands into a constant, computed and rounded as the reference does.
std::optional<Tensor> fold(const Match& m) {
  const Node& n = m.root.node();
  std::vector<Value> in;
  for (const Edge& e : n.in) {
    const Node& c = m.graph[e.node];
    if (!unpadded_constant(m.graph, e)) return std::nullopt;
    in.push_back(evaluate(c, {}, {}, Rounding::Storage));
  }
  Node scalar = n;
  scalar.shape = {};
  const Value v = evaluate(scalar, in, {}, Rounding::Storage);
  return full(m.graph, n.shape, is_float(v.dtype) ? Scalar(v.f[0]) : Scalar(v.i[0]), n.dtype);
}

// Replaces a copy into the same dtype by a view.
std::optional<Tensor> drop_copy(const Match& m) {
  const Node& n = m.root.node();
  if (m.graph[n.in[0].node].dtype != n.dtype) return std::nullopt;
  return Tensor(m.graph, n.in[0]);
}

// True if every value of `a` survives a conversion to `b` and back.
bool contains(DType b, DType a) {
  if (a == b || a == DType::Bool) return true;
  if (b == DType::Bool) return false;
  if (is_float(a)) return b == DType::F64 || (b == DType::F32 && is_narrow(a)) || (is_half(b) && is_f8(a));
  if (!is_float(b)) return size_of(a) <= size_of(b);  // a wrapped value wraps back
  return 8 * size_of(a) <= static_cast<std::size_t>(info(b).digits);
}

// Removes a conversion to a wider type and back.
std::optional<Tensor> drop_round_trip(const Match& m) {
  const Node& outer = m.root.node();
  const Edge& e = outer.in[0];
  const Node& inner = m.graph[e.node];
  if (inner.op != Op::Contiguous) return std::nullopt;
  const DType from = m.graph[inner.in[0].node].dtype;
  if (from != outer.dtype || !contains(inner.dtype, from)) return std::nullopt;
  return Tensor(m.graph, {inner.in[0].node, inner.in[0].view.then(e.view)});
}

// Replaces the maximum over an axis of extent 1 by the element.
std::optional<Tensor> drop_max_of_one(const Match& m) {
  const Node& n = m.root.node();
  const Shape& s = n.in[0].view.shape();
  if (!(s[n.axis] == Dim(1))) return std::nullopt;
  return Tensor(m.graph, n.in[0]).reshape(n.shape);
}

// Removes the gradient markers (needed only for a loss scale) and the index markers (needed only for checks).
std::optional<Tensor> strip_gradient_markers(const Match& m) {
  const Node& n = m.root.node();
  if (n.composite != gradient_seed() && n.composite != gradient_result() && n.composite != builtin::index_in_range())
    return std::nullopt;
  return Tensor(m.graph, n.in[0]);
}

std::vector<Rule> make_rules() {
  const Pat x = any(), y = any(), c = any();
  std::vector<Rule> rules = {
      {"x * 1", x * 1.0, x},
      {"x + -0", x + -0.0, x, For::Floats},
      {"x + 0", x + 0.0, x, For::Integers},
      {"x * 0", x * 0.0, Pat(0.0), For::Integers},
      {"x * -1 * -1", (x * -1.0) * -1.0, x},
      {"max(x, x)", maximum(x, x), x},
      {"min(x, x)", minimum(x, x), x},
      {"max(x, -inf)", maximum(x, -kInf), x, For::Floats},
      {"min(x, inf)", minimum(x, kInf), x, For::Floats},
      {"where(c, x, x)", where(c, x, x), x},
      {"where(true, x, y)", where(Pat(1.0), x, y), x},
      {"where(false, x, y)", where(Pat(0.0), x, y), y},
      {"x < x", x < x, Pat(0.0)},
      {"x / 1", op(Op::Div, {x, 1.0}), x},
      {"x ^ 1", op(Op::Pow, {x, 1.0}), x},
      {"x ^ 2", op(Op::Pow, {x, 2.0}), x * x},
      {"x & x", op(Op::BitAnd, {x, x}), x},
      {"x & 0", op(Op::BitAnd, {x, 0.0}), Pat(0.0)},
      {"x | x", op(Op::BitOr, {x, x}), x},
      {"x | 0", op(Op::BitOr, {x, 0.0}), x},
      {"x xor x", op(Op::BitXor, {x, x}), Pat(0.0)},
      {"x xor 0", op(Op::BitXor, {x, 0.0}), x},
      {"max(max(x, y), y)", maximum(maximum(x, y), y), maximum(x, y), For::Integers},
      {"x == x", op(Op::Equal, {x, x}), Pat(1.0), For::Integers},
      {"copy", op(Op::Contiguous, {x}), drop_copy},
      {"cast there and back", op(Op::Contiguous, {x}), drop_round_trip},
      {"max of one", op(Op::MaxReduce, {x}), drop_max_of_one},
      {"mark", op(Op::Composite, {}), strip_gradient_markers},
  };
  for (Rule& r : scale_rules()) rules.push_back(std::move(r));
  for (const OpInfo& row : kOps) {
    if (row.kind != Kind::Elementwise && row.kind != Kind::Copy) continue;
    std::vector<Pat> in;
    for (int k = 0; k < row.arity; ++k) in.push_back(any());
    rules.push_back({"fold " + std::string(row.name), op(row.op, in), fold});
  }
  return rules;
}

}  // namespace

std::vector<Rule> generic_rules() { return make_rules(); }

// Runs a pass on a graph in which the definitions of transparent composites stand.
static void inline_before(Pass& p) {
  p.run = [run = std::move(p.run)](const Graph& g, PassLog& log) {
    return any_node(g, is_transparent) ? run(inline_transparent(g, log), log) : run(g, log);
  };
}

Compiler generic() {
  const Compiler sweep = rewrite("generic", generic_rules());
  Pass p = repeat(sweep, 3).passes()[0];
  p.name = "generic";
  inline_before(p);
  for (Pass& rule : p.parts) inline_before(rule);
  return Compiler(std::move(p));
}

Compiler primitives_only() {
  return Compiler({"primitives_only", [](const Graph& g, PassLog& log) {
                     return inline_composites(g, log, [](const Graph&, const Node&) { return true; });
                   }});
}

}  // namespace lc
