#include "lightcone/core/graph.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <mutex>
#include <new>
#include <utility>

#include "lightcone/base/numbers.h"
#include "lightcone/core/composite.h"
#include "lightcone/core/graph_impl.h"
#include "lightcone/core/tensor.h"

namespace lc {
namespace {

std::size_t hash(const Node& n) {
  std::size_t h = static_cast<std::size_t>(n.op) * 31 + static_cast<std::size_t>(n.dtype);
  for (const Edge& e : n.in) h = mix(mix(h, e.node), e.view.hash());
  for (const Dim& d : n.shape) h = mix(h, d.hash());
  h = mix(h, static_cast<std::size_t>(n.axis * 2 + n.parameter));
  h = mix(h, std::bit_cast<std::uint64_t>(n.value));
  h = mix(h, n.index.hash());
  h = mix(h, std::hash<std::string>{}(n.name));
  if (n.composite) h = mix(mix(h, std::hash<const void*>{}(n.composite.get())), n.attributes.hash());
  return mix(h, std::hash<const void*>{}(n.kernel.get()));
}

bool same(const Node& a, const Node& b) {
  return a.op == b.op && a.dtype == b.dtype && a.in == b.in && a.shape == b.shape && a.axis == b.axis &&
         a.parameter == b.parameter && a.index == b.index && a.name == b.name && a.kernel == b.kernel &&
         a.composite == b.composite && a.attributes == b.attributes &&
         std::bit_cast<std::uint64_t>(a.value) == std::bit_cast<std::uint64_t>(b.value);
}

std::string text(const View& v) {
  static constexpr std::string_view names[] = {"permute", "expand", "reshape", "slice", "pad", "unfold"};
  std::string s;
  for (const Move& m : v.moves()) {
    s += "." + std::string(names[static_cast<int>(m.kind)]) + "(";
    for (std::size_t i = 0; i < m.axes.size(); ++i) s += (i ? "," : "") + std::to_string(m.axes[i]);
    if (m.kind != MoveKind::Permute) s += str(m.to);
    if (!m.before.empty()) s += " from " + str(m.before);
    for (auto k : m.step)
      if (k != 1) s += " step " + std::to_string(k);
    s += ")";
  }
  return s;
}

// Makes the next push_back allocation-free.
template <class T>
void make_room(std::vector<T>& v) {
  if (v.size() == v.capacity()) v.reserve(2 * v.size() + 1);
}

[[noreturn]] void refuse(const Node& n, const std::string& problem) { throw Error(info(n.op).name, problem); }

std::string operands(const Node& n) {
  std::string s;
  for (const Edge& e : n.in) s += (s.empty() ? "" : " and ") + str(e.view.shape());
  return s;
}

void same_shapes(const Node& n, std::size_t first) {
  for (std::size_t k = first + 1; k < n.in.size(); ++k) {
    const Shape &a = n.in[first].view.shape(), &b = n.in[k].view.shape();
    if (a.size() != b.size()) refuse(n, operands(n) + " have different ranks");
    for (std::size_t i = 0; i < a.size(); ++i)
      if (!(a[i] == b[i])) refuse(n, str_cat(operands(n), " differ at axis ", i, ": ", versus(a[i], b[i])));
  }
}

void axis_exists(const Node& n, const Shape& s) {
  if (n.axis < 0 || n.axis >= static_cast<int>(s.size()))
    refuse(n, str_cat("axis ", n.axis, " is not an axis of ", str(s)));
}

void infer_elementwise(Node& n, const Graph& g) {
  const OpInfo& op = info(n.op);
  const auto type = [&](std::size_t k) { return g[n.in[k].node].dtype; };
  same_shapes(n, 0);
  n.shape = n.in[0].view.shape();
  if (op.types == Types::Bits) {
    if (type(0) == DType::Bool || n.dtype == DType::Bool || size_of(type(0)) != size_of(n.dtype))
      refuse(n, str_cat("the bits of ", name(type(0)), " are none of ", name(n.dtype),
                        "; the sizes are the same, bool has none"));
    return;
  }
  const std::size_t first = op.types == Types::Select ? 1 : 0;
  if (first == 1 && type(0) != DType::Bool) refuse(n, str_cat("the condition is ", name(type(0)), ", not bool"));
  for (std::size_t k = first + 1; k < n.in.size(); ++k)
    if (type(k) != type(first))
      refuse(n, str_cat("element types differ: ", name(type(first)), " and ", name(type(k)), "; convert one"));
  if (op.types == Types::Float && !is_float(type(0)))
    refuse(n, str_cat("needs a floating point operand, not ", name(type(0)), "; convert it"));
  if (op.types == Types::Integer && is_float(type(0)))
    refuse(n, str_cat("needs an operand of integers or bool, not ", name(type(0)), "; convert it, or take its bits"));
  n.dtype = op.types == Types::Compare ? DType::Bool : type(first);
}

void infer_composite(Node& n, const Graph& g) {
  check(n.composite != nullptr, "a composite node without a composite");
  const Composite& c = *n.composite;
  const int given = static_cast<int>(n.in.size()), least = c.arity - c.optional;
  if (given < least || given > c.arity)
    throw Error(c.name,
                str_cat("takes ", c.optional > 0 ? str_cat(least, " to ") : "", c.arity, " operands, not ", given));
  std::vector<TensorType> in, results;
  for (const Edge& e : n.in) in.push_back({g[e.node].dtype, e.view.shape()});
  n.results.clear();
  try {
    results = c.infer(n.attributes, in);
    if (results.empty()) throw Error("", "its infer() gives no result");
    if (results.size() == 1) {
      n.dtype = results[0].dtype, n.shape = std::move(results[0].shape);
    } else {
      n.dtype = DType::U8, n.shape = {result_offsets(results).back()};
      n.results = std::move(results);
    }
  } catch (const Error& e) {
    if (!e.op().empty()) throw;
    throw Error(c.name, e.problem());
  }
}

void infer_result(Node& n, const Graph& g) {
  const std::vector<TensorType>& of = g[n.in[0].node].results;
  if (n.axis < 0 || n.axis >= static_cast<int>(of.size()) || !n.in[0].view.identity())
    refuse(n, str_cat("there is no result ", n.axis, " of ", of.size()));
  n.dtype = of[n.axis].dtype, n.shape = of[n.axis].shape;
}

}  // namespace

void infer(Node& n, const Graph& g) {
  const OpInfo& op = info(n.op);
  if (op.kind != Kind::Kernel && op.kind != Kind::Composite && static_cast<int>(n.in.size()) != op.arity)
    refuse(n, str_cat("takes ", op.arity, " operands, not ", n.in.size()));
  switch (op.kind) {
    case Kind::Leaf:
    case Kind::Kernel: return;
    case Kind::Elementwise: return infer_elementwise(n, g);
    case Kind::Copy:  // keeps the requested dtype
      n.shape = n.in[0].view.shape();
      return;
    case Kind::Reduce:
      n.shape = n.in[0].view.shape();
      axis_exists(n, n.shape);
      n.shape.erase(n.shape.begin() + n.axis);
      n.dtype = g[n.in[0].node].dtype;
      return;
    case Kind::Composite: return infer_composite(n, g);
    case Kind::Result: return infer_result(n, g);
  }
}

namespace {

// The free list of graph slots. It is never destroyed, because tensors may outlive static destruction.
struct Pool {
  std::mutex lock;
  GraphSlot* free = nullptr;

