#include "lightcone/core/tensor.h"

#include <algorithm>
#include <mutex>
#include <set>

#include "lightcone/core/composite.h"
#include "lightcone/core/graph_impl.h"

namespace lc {

Tensor::Tensor(const Graph& graph, const Edge& edge)
    : slot_(graph.impl().home), generation_(graph.impl().home->generation) {
  Graph::Impl& to = graph.impl();
  to.edges.push_back(edge);
  edge_ = static_cast<std::uint32_t>(to.edges.size() - 1);
}

Graph::Impl& Tensor::impl() const {
  if (!slot_) throw Error("tensor", "this Tensor was never given a value");
  if (slot_->generation != generation_)
    throw Error("tensor", "the graph of this Tensor is gone: its Graph or Session ended before");
  return slot_->impl;
}
Graph& Tensor::graph() const { return *impl().self; }
Edge Tensor::edge() const { return impl().edges[edge_]; }
View Tensor::view() const { return impl().edges[edge_].view; }
const Node& Tensor::node() const { return impl().nodes[impl().edges[edge_].node]; }
Shape Tensor::shape() const { return impl().edges[edge_].view.shape(); }
int Tensor::rank() const { return static_cast<int>(impl().edges[edge_].view.shape().size()); }
DType Tensor::dtype() const { return node().dtype; }

int wrap_axis(int axis, int rank, const Shape& shape, const char* op) {
  const int a = axis < 0 ? axis + rank : axis;
  if (a < 0 || a >= rank) throw Error(op, str_cat("axis ", axis, " is not an axis of ", str(shape)));
  return a;
}
// PyTorch accepts axis 0 and -1 of a scalar in functions that do not need the axis.
static bool is_axis_of_number(const Tensor& t, int axis) { return t.rank() == 0 && (axis == 0 || axis == -1); }
// Reads every `step`-th element of an axis, starting at `begin`.
static View strided(const View& v, int axis, Dim begin, Dim extent, std::int64_t step) {
  Shape from(v.shape().size(), 0), to = v.shape();
  std::vector<std::int64_t> steps(from.size(), 1);
  from[axis] = begin, to[axis] = extent, steps[axis] = step;
  return v.slice(std::move(from), std::move(to), std::move(steps));
}

Dim Tensor::extent(int axis) const { return shape()[wrap_axis(axis, rank(), shape(), "extent")]; }

// Copies a view once it has 4 * kMostMoves moves, far more than an edge of a graph has, so that a growing chain of
// views is copied once in that many moves.
Tensor Tensor::with(const View& v) const {
  constexpr std::size_t kMost = 4 * View::kMostMoves;
  const Edge e{edge().node, v};
  return Tensor(graph(), v.moves().size() > kMost ? graph().simple(e) : e);
}

Tensor Tensor::permute(std::vector<int> axes, const At& at) const {
  const OpScope scope("permute", at);
  for (int& a : axes) a = wrap_axis(a, rank(), shape(), "permute");
  return with(view().permute(std::move(axes)));
}
Tensor Tensor::transpose(int a, int b, const At& at) const {
  const OpScope scope("transpose", at);
  if (is_axis_of_number(*this, a) && is_axis_of_number(*this, b)) return *this;
  std::vector<int> axes(static_cast<std::size_t>(rank()));
  for (int i = 0; i < rank(); ++i) axes[i] = i;
  if (const int i = wrap_axis(a, rank(), shape(), "transpose"), j = wrap_axis(b, rank(), shape(), "transpose"); i != j)
    std::swap(axes[i], axes[j]);
  return with(view().permute(std::move(axes)));
}
Tensor Tensor::expand(Shape to, const At& at) const {
  const OpScope scope("expand", at);
  const Shape have = shape();
  for (std::size_t k = 1; k <= std::min(have.size(), to.size()); ++k)
    if (to[to.size() - k] == Dim(-1)) to[to.size() - k] = have[have.size() - k];
  if (to.size() <= have.size()) return with(view().expand(std::move(to)));
  Shape wide(to.size() - have.size(), 1);
  wide.insert(wide.end(), have.begin(), have.end());
  return with(view().reshape(std::move(wide)).expand(std::move(to)));
}
Tensor Tensor::reshape(Shape to, const At& at) const {
  const OpScope scope("reshape", at);
  if (const auto rest = std::find(to.begin(), to.end(), Dim(-1)); rest != to.end()) {
    if (std::count(to.begin(), to.end(), Dim(-1)) > 1) throw Error("reshape", str(to) + ": only one extent can be -1");
    *rest = 1;
    const Dim all = product(shape()), others = product(to);
    if (others == Dim(0) || !(all / others * others == all))
      throw Error("reshape", str_cat("the extents beside -1 make ", others, ", which does not divide ", str(shape())));
    *rest = all / others;
  }
  return with(view().reshape(std::move(to)));
}
Tensor Tensor::to(DType dtype, const At& at) const {
  const OpScope scope("to", at);
  return prim::cast(Operand(*this, at), dtype);
}
Tensor Tensor::t(const At& at) const {
  const OpScope scope("t", at);
  if (rank() > 2) throw Error("t", "needs a matrix, not " + str(shape()) + "; transpose() names the axes");
  return rank() == 2 ? transpose(0, 1) : *this;
}
Tensor Tensor::select(int axis, Dim index, const At& at) const {
  const OpScope scope("select", at);
  const int a = wrap_axis(axis, rank(), shape(), "select");
  const Dim n = extent(a), i = index.bounds().hi < 0 ? n + index : index;
  if (i.bounds().hi < 0 || provably_below(n, i + 1))
    throw Error("select", str_cat("there is no element ", index, " of axis ", a, " of ", str(shape())));
  return slice(a, i, i + 1).squeeze(a);
}
Tensor Tensor::unsqueeze(int axis, const At& at) const {
  const OpScope scope("unsqueeze", at);
  Shape s = shape();
  s.insert(s.begin() + wrap_axis(axis, rank() + 1, s, "unsqueeze"), 1);
  return with(view().reshape(std::move(s)));
}
Tensor Tensor::squeeze(int axis, const At& at) const {
  const OpScope scope("squeeze", at);
  if (is_axis_of_number(*this, axis)) return *this;
  Shape s = shape();
  const int a = wrap_axis(axis, rank(), s, "squeeze");
  if (!(s[a] == Dim(1))) throw Error("squeeze", str_cat("axis ", a, " of ", str(s), " is not 1"));
  s.erase(s.begin() + a);
  return with(view().reshape(std::move(s)));
}
Tensor Tensor::slice(int axis, Dim begin, Dim end, std::int64_t step, const At& at) const {
  const OpScope scope("slice", at);
  const int a = wrap_axis(axis, rank(), shape(), "slice");
  if (begin.bounds().hi < 0) begin = extent(a) + begin;
  if (end.bounds().hi < 0) end = extent(a) + end;
  if (step < 1) throw Error("slice", str_cat("the step ", step, " is not positive; flip the axis first"));
  if ((end - begin).bounds().hi < 0) throw Error("slice", str_cat("the end ", end, " is before the beginning ", begin));
  return with(strided(view(), a, begin, (end - begin + (step - 1)) / Dim(step), step));
}
Tensor Tensor::flip(int axis, const At& at) const {
  const OpScope scope("flip", at);
  if (is_axis_of_number(*this, axis)) return *this;
  const int a = wrap_axis(axis, rank(), shape(), "flip");
  return with(strided(view(), a, extent(a) - 1, extent(a), -1));
}
Tensor Tensor::pad(int axis, Dim before, Dim after, const At& at) const {
  const OpScope scope("pad", at);
  Shape b(static_cast<std::size_t>(rank()), 0), e = b;
  const int a = wrap_axis(axis, rank(), shape(), "pad");
  b[a] = before, e[a] = after;
  return with(view().pad(std::move(b), std::move(e)));
}
Tensor Tensor::unfold(int axis, Dim size, std::int64_t stride, std::int64_t dilation, const At& at) const {
  const OpScope scope("unfold", at);
  if (is_axis_of_number(*this, axis)) return reshape({1}).unfold(0, size, stride, dilation).select(0, 0);
  return with(view().unfold(wrap_axis(axis, rank(), shape(), "unfold"), size, stride, dilation));
}

Tensor Tensor::retrieve(std::string_view name) const {
  graph().root(name, edge());
  return *this;
}

Tensor apply(Op op, std::vector<Tensor> in, const SourceLocation& at, Node n) {
  const OpScope scope(info(op).name.data(), at);
  n.op = op;
  Graph& g = in.at(0).graph();
  for (const Tensor& t : in) {
    if (&t.impl() != &g.impl()) throw Error(info(op).name, "the operands belong to different graphs");
    n.in.push_back(t.edge());
  }
  const NodeId id = g.add(std::move(n));
  return Tensor(g, {id, View(g[id].shape)});
}

// Returns a copy of the name with static storage: Locations outlive composites.
static const char* lasting(const std::string& name) {
  static std::mutex lock;
  static std::set<std::string> names;
  const std::lock_guard hold(lock);
  return names.insert(name).first->c_str();
}

std::vector<Tensor> call(const CompositeRef& c, std::vector<Tensor> in, Attributes attributes,
                         const SourceLocation& at) {
  const OpScope scope(lasting(c->name), at);
  Node n{.op = Op::Composite, .composite = c, .attributes = std::move(attributes)};
  if (in.empty()) throw Error(c->name, "a composite needs an operand: its graph is that of its operands");
  Graph& g = in[0].graph();
  for (const Tensor& t : in) {
    if (&t.impl() != &g.impl()) throw Error(c->name, "the operands belong to different graphs");
    n.in.push_back(t.edge());
  }
  const NodeId id = g.add(std::move(n));
  const Edge whole{id, View(g[id].shape)};
  if (g[id].results.empty()) return {Tensor(g, whole)};
  std::vector<Tensor> results;
  for (int k = 0; k < static_cast<int>(g[id].results.size()); ++k) {
    const NodeId part = g.add({.op = Op::Result, .in = {whole}, .axis = k});
    results.emplace_back(g, Edge{part, View(g[part].shape)});
  }
  return results;
}

Tensor with_vjp(const Tensor& y, const std::vector<Tensor>& in, Vjp vjp) {
  const Edge of = y.edge();
  auto d = std::make_shared<Derivative>(Derivative{{}, std::move(vjp)});
  for (const Tensor& t : in) {
    d->in.push_back(t.edge());
    if (d->in.back().node >= of.node) return y;  // y is an operand: nothing was computed
  }
  if (of.view.identity()) y.graph().derivative(of.node, std::move(d));
  return y;
}

namespace prim {

static int axis_of(const Operand& a, int axis, const char* op) {
  const OpScope scope(op, a.at);
  return wrap_axis(axis, a->rank(), a->shape(), op);
}

Tensor log2(Operand a) { return apply(Op::Log2, {a}, a.at); }
Tensor exp2(Operand a) { return apply(Op::Exp2, {a}, a.at); }
Tensor sin(Operand a) { return apply(Op::Sin, {a}, a.at); }
Tensor sqrt(Operand a) { return apply(Op::Sqrt, {a}, a.at); }
Tensor recip(Operand a) { return apply(Op::Recip, {a}, a.at); }
Tensor add(Operand a, Operand b) { return apply(Op::Add, {a, b}, a.at); }
Tensor mul(Operand a, Operand b) { return apply(Op::Mul, {a, b}, a.at); }
Tensor mod(Operand a, Operand b) { return apply(Op::Mod, {a, b}, a.at); }
Tensor less_than(Operand a, Operand b) { return apply(Op::LessThan, {a, b}, a.at); }
Tensor sum_reduce(Operand a, int axis) { return apply(Op::SumReduce, {a}, a.at, {.axis = axis_of(a, axis, "sum")}); }
Tensor max_reduce(Operand a, int axis) { return apply(Op::MaxReduce, {a}, a.at, {.axis = axis_of(a, axis, "max")}); }
Tensor contiguous(Operand a) { return apply(Op::Contiguous, {a}, a.at, {.dtype = a->dtype()}); }
Tensor cast(Operand a, DType to) {
  return a->dtype() == to ? a.tensor : apply(Op::Contiguous, {a}, a.at, {.dtype = to});
}
Tensor where(Operand c, Operand a, Operand b) { return apply(Op::Where, {c, a, b}, c.at); }
Tensor maximum(Operand a, Operand b) { return apply(Op::Maximum, {a, b}, a.at); }
Tensor minimum(Operand a, Operand b) { return apply(Op::Minimum, {a, b}, a.at); }
Tensor div(Operand a, Operand b) { return apply(Op::Div, {a, b}, a.at); }
Tensor pow(Operand a, Operand b) { return apply(Op::Pow, {a, b}, a.at); }
Tensor equal(Operand a, Operand b) { return apply(Op::Equal, {a, b}, a.at); }
Tensor exp(Operand a) { return apply(Op::Exp, {a}, a.at); }
Tensor cos(Operand a) { return apply(Op::Cos, {a}, a.at); }
Tensor floor(Operand a) { return apply(Op::Floor, {a}, a.at); }
Tensor round(Operand a) { return apply(Op::Round, {a}, a.at); }
Tensor bitwise_and(Operand a, Operand b) { return apply(Op::BitAnd, {a, b}, a.at); }
Tensor bitwise_or(Operand a, Operand b) { return apply(Op::BitOr, {a, b}, a.at); }
Tensor bitwise_xor(Operand a, Operand b) { return apply(Op::BitXor, {a, b}, a.at); }
Tensor bitcast(Operand a, DType to) {
  return a->dtype() == to ? a.tensor : apply(Op::Bitcast, {a}, a.at, {.dtype = to});
}

}  // namespace prim

Tensor full(const Graph& g, Shape shape, Scalar value, DType dtype) {
  Graph& graph = *g.impl().self;
  return graph.constant(value, dtype).reshape(Shape(shape.size(), 1)).expand(std::move(shape));
}
Tensor full_like(Operand a, Scalar value) { return full(a->graph(), a->shape(), value, a->dtype()); }

}  // namespace lc
