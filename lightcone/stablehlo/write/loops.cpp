// Writes scan() and while_loop() as stablehlo.while: a counter, states, stacked outputs, and values that stay the same.
#include <algorithm>

#include "lightcone/core/composite.h"
#include "lightcone/stablehlo/write/writer.h"

namespace lc::stablehlo {
namespace {

// while_loop() is a scan that keeps its states once a condition fails. The loop may end as soon as it does for all
// states.
struct Ending {
  Edge goes_on;            // a bool of one element
  std::vector<Edge> next;  // the states while the condition holds
};

// Returns one element of a condition that was broadcast to the shape of a state.
Edge one_of(const Edge& e) {
  const std::size_t rank = e.view.shape().size();
  return {e.node, e.view.slice(Shape(rank, 0), Shape(rank, 1)).reshape({})};
}

std::optional<Ending> ending_of(const LoopBody& body, const Graph& g, const std::vector<NodeId>& inputs) {
  if (body.slices != 0 || body.ys != 0 || body.keeps || body.states == 0) return std::nullopt;
  Ending end;
  bool found = false;
  for (std::size_t k = 0; k < body.states; ++k) {
    const Edge& e = g.roots()[k].edge;
    const bool identity = e.view.identity();
    if (identity && e.node == inputs[k]) {  // constant state
      end.next.push_back(e);
      continue;
    }
    const Node& n = g[e.node];
    if (!identity || n.op != Op::Where || n.in[2].node != inputs[k] || !n.in[2].view.identity() ||
        product(n.shape).bounds().lo == 0)
      return std::nullopt;
    const Edge condition = one_of(n.in[0]);
    const auto place = [](const Edge& c) { return c.view.locate({}); };
    if (!(n.in[0].view.locate(index_symbols(n.shape)).offset == place(condition).offset) ||
        !(place(condition).valid == Dim(1)))
      return std::nullopt;  // the condition differs between elements
    if (!found) end.goes_on = condition, found = true;
    else if (end.goes_on.node != condition.node || !(place(end.goes_on).offset == place(condition).offset))
      return std::nullopt;
    end.next.push_back(n.in[1]);
  }
  return found ? std::optional(end) : std::nullopt;
}

class LoopWriter {
 public:
  LoopWriter(Writer& w, const Node& n)
      : w_(w), b_(w.builder()), n_(n), body_(*n.composite->loop), g_(prepare(body_.graph, w.options())) {
    for (const NodeId input : body_.inputs) inputs_.push_back(input_named(body_.graph[input].name));
    ending_ = ending_of(body_, g_, inputs_);
  }

  std::vector<ValueId> write() {
    std::vector<ValueId> carried{b_.splat_whole("i64", {}, 0)};
    for (std::size_t k = 0; k < body_.states; ++k) carried.push_back(w_.value(n_.in[k]));
    for (std::size_t k = body_.states; k < n_.results.size(); ++k)
      carried.push_back(b_.splat(element_of(n_.results[k].dtype), b_.sizes(n_.results[k].shape), 0));
    if (n_.results.empty() && body_.states == 0)  // a single result is not a list
      carried.push_back(b_.splat(element_of(n_.dtype), b_.sizes(n_.shape), 0));
    stacked_ = carried.size() - 1 - body_.states;
    for (std::size_t k = body_.states; k < n_.in.size(); ++k) carried.push_back(w_.value(n_.in[k]));
    for (const auto& [symbol, v] : b_.told()) symbols_.push_back(symbol), carried.push_back(v);
    std::vector<Type> types;
    for (const ValueId v : carried) types.push_back(b_.type(v));
    std::vector<Block> regions;
    regions.push_back(b_.block(types, [&](const auto& v) { return std::vector{goes_on(v)}; }));
    regions.push_back(b_.block(types, [&](const auto& v) { return step(v); }));
    const auto last = b_.operation("stablehlo.while", carried, types, {}, std::move(regions));
    const auto first = last.begin() + 1;
    return {first, first + static_cast<std::ptrdiff_t>(body_.states + stacked_)};
  }

 private:
  NodeId input_named(const std::string& name) const {
    for (NodeId id = 0; id < g_.size(); ++id)
      if (g_[id].op == Op::Input && g_[id].name == name) return id;
    return static_cast<NodeId>(g_.size());  // the body does not read it
  }
  std::size_t constants() const { return 1 + body_.states + stacked_; }  // position of slices and captures

