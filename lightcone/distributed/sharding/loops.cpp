// Loops: the body of one rank is made as its graph is. States and slices stay divided along what the body keeps apart.
#include <algorithm>

#include "lightcone/distributed/sharding/sharder.h"
#include "lightcone/ops/loop.h"

namespace lc::distributed {
namespace {

Sharding without_partial(Sharding s) {
  s.partial.clear();
  return s;
}
Sharding stacked(Sharding s) {
  s.axes.insert(s.axes.begin(), Axes());
  return s;
}
bool contains(const Axes& axes, int axis) { return std::ranges::find(axes, axis) != axes.end(); }

bool is_zero(const Node& n) { return n.op == Op::Constant && n.value == 0; }

double bytes_of(const Node& n) {
  return static_cast<double>(size_of(n.dtype)) * static_cast<double>(product(n.shape).bounds().hi);
}

}  // namespace

// The body of a loop whose inputs are spread like this. `next` is how its outputs lie; without it, the outputs for the
// states are spread as the states are.
Sharder::Body Sharder::body_of(const LoopBody& loop, const std::vector<Sharding>& given, PassLog& log) const {
  static const ShardSpecs none;
  const auto axes = mesh_.axes().subspan(ranks_.mesh().axes().size());
  Sharder own(loop.graph, ranks_, none, {.serial = {axes.begin(), axes.end()}}, log);
  for (std::size_t k = 0; k < given.size(); ++k) own.given_.emplace(loop.inputs[k], given[k]);
  own.find_hints();
  const auto live = loop.graph.live();
  for (NodeId id = 0; id < loop.graph.size(); ++id)
    if (live[id] || loop.graph[id].op == Op::Input) own.node(id);
  Body b;
  for (std::size_t k = 0; k < loop.graph.roots().size(); ++k) {
    const Root& r = loop.graph.roots()[k];
    Sharding lies;
    lies.axes = own.seen(r.edge), lies.partial = own.held(r.edge).s.partial;
    const Sharding& wanted = k < loop.states ? given[k] : lies;
    own.dst_.root(r.name, own.at(r.edge, wanted.axes, wanted.partial)[0].edge());
    b.outputs.push_back(std::move(lies));
  }
  for (const NodeId in : loop.inputs) b.inputs.push_back(own.inputs_.at(in));
  for (NodeId id = 0; id < own.dst_.size(); ++id)
    if (is_exchange(own.dst_[id])) ++b.exchanges, b.bytes += bytes_of(own.dst_[id]);
  b.graph = std::move(own.dst_);
  return b;
}

// How the operands lie, as the body's inputs; they are not divided along steps and serial axes.
std::vector<Sharding> Sharder::body_inputs(const Node& n, bool captures) const {
  const LoopBody& loop = *n.composite->loop;
  std::vector<Sharding> given;
  for (std::size_t k = 0; k < n.in.size(); ++k) {
    Sharding s;
    s.axes = seen(n.in[k]);
    if (k >= loop.states && k < loop.states + loop.slices) s.axes.erase(s.axes.begin());
    for (Axes& a : s.axes)
      if (exchanger_.any_serial(a) || (k >= loop.states + loop.slices && !captures)) a.clear();
    given.push_back(std::move(s));
  }
  return given;
}

// Spreads the states so that they lie after a step as before it. A state that starts as zero is at first taken for a
// sum of parts along all axes, which it remains if the body only adds to it. A state is divided as the body divides it.
Sharder::Body Sharder::settled_body(const Node& n, std::vector<Sharding>& given) const {
  const LoopBody& loop = *n.composite->loop;
  Axes used;
  for (const Sharding& s : given)
    for (const Axes& a : s.axes) used.insert(used.end(), a.begin(), a.end());
  std::ranges::sort(used);
  used.erase(std::ranges::unique(used).begin(), used.end());
  for (std::size_t k = 0; k < loop.states; ++k)
    for (const int axis : used)
      if (is_float(src_[n.in[k].node].dtype) && !given[k].uses(axis) &&
          (is_zero(src_[n.in[k].node]) || contains(held(n.in[k]).s.partial, axis)))
        given[k].partial.push_back(axis);
  while (true) {
    PassLog log;
    Body b = body_of(loop, given, log);
    bool same = true;
    for (std::size_t k = 0; k < loop.states; ++k)
      same &= adapt(given[k], b.outputs[k], loop.graph[loop.inputs[k]].shape);
    b.log = std::move(log);
    if (same) return b;
  }
}

// Returns true if the state already lies as the body's output does.
bool Sharder::adapt(Sharding& state, const Sharding& next, const Shape& shape) const {
  const Sharding before = state;
  std::erase_if(state.partial, [&](int axis) { return !contains(next.partial, axis); });
  for (std::size_t i = 0; i < state.axes.size(); ++i) {
    const Axes& a = next.axes[i];
    const bool is_free = state.axes[i].empty() && !exchanger_.any_serial(a) && std::ranges::none_of(a, [&](int axis) {
                           return state.uses(axis) || contains(state.partial, axis);
                         });
    if (is_free && divides(mesh_.extent(a), shape[i])) state.axes[i] = a;
  }
  return state == before;
}

// Captures that a body would gather in each step are gathered once before it, and so is everything if that sends less.
void Sharder::loop(NodeId id) {
  const Node& n = src_[id];
  const LoopBody& loop = *n.composite->loop;
  const auto gathered_bytes = [&](const std::vector<Sharding>& given) {
    double bytes = 0;
    for (std::size_t k = 0; k < n.in.size(); ++k)
      if (given[k].axes != body_inputs(n, true)[k].axes) bytes += bytes_of(src_[n.in[k].node]);
    return bytes;
  };
  std::vector<Sharding> given = body_inputs(n, true);
  Body body = settled_body(n, given);
  double cost = body.bytes * static_cast<double>(loop.length);
  const auto consider = [&](std::vector<Sharding> other) {
    if (body.exchanges == 0) return;
    const double moved = gathered_bytes(other);
    Body b = settled_body(n, other);
    if (moved + b.bytes * static_cast<double>(loop.length) >= cost) return;
    cost = moved + b.bytes * static_cast<double>(loop.length);
    given = std::move(other), body = std::move(b);
  };
  consider(body_inputs(n, false));
  std::vector<Sharding> whole;
  for (const Edge& e : n.in) whole.emplace_back(e.view.shape().size());
  for (std::size_t k = loop.states; k < loop.states + loop.slices; ++k) whole[k].axes.pop_back();
  consider(std::move(whole));
  note_loop(n, given, body);

  std::vector<Tensor> in;
  for (std::size_t k = 0; k < n.in.size(); ++k) {
    made_for(n.in[k].node, -1);
    const bool sliced = k >= loop.states && k < loop.states + loop.slices;
    in.push_back(at(n.in[k], (sliced ? stacked(given[k]) : given[k]).axes, given[k].partial)[0]);
  }
  made_for(id, -1);
  auto own =
      std::make_shared<LoopBody>(LoopBody{std::move(body.graph), std::move(body.inputs), loop.states, loop.slices,
                                          loop.captures, loop.ys, loop.length, loop.reverse, loop.keeps});
  if (body.exchanges > 0 && loop.slices == 0) {
    // A loop without slices ends when no state changes any more: on all ranks, or on none.
    const auto after = static_cast<std::ptrdiff_t>(loop.states);
    own->inputs.insert(own->inputs.begin() + after, own->graph.input("step", {}, DType::Bool).edge().node);
    own->slices = 1;
    in.insert(in.begin() + after, full(dst_, {loop.length}, 0, DType::Bool));
  }
  const std::vector<Tensor> out = call_loop(own, std::move(in));
  for (std::size_t k = 0; k < out.size(); ++k) {
    const bool last = k < loop.states, y = !last && k < loop.states + loop.ys;
    const Sharding& s = last ? given[k] : y ? body.outputs[k] : given[k - loop.states - loop.ys];
    to_[id].push_back({{out[k]}, last ? s : stacked(s), View(results_of(n)[k].shape)});
  }
}

void Sharder::note_loop(const Node& n, const std::vector<Sharding>& given, const Body& body) {
  for (const auto& [what, times] : body.log.fired) log_.fired[what] += times;
  log_.notes.insert(log_.notes.end(), body.log.notes.begin(), body.log.notes.end());
  const auto is_divided = [](const Sharding& s) { return !without_partial(s).is_whole(); };
  const std::string at = str_cat(n.where.known() ? " at " : "", n.where.str());
  if (body.exchanges > 0)
    log_.notes.push_back(str_cat("each of the ", n.composite->loop->length, " steps of the loop", at, " exchanges ",
                                 body.bytes / 1e6, " MB in ", body.exchanges, " operations"));
  else if (std::ranges::none_of(given, is_divided)) note_whole(n);
}

}  // namespace lc::distributed