  Graph::Impl* take() {
    const std::lock_guard hold(lock);
    if (!free) free = new GraphSlot;
    Graph::Impl* const impl = new (&free->impl) Graph::Impl;
    impl->home = std::exchange(free, free->next);
    return impl;
  }
};
Pool& pool() {
  static Pool* const p = new Pool;
  return *p;
}

}  // namespace

void Graph::Recycle::operator()(Impl* impl) const noexcept {
  GraphSlot* const slot = impl->home;
  ++slot->generation;
  impl->~Impl();
  const std::lock_guard hold(pool().lock);
  slot->next = std::exchange(pool().free, slot);
}

Graph::Graph() : impl_(pool().take()) { impl_->self = this; }
Graph::Graph(Graph&& other) noexcept { *this = std::move(other); }
Graph& Graph::operator=(Graph&& other) noexcept {
  impl_ = std::move(other.impl_);
  if (impl_) impl_->self = this;
  return *this;
}
Graph::~Graph() = default;

Graph Graph::clone() const {
  Graph g;
  Impl copy = *impl_;
  copy.home = g.impl_->home, copy.self = &g;
  *g.impl_ = std::move(copy);
  return g;
}

const Node& Graph::operator[](NodeId id) const { return impl_->nodes[id]; }
std::size_t Graph::size() const { return impl_->nodes.size(); }
std::span<const Root> Graph::roots() const { return impl_->roots; }
std::span<const Assignment> Graph::assignments() const { return impl_->assignments; }

// Returns the edge itself if its view is simple. Otherwise it copies what a prefix of the moves reads and returns an
// edge with the remaining moves over that copy.
Edge Graph::simple(Edge e) {
  if (e.view.simple()) return e;
  const std::span<const Move> moves = e.view.moves();
  std::size_t first = 1;
  View shown = e.view.without_last(moves.size() - first);
  for (; first + 1 < moves.size(); ++first) {
    View more = shown.then(moves.subspan(first, 1));
    if (!more.simple()) break;
    shown = std::move(more);
  }
  const NodeId copy = add({.op = Op::Contiguous, .dtype = (*this)[e.node].dtype, .in = {{e.node, std::move(shown)}}});
  return simple({copy, View((*this)[copy].shape).then(moves.subspan(first))});
}

NodeId Graph::add(Node n) {
  for (Edge& e : n.in) {
    check(e.node < size(), "an edge to a node that does not exist yet");
    check(e.view.base() == impl_->nodes[e.node].shape, "an edge whose view does not fit its node");
    if (!e.view.simple()) e = simple(std::move(e));
  }
  infer(n, *this);
  if (!n.where.known()) n.where = OpScope::current();
  const std::size_t h = hash(n);
  if (2 * size() >= impl_->known.size()) {
    impl_->known.assign(std::max<std::size_t>(64, 2 * impl_->known.size()), 0);
    for (NodeId k = 0; k < size(); ++k) impl_->slot(impl_->hashes[k], [](NodeId) { return false; }) = k + 1;
  }
  NodeId& slot = impl_->slot(h, [&](NodeId k) { return same(impl_->nodes[k], n); });
  if (slot) return slot - 1;
  if (size() >= std::numeric_limits<NodeId>::max()) throw Error("graph", "too many nodes");
  const auto id = static_cast<NodeId>(size());
  impl_->hashes.resize(id);  // a push_back that threw may have left its hash behind
  impl_->hashes.push_back(h);
  impl_->nodes.push_back(std::move(n));
  slot = id + 1;  // set only after both push_backs succeeded
  return id;
}

NodeId Graph::adopt(const Node& n, std::vector<Edge> in) {
  Node copy = n;
  copy.in = std::move(in);
  return add(std::move(copy));
}

Tensor Graph::parameter(std::string_view name, Shape shape, DType dtype, const SourceLocation& at) {
  return input(name, std::move(shape), dtype, at, true);
}
Tensor Graph::input(std::string_view name, Shape shape, DType dtype, const SourceLocation& at, bool parameter) {
  const OpScope scope("input", at);
  if (name.empty()) throw Error("input", "an input needs a name");
  for (const Dim& d : shape)
    if (d.bounds().lo < 0)
      throw Error("input", str_cat("'", name, "' of shape ", lc::str(shape), " has a negative extent"));
  const View view(shape);
  Node n{.op = Op::Input, .dtype = dtype, .shape = std::move(shape), .parameter = parameter, .name = std::string(name)};
  const auto [place, fresh] = impl_->input_names.insert(n.name);
  if (!fresh) throw Error("input", str_cat("'", name, "' exists already; names are unique in a graph"));
  try {
    return Tensor(*this, {add(std::move(n)), view});
  } catch (...) {
    impl_->input_names.erase(place);
    throw;
  }
}

Tensor Graph::constant(Scalar v, DType dtype) {
  double value = v.value;
  if (is_unsigned(dtype) && value <= -1) {  // negative numbers wrap
    std::uint64_t raw = 0;
    store_f64(&raw, DType::I64, 0, value);
    store_i64(&raw, dtype, 0, v.whole.value_or(load_i64(&raw, DType::I64, 0)));
    if (dtype == DType::U64) return index({}, load_i64(&raw, dtype, 0), dtype);
    value = load_f64(&raw, dtype, 0);
  }
  // a double holds every whole number below 2^53
  if (v.whole && is_float(dtype) && dtype != DType::F64) value = odd_f64(*v.whole, value > 0);
  const bool holds = dtype == DType::U64 || (dtype == DType::I64 && (value < 0) == (v.whole < 0));
  if (v.whole && holds && std::fabs(value) >= 0x1p53) return index({}, *v.whole, dtype);
  return Tensor(*this, {add({.op = Op::Constant, .dtype = dtype, .value = value}), View()});
}

Tensor Graph::index(Shape shape, Dim expression, DType dtype) {
  const View view(shape);
  return Tensor(*this, {add({.op = Op::Index, .dtype = dtype, .shape = std::move(shape), .index = expression}), view});
}

void Graph::output(std::string_view name, const Operand& value) {
  const OpScope scope("output", value.at);
  if (&value->impl() != impl_.get()) throw Error("output", "the tensor belongs to another graph");
  root(name, value->edge());
}

void Graph::root(std::string_view name, Edge e) {
  Root r{std::string(name), simple(std::move(e))};
  if (r.name.empty()) r.name = "out" + std::to_string(impl_->roots.size());
  make_room(impl_->roots);
  if (!impl_->root_names.insert(r.name).second)
    throw Error("output", str_cat("'", r.name, "' exists already; names are unique in a graph"));
  impl_->roots.push_back(std::move(r));
}

void Graph::assign(const Operand& state, const Operand& next) {
  const OpScope scope("assign", state.at);
  if (&state->impl() != impl_.get() || &next->impl() != impl_.get())
    throw Error("assign", "the tensors belong to another graph");
  const Edge s = state->edge();
  if ((*this)[s.node].op != Op::Input || !s.view.identity())
    throw Error("assign", "only an input, read as it is, can be state");
  if (state->shape() != next->shape() || state->dtype() != next->dtype())
    throw Error("assign",
                str_cat("'", (*this)[s.node].name, "' is ", name(state->dtype()), " ", lc::str(state->shape()),
                        ", the new value ", name(next->dtype()), " ", lc::str(next->shape())));
  assignment(s.node, next->edge());
}

void Graph::assignment(NodeId state, Edge next) {
  next = simple(std::move(next));
  make_room(impl_->assignments);
  if (!impl_->assigned.insert(state).second)
    throw Error("assign", str_cat("'", (*this)[state].name, "' is assigned twice"));
  impl_->assignments.push_back({state, std::move(next)});
}

const Derivative* Graph::derivative(NodeId of) const {
  const auto it = impl_->derivatives.find(of);
  return it == impl_->derivatives.end() ? nullptr : it->second.get();
}
void Graph::derivative(NodeId of, std::shared_ptr<const Derivative> d) { impl_->derivatives[of] = std::move(d); }

bool operator==(const Graph& a, const Graph& b) {
  return std::ranges::equal(a.impl_->nodes, b.impl_->nodes, same) && std::ranges::equal(a.roots(), b.roots()) &&
         std::ranges::equal(a.assignments(), b.assignments());
}

std::vector<bool> Graph::live() const {
  std::vector<bool> live(size());
  for (const Root& r : roots()) live[r.edge.node] = true;
  for (const Assignment& a : assignments()) live[a.state] = live[a.next.node] = true;
  for (std::size_t i = size(); i-- > 0;)
    if (live[i])
      for (const Edge& e : impl_->nodes[i].in) live[e.node] = true;
  return live;
}

std::vector<int> Graph::uses() const {
  std::vector<int> uses(size());
  const auto alive = live();
  for (const Root& r : roots()) ++uses[r.edge.node];
  for (const Assignment& a : assignments()) ++uses[a.next.node];
  for (std::size_t i = 0; i < size(); ++i)
    if (alive[i])
      for (const Edge& e : impl_->nodes[i].in) ++uses[e.node];
  return uses;
}

std::string describe(const Node& n) {
  if (n.op == Op::Kernel) return n.name.empty() ? "kernel" : n.name;
  std::string s = n.composite ? n.composite->name : std::string(info(n.op).name);
  if (n.op == Op::Input) s += " " + n.name;
  if (n.op == Op::Constant) s += " " + str_cat(n.value);
  if (n.op == Op::Index) s += " " + n.index.str();
  if (info(n.op).kind == Kind::Reduce || n.op == Op::Result) s += "<" + std::to_string(n.axis) + ">";
  if (!n.attributes.empty()) s += "<" + n.attributes.str() + ">";
  return s;
}

std::string Graph::str() const {
  std::string s;
  const auto alive = live();
  const auto edge = [&](const Edge& e) { return " %" + std::to_string(e.node) + text(e.view); };
  for (std::size_t i = 0; i < size(); ++i) {
    if (!alive[i]) continue;
    const Node& n = impl_->nodes[i];
    s += "%" + std::to_string(i) + " = " + describe(n);
    for (const Edge& e : n.in) s += edge(e);
    s += " : " + std::string(name(n.dtype)) + lc::str(n.shape) + "\n";
  }
  for (const Root& r : roots()) s += r.name + " =" + edge(r.edge) + "\n";
  for (const Assignment& a : assignments()) s += impl_->nodes[a.state].name + " :=" + edge(a.next) + "\n";
  return s;
}

}  // namespace lc