  // Sets the inputs of a step. Without `at`, slices are not set.
  Writer inside(const std::vector<ValueId>& v, const ValueId* at) {
    for (std::size_t k = 0; k < symbols_.size(); ++k) b_.tell(symbols_[k], v[v.size() - symbols_.size() + k]);
    Writer inner(b_, g_, w_.options());
    for (std::size_t k = 0; k < inputs_.size(); ++k) {
      if (inputs_[k] == g_.size()) continue;
      const bool state = k < body_.states, slice = !state && k < body_.states + body_.slices;
      const ValueId x = v[state ? 1 + k : constants() + k - body_.states];
      if (!slice) inner.give(inputs_[k], x);
      else if (at) inner.give(inputs_[k], slice_of(x, *at));
    }
    return inner;
  }
  std::vector<ValueId> starts(ValueId x, ValueId at) {
    std::vector<ValueId> all(b_.shape(x).size(), b_.splat_whole("i64", {}, 0));
    all[0] = at;
    return all;
  }
  ValueId slice_of(ValueId x, ValueId at) {
    Type t = b_.type(x);
    t.shape[0] = 1;
    if (is_open(t.shape)) return row_of(x, at, t);
    std::vector<ValueId> operands{x};
    for (const ValueId s : starts(x, at)) operands.push_back(s);
    const Sizes shape(t.shape.begin() + 1, t.shape.end()), sizes = t.shape;
    return b_.reshape(b_.one("stablehlo.dynamic_slice", operands, std::move(t), {{"slice_sizes", integers(sizes)}}),
                      shape);
  }
  // Returns a piece with open extents as a gather of one index, because dynamic_slice requires constant sizes.
  ValueId row_of(ValueId x, ValueId at, Type t) {
    const Sizes piece = t.shape;
    t.shape.erase(t.shape.begin());
    Attribute numbers;
    numbers.kind = Attribute::Kind::Struct, numbers.name = "gather";
    Sizes offset;
    for (std::size_t i = 0; i < t.shape.size(); ++i) offset.push_back(static_cast<std::int64_t>(i));
    numbers.fields = {{"offset_dims", integers(offset)},
                      {"collapsed_slice_dims", integers({0})},
                      {"start_index_map", integers({0})},
                      {"index_vector_dim", whole(0)}};
    return b_.gather(x, b_.reshape(at, {1}), std::move(numbers), piece, t.shape);
  }
  ValueId with_row(ValueId rows, ValueId row, ValueId at) {
    Sizes shape = b_.shape(rows);
    shape[0] = 1;
    std::vector<ValueId> operands{rows, b_.reshape(row, shape)};
    for (const ValueId s : starts(rows, at)) operands.push_back(s);
    const Type type = b_.type(rows);
    return b_.one("stablehlo.dynamic_update_slice", operands, type);
  }

  ValueId goes_on(const std::vector<ValueId>& v) {
    const ValueId counted = b_.compare(v[0], b_.splat_whole("i64", {}, body_.length), "LT");
    if (!ending_) return counted;
    return b_.both(counted, inside(v, nullptr).write({&ending_->goes_on, 1})[0]);
  }

  std::vector<ValueId> step(const std::vector<ValueId>& v) {
    ValueId at = v[0];
    if (body_.reverse) at = b_.binary("stablehlo.subtract", b_.splat_whole("i64", {}, body_.length - 1), at);
    std::vector<Edge> wanted;
    for (const Root& r : g_.roots()) wanted.push_back(r.edge);
    if (ending_) wanted = ending_->next;
    const std::vector<ValueId> made = inside(v, &at).write(wanted);
    std::vector<ValueId> next{b_.add(v[0], b_.splat_whole("i64", {}, 1))};
    for (std::size_t k = 0; k < body_.states; ++k) next.push_back(made[k]);
    for (std::size_t k = 0; k < stacked_; ++k) {  // ys, then the states before this step
      const ValueId row = k < body_.ys ? made[body_.states + k] : v[1 + k - body_.ys];
      next.push_back(with_row(v[1 + body_.states + k], row, at));
    }
    next.insert(next.end(), v.begin() + static_cast<std::ptrdiff_t>(constants()), v.end());
    return next;
  }

  Writer& w_;
  Builder& b_;
  const Node& n_;
  const LoopBody& body_;
  Graph g_;
  std::vector<NodeId> inputs_;
  std::optional<Ending> ending_;
  std::size_t stacked_ = 0;
  std::vector<std::string> symbols_;  // sizes defined in the block: carried after all other values
};

}  // namespace

std::vector<ValueId> write_loop(Writer& w, const Node& n) { return LoopWriter(w, n).write(); }

}  // namespace lc::stablehlo
