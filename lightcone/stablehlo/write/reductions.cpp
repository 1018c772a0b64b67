#include "lightcone/stablehlo/write/reductions.h"

#include <algorithm>

#include "lightcone/codegen/symbols.h"
#include "lightcone/stablehlo/write/writer.h"

namespace lc::hlo {
namespace {

using Items = std::vector<Placed::Item>;

// The loops of a reduction and of those inside of it, down to a value that is read.
struct Nest {
  std::vector<Dim> symbols;  // of the result, then what is reduced
  Edge operand;
  View::Position at;
  bool unfolded = false;
};

Nest nest_of(const Graph& g, NodeId id, const std::vector<int>& uses) {
  Nest n{index_symbols(g[id].shape), {}, {}};
  std::vector<Dim> index = n.symbols;
  for (std::size_t level = 0;; ++level) {
    const Node& r = g[id];
    const Edge& e = r.in[0];
    n.symbols.push_back(
        Dim::index(ir::kReduceLoops[level], e.view.shape()[static_cast<std::size_t>(r.axis)]));
    index.insert(index.begin() + r.axis, n.symbols.back());
    n.at = e.view.locate(index);
    n.unfolded = n.unfolded || unfolds(e.view);
    const Node& inner = g[e.node];
    n.operand = {e.node, View(inner.shape)};
    const bool goes_on = inner.op == r.op && uses[e.node] == 1 && n.at.valid == Dim(1) && level < 8 &&
                         !(product(inner.in[0].view.shape()) == Dim(0));
    if (!goes_on) return n;
    id = e.node, index = n.at.index;
  }
}

// The operand as its edge shows it: an axis for each loop.
Reduction of_view(const Graph& g, NodeId id) {
  const Node& n = g[id];
  std::vector<Dim> symbols = index_symbols(n.shape), index = symbols;
  const Shape& seen = n.in[0].view.shape();
  symbols.push_back(Dim::index(ir::kReduceLoops[0], seen[static_cast<std::size_t>(n.axis)]));
  index.insert(index.begin() + n.axis, symbols.back());
  auto r = read_in_loops(symbols, {View(seen).locate(index)}, {&seen, 1});
  check(r.has_value(), "the axes of a tensor are loops");
  return {n.in[0], std::move(*r), {}};
}

class ReductionWriter {
 public:
  ReductionWriter(Writer& w, const Node& n, const Reduction& r)
      : w_(w), b_(w.builder()), n_(n), r_(r), loops_(r.readings.loops), summed_(n.shape.size()) {
    element_ = element_of(is_half(n.dtype) && sums() ? DType::F32 : n.dtype);
    combine_ = n.dtype == DType::Bool ? "stablehlo.or" : sums() ? "stablehlo.add" : "stablehlo.maximum";
  }

  ValueId write() {
    const Reading& reading = r_.readings.operands[0];
    if (reading.nothing) return b_.splat(element_of(n_.dtype), sizes_of(n_.shape), 0);
    std::vector<Kept> kept;
    for (const Window& w : r_.windows) {
      const bool here = pads_here(w);
      kept.push_back({w.axis, w.inside.begin, w.inside.end, here ? w.inside.low : 0, here ? w.inside.high : 0});
    }
    Placed x = place(b_, w_.value(r_.operand), reading, loops_, kept);
    x.value = b_.convert(x.value, element_);
    if (sums()) repeat(x);
    reduce(x);
    if (!r_.windows.empty()) pool(x);
    Items order;
    for (std::size_t k = 0; k < loops_.size(); ++k)
      if (loops_.from[k] < summed_) order.push_back({false, k});
    const ValueId y = b_.reshape(arrange(b_, x, order, loops_), sizes_of(n_.shape));
    return b_.convert(y, element_of(n_.dtype));
  }

 private:
  bool sums() const { return n_.op == Op::SumReduce; }
  ValueId initial() {
    if (sums() || n_.dtype == DType::Bool) return b_.splat(element_, {}, 0);
    return is_float(n_.dtype) ? b_.splat(element_, {}, -kInf) : b_.splat_whole(element_, {}, info(n_.dtype).lowest);
  }
  // The padding of a window is what a sum begins with; zeros that take part in a maximum are written.
  bool pads_here(const Window& w) const { return !sums() || w.inside.begin == w.inside.end; }

  // A sum counts what it reads again and again.
  void repeat(Placed& x) {
    const auto moving = r_.readings.operands[0].loops();
    Items order = x.items;
    for (std::size_t k = 0; k < loops_.size(); ++k)
      if (loops_.from[k] >= summed_ && std::ranges::find(moving, k) == moving.end()) order.push_back({false, k});
    x = {arrange(b_, x, order, loops_), order};
  }

  void reduce(Placed& x) {
    std::vector<std::size_t> axes;
    Items left;
    for (std::size_t i = 0; i < x.items.size(); ++i)
      if (!x.items[i].kept && loops_.from[x.items[i].at] >= summed_) axes.push_back(i);
      else left.push_back(x.items[i]);
    if (axes.empty()) return;
    x = {b_.reduce(x.value, initial(), axes, combine_), left};
  }

  void pool(Placed& x) {
    Sizes size, stride, dilation, padding, shape = b_.shape(x.value);
    std::vector<std::size_t> reversed;
    for (std::size_t i = 0; i < x.items.size(); ++i) {
      const auto w = std::ranges::find(r_.windows, x.items[i].at, &Window::axis);
      const bool here = x.items[i].kept;
      size.push_back(here ? loops_.extents[w->tap] : 1);
      stride.push_back(here ? w->stride : 1), dilation.push_back(here ? w->dilation : 1);
      const bool pads = here && !pads_here(*w);
      padding.push_back(pads ? w->inside.low : 0), padding.push_back(pads ? w->inside.high : 0);
      if (!here) continue;
      shape[i] = loops_.extents[w->place];
      if (w->places_reversed) reversed.push_back(i);
      x.items[i] = {false, w->place};
    }
    const Sizes ones(shape.size(), 1);
    std::vector<Block> body;
    const ValueId start = initial();
    body.push_back(b_.combining(element_, combine_));
    const ValueId y = b_.one("stablehlo.reduce_window", {x.value, start}, {true, std::string(element_), shape},
                             {{"window_dimensions", integers(size)},
                              {"window_strides", integers(stride)},
                              {"base_dilations", integers(ones)},
                              {"window_dilations", integers(dilation)},
                              {"padding", dense_pairs(padding)}},
                             std::move(body));
    x.value = b_.reverse(y, reversed);
  }

  Writer& w_;
  Builder& b_;
  const Node& n_;
  const Reduction& r_;
  const Loops& loops_;
  std::size_t summed_;  // the first loop that is
  std::string_view element_, combine_;
};

}  // namespace

Reduction match_reduction(const Graph& g, NodeId id, const std::vector<int>& uses) {
  if (product(g[id].in[0].view.shape()) == Dim(0)) return of_view(g, id);
  const Nest n = nest_of(g, id, uses);
  const Shape& base = n.operand.view.shape();
  auto r = read_in_loops(n.symbols, {n.at}, {&base, 1});
  auto windows = r ? windows_of(r->operands[0], r->loops, g[id].shape.size(), n.unfolded) : std::nullopt;
  if (!windows) return of_view(g, id);
  return {n.operand, std::move(*r), std::move(*windows)};
}

ValueId write_reduction(Writer& w, const Node& n, const Reduction& r) { return ReductionWriter(w, n, r).write(); }

}  // namespace lc::hlo
