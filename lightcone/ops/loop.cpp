#include "lightcone/ops/loop.h"

#include <algorithm>
#include <map>
#include <set>

#include "lightcone/ops/ops.h"

namespace lc {
namespace {

std::string described(const Tensor& t) { return str_cat(name(t.dtype()), " ", str(t.shape())); }

// Returns the number of steps.
std::int64_t length_of(const std::vector<Tensor>& xs, const ScanOptions& o) {
  std::optional<std::int64_t> length = o.length;
  if (length && *length < 0) throw Error("scan", str_cat("a length of ", *length));
  for (const Tensor& x : xs) {
    if (x.rank() == 0) throw Error("scan", "xs have an axis of steps, axis 0: a scalar has none");
    const auto n = x.extent(0).constant();
    if (!n)
      throw Error("scan", str_cat("the length of ", str(x.shape()), " is not known when the graph is built: axis 0 is ",
                                  x.extent(0), ", and has to be a number"));
    if (length && *length != *n)
      throw Error("scan", o.length && &x == xs.data()
                              ? str_cat("the length is ", *length, ", and axis 0 of ", str(x.shape()), " is ", *n)
                              : str_cat("xs differ in their length: ", str(xs[0].shape()), " and ", str(x.shape())));
    length = *n;
  }
  if (!length) throw Error("scan", "without xs it needs a length: ScanOptions{.length = n}");
  return *length;
}

// Throws Error unless the next states have the types of the previous ones.
void check_state(const std::vector<Tensor>& before, const std::vector<Tensor>& next) {
  if (before.size() != next.size())
    throw Error("scan", str_cat("there are ", before.size(), " states, and the function gives ", next.size()));
  for (std::size_t k = 0; k < before.size(); ++k) {
    if (!next[k].defined()) throw Error("scan", str_cat("the function gives no state ", k));
    if (before[k].shape() == next[k].shape() && before[k].dtype() == next[k].dtype()) continue;
    throw Error("scan", str_cat("state ", k, " is ", described(before[k]), ", and the function makes it ",
                                described(next[k]), ": a state keeps its shape and its dtype"));
  }
}

void check_ys(const std::vector<Tensor>& ys) {
  for (std::size_t k = 0; k < ys.size(); ++k)
    if (!ys[k].defined()) throw Error("scan", str_cat("the function gives no y ", k));
}

Scanned of_no_steps(const ScanBody& f, const std::vector<Tensor>& state, const std::vector<Tensor>& xs) {
  std::vector<Tensor> x;
  for (const Tensor& t : xs) {
    Shape s = t.shape();
    s.erase(s.begin());
    x.push_back(full(t.graph(), s, 0, t.dtype()));
  }
  const Scanned step = f(state, x);
  check_state(state, step.state);
  check_ys(step.ys);
  Scanned r{state, {}};
  for (const Tensor& y : step.ys) {
    Shape s = y.shape();
    s.insert(s.begin(), 0);
    r.ys.push_back(full(y.graph(), s, 0, y.dtype()));
  }
  return r;
}

// A stand-in for an argument while the function is traced.
Tensor placeholder(const Graph& g, Shape shape, DType type) {
  static const auto c = std::make_shared<const Composite>(
      Composite{.name = "placeholder",
                .infer = [](const Attributes&, std::span<const TensorType> in) { return std::vector{in[0]}; },
                .define = [](const Attributes&, std::span<const Tensor> in) { return std::vector{in[0]}; }});
  return call(c, {full(g, std::move(shape), 0, type)}, {{"number", static_cast<std::int64_t>(g.size())}})[0];
}

// Extracts the nodes that a function added to a graph into a graph of their own.
class Extraction {
 public:
  Extraction(const Graph& from, const std::vector<Tensor>& given);
  LoopBody run(const std::vector<Tensor>& outputs);
  const std::vector<Tensor>& captured() const { return captured_; }

 private:
  std::set<NodeId> needed(const std::vector<Tensor>& outputs) const;
  void input(const Tensor& t, bool captured = false);
  bool is_leaf(NodeId id) const { return from_[id].op == Op::Constant || from_[id].op == Op::Index; }
  Edge moved(const Edge& e) const { return {to_.at(e.node), e.view}; }

  const Graph& from_;
  LoopBody body_;
  std::map<NodeId, NodeId> to_;
  std::set<NodeId> depends_;  // nodes that depend on the function's arguments
  std::vector<Tensor> captured_;
};

Extraction::Extraction(const Graph& from, const std::vector<Tensor>& given) : from_(from) {
  for (const Tensor& t : given) input(t), depends_.insert(t.edge().node);
  for (NodeId id = *depends_.begin(); id < from.size(); ++id)
    if (std::ranges::any_of(from[id].in, [&](const Edge& e) { return depends_.contains(e.node); })) depends_.insert(id);
}

void Extraction::input(const Tensor& t, bool captured) {
  const NodeId id =
      body_.graph.input(str_cat("in", body_.inputs.size()), t.shape(), t.dtype(), Tensor::At::current(), captured)
          .edge()
          .node;
  body_.inputs.push_back(id);
  to_[t.edge().node] = id;
}

// Finds the nodes that depend on the arguments, and their operands, including those of derivatives.
std::set<NodeId> Extraction::needed(const std::vector<Tensor>& outputs) const {
  std::set<NodeId> all;
  std::vector<NodeId> open;
  const auto reach = [&](NodeId id) {
    if (all.insert(id).second && depends_.contains(id) && !to_.contains(id)) open.push_back(id);
  };
  for (const Tensor& t : outputs) reach(t.edge().node);
  while (!open.empty()) {
    const NodeId id = open.back();
    open.pop_back();
    for (const Edge& e : from_[id].in) reach(e.node);
    if (const Derivative* d = from_.derivative(id))
      for (const Edge& e : d->in) reach(e.node);
  }
  return all;
}

LoopBody Extraction::run(const std::vector<Tensor>& outputs) {
  const std::set<NodeId> all = needed(outputs);
  for (const NodeId id : all)
    if (!depends_.contains(id) && !is_leaf(id)) {
      captured_.emplace_back(from_, Edge{id, View(from_[id].shape)});
      input(captured_.back(), true);
    }
  Graph& to = body_.graph;
  for (const NodeId id : all) {
    if (to_.contains(id)) continue;
    std::vector<Edge> in;
    for (const Edge& e : from_[id].in) in.push_back(moved(e));
    to_[id] = to.adopt(from_[id], std::move(in));
    if (const Derivative* d = from_.derivative(id)) {
      Derivative own{{}, d->vjp};
      for (const Edge& e : d->in) own.in.push_back(moved(e));
      to.derivative(to_[id], std::make_shared<const Derivative>(std::move(own)));
    }
  }
  for (std::size_t k = 0; k < outputs.size(); ++k) to.root(str_cat("out", k), moved(outputs[k].edge()));
  body_.captures = captured_.size();
  return std::move(body_);
}

TensorType type_of(const Graph& g, const Edge& e) { return {g[e.node].dtype, e.view.shape()}; }
TensorType stacked(TensorType t, std::int64_t length) {
  t.shape.insert(t.shape.begin(), length);
  return t;
}

// Result types in order: last states, ys, states before each step.
std::vector<TensorType> result_types(const LoopBody& b) {
  std::vector<TensorType> types;
  for (std::size_t k = 0; k < b.states + b.ys; ++k) {
    const TensorType t = type_of(b.graph, b.graph.roots()[k].edge);
    types.push_back(k < b.states ? t : stacked(t, b.length));
  }
  for (std::size_t k = 0; b.keeps && k < b.states; ++k) types.push_back(stacked(types[k], b.length));
  return types;
}

bool has_known_sizes(const LoopBody& b) {
  const auto known = [](const Shape& s) {
    return std::ranges::all_of(s, [](const Dim& d) { return d.is_constant(); });
  };
  for (NodeId id = 0; id < b.graph.size(); ++id)
    if (!known(b.graph[id].shape)) return false;
  return std::ranges::all_of(b.graph.roots(), [&](const Root& r) { return known(r.edge.view.shape()); });
}

// A loop with open sizes is written out as soon as it is built.
void require_few_steps(const LoopBody& b) {
  constexpr std::int64_t kMostNodes = 1 << 18;
  if (b.length > kMostNodes / std::max<std::int64_t>(static_cast<std::int64_t>(b.graph.size()), 1))
    throw Error("scan", str_cat(b.length, " steps of ", b.graph.size(), " nodes with sizes that are open would be ",
                                "written out, and at most ", kMostNodes, " nodes are: give the inputs fixed sizes"));
}

std::vector<Tensor> unrolled(const LoopBody& b, std::span<const Tensor> in) {
  Graph& g = in[0].graph();
  std::vector<Tensor> now(in.begin(), in.end());
  std::vector<std::vector<Tensor>> rows(b.ys + (b.keeps ? b.states : 0),
                                        std::vector<Tensor>(static_cast<std::size_t>(b.length)));
  for (std::int64_t step = 0; step < b.length; ++step) {
    const std::int64_t at = b.slice_of(step);
    for (std::size_t k = b.states; k < b.states + b.slices; ++k) now[k] = in[k].slice(0, at, at + 1).squeeze(0);
    const std::vector<Tensor> out = instantiate(b, now, g);
    for (std::size_t k = 0; k < b.ys; ++k) rows[k][at] = out[b.states + k];
    for (std::size_t k = b.ys; k < rows.size(); ++k) rows[k][at] = now[k - b.ys];
    std::copy_n(out.begin(), b.states, now.begin());
  }
  std::vector<Tensor> results(now.begin(), now.begin() + static_cast<std::ptrdiff_t>(b.states));
  for (const auto& row : rows) results.push_back(stack(row, 0));
  return results;
}

}  // namespace

std::vector<Tensor> instantiate(const LoopBody& body, std::span<const Tensor> inputs, Graph& g,
                                const std::map<NodeId, Tensor>& replaced) {
  const Graph& from = body.graph;
  std::vector<Edge> to(from.size());
  for (std::size_t k = 0; k < inputs.size(); ++k) to[body.inputs[k]] = inputs[k].edge();
  const auto moved = [&](std::vector<Edge> edges) {
    for (Edge& e : edges) e = {to[e.node].node, to[e.node].view.then(e.view)};
    return edges;
  };
  for (NodeId id = 0; id < from.size(); ++id) {
    if (from[id].op == Op::Input) continue;
    if (const auto other = replaced.find(id); other != replaced.end()) {
      to[id] = other->second.edge();
      continue;
    }
    const OpScope scope(from[id].where);
    const NodeId made = g.adopt(from[id], moved(from[id].in));
    to[id] = {made, View(g[made].shape)};
    if (const Derivative* d = from.derivative(id))
      g.derivative(made, std::make_shared<const Derivative>(Derivative{moved(d->in), d->vjp}));
  }
  std::vector<Tensor> out;
  for (const Root& r : from.roots()) out.emplace_back(g, moved({r.edge})[0]);
  return out;
}

std::vector<Tensor> call_loop(const std::shared_ptr<const LoopBody>& body, std::vector<Tensor> operands) {
  Composite c;
  c.name = "scan", c.arity = static_cast<int>(operands.size());
  c.infer = [types = result_types(*body)](const Attributes&, std::span<const TensorType>) { return types; };
  c.define = [body](const Attributes&, std::span<const Tensor> in) { return unrolled(*body, in); };
  c.loop = body;
  return call(std::make_shared<const Composite>(std::move(c)), std::move(operands));
}

TracedLoop trace_loop(const ScanBody& f, std::vector<Tensor> state, std::vector<Tensor> xs, std::int64_t length) {
  if (state.empty() && xs.empty()) throw Error("scan", "there is neither a state nor any xs");
  const Graph& g = state.empty() ? xs[0].graph() : state[0].graph();
  std::vector<Tensor> s, x;
  for (const Tensor& t : state) s.push_back(placeholder(g, t.shape(), t.dtype()));
  for (const Tensor& t : xs) {
    Shape shape = t.shape();
    shape.erase(shape.begin());
    x.push_back(placeholder(g, std::move(shape), t.dtype()));
  }
  const Scanned step = f(s, x);
  check_state(state, step.state);
  check_ys(step.ys);
  std::vector<Tensor> given = s, outputs = step.state;
  given.insert(given.end(), x.begin(), x.end());
  outputs.insert(outputs.end(), step.ys.begin(), step.ys.end());
  Extraction extraction(g, given);
  auto body = std::make_shared<LoopBody>(extraction.run(outputs));
  body->states = state.size(), body->slices = xs.size(), body->ys = step.ys.size();
  body->length = length;
  std::vector<Tensor> operands = std::move(state);
  operands.insert(operands.end(), xs.begin(), xs.end());
  operands.insert(operands.end(), extraction.captured().begin(), extraction.captured().end());
  return {std::move(body), std::move(operands)};
}

Scanned scan(const ScanBody& f, std::vector<Tensor> state, std::vector<Tensor> xs, const ScanOptions& o,
             const Tensor::At& at) {
  const OpScope scope("scan", at);
  const std::int64_t n = length_of(xs, o);
  if (n == 0) return of_no_steps(f, state, xs);
  TracedLoop loop = trace_loop(f, std::move(state), std::move(xs), n);
  const std::shared_ptr<LoopBody>& body = loop.body;
  const bool known = has_known_sizes(*body);
  body->reverse = o.reverse, body->keeps = known && o.keep_states;
  if (!known) require_few_steps(*body);
  const std::vector<Tensor> results =
      known ? call_loop(body, std::move(loop.operands)) : unrolled(*body, loop.operands);
  const auto after = [&](std::size_t k) { return results.begin() + static_cast<std::ptrdiff_t>(k); };
  return {{results.begin(), after(body->states)}, {after(body->states), after(body->states + body->ys)}};
}

std::vector<Tensor> while_loop(const WhileCondition& condition, const WhileBody& body, std::vector<Tensor> state,
                               std::int64_t max_steps, const Tensor::At& at) {
  const OpScope scope("while_loop", at);
  if (state.empty()) throw Error("while_loop", "there is no state");
  if (max_steps < 0) throw Error("while_loop", str_cat("at most ", max_steps, " steps"));
  const ScanBody step = [&](const std::vector<Tensor>& now, const std::vector<Tensor>&) {
    const Tensor go = condition(now);
    if (go.dtype() != DType::Bool || go.rank() != 0)
      throw Error("while_loop",
                  str_cat("the condition is ", name(go.dtype()), " ", str(go.shape()), ", not a bool []"));
    Scanned r{.state = body(now), .ys = {}};
    check_state(now, r.state);
    for (std::size_t k = 0; k < now.size(); ++k) {
      const Shape s = now[k].shape();
      const Tensor wide = go.reshape(Shape(s.size(), 1)).expand(s);
      r.state[k] = prim::where(wide, r.state[k], now[k]);
    }
    return r;
  };
  return scan(step, std::move(state), {}, {.length = max_steps, .keep_states = false}, at).state;
}

}  // namespace lc
