#include "lightcone/stablehlo/write/reductions.h"

#include <algorithm>

#include "lightcone/codegen/symbols.h"
#include "lightcone/lowering/factors.h"
#include "lightcone/stablehlo/write/concat.h"
#include "lightcone/stablehlo/write/writer.h"

namespace lc::stablehlo {
namespace {

using Items = std::vector<Placed::Item>;

// The loops of a reduction and of those nested in it, down to the value that is read.
struct Nest {
  std::vector<Dim> symbols;  // axes of the result, then the reduced ones
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
    n.symbols.push_back(Dim::index(codegen::kReduceLoops[level], e.view.shape()[r.axis]));
    index.insert(index.begin() + r.axis, n.symbols.back());
    n.at = e.view.locate(index);
    n.unfolded = n.unfolded || unfolds(e.view);
    const Node& inner = g[e.node];
    n.operand = {e.node, View(inner.shape)};
    if (inner.op != r.op || !(n.at.valid == Dim(1)) || level == 8) return n;
    if (lowering::factors_of_any_type(g, e.node)) return n;                 // a product is one by itself
    const bool pools = r.op == Op::MaxReduce && unfolds(inner.in[0].view);  // the gradient reads intermediate values
    if ((uses[e.node] > 1 && !pools) || product(inner.in[0].view.shape()) == Dim(0)) return n;
    id = e.node, index = n.at.index;
  }
}

// Reads the operand as its edge shows it, with one axis for each loop.
Reduction of_view(SizeTable& sizes, const Graph& g, NodeId id) {
  const Node& n = g[id];
  std::vector<Dim> symbols = index_symbols(n.shape), index = symbols;
  const Shape& seen = n.in[0].view.shape();
  symbols.push_back(Dim::index(codegen::kReduceLoops[0], seen[n.axis]));
  index.insert(index.begin() + n.axis, symbols.back());
  auto r = read_in_loops(sizes, symbols, {View(seen).locate(index)}, {&seen, 1});
  check(r.has_value(), "the axes of a tensor are loops");
  return {n.in[0], std::move(*r), {}};
}

class ReductionWriter {
 public:
  ReductionWriter(Writer& w, const Node& n, const Reduction& r)
      : w_(w), b_(w.builder()), n_(n), r_(r), loops_(r.readings.loops), summed_(n.shape.size()) {
    element_ = element_of(is_narrow(n.dtype) && sums() ? DType::F32 : n.dtype);
    combine_ = n.dtype == DType::Bool ? "stablehlo.or" : sums() ? "stablehlo.add" : "stablehlo.maximum";
  }

  ValueId write() {
    const Reading& reading = r_.readings.operands[0];
    if (reading.nothing) return b_.splat(element_of(n_.dtype), b_.sizes(n_.shape), 0);  // zeros
    std::vector<Kept> kept;
    for (const Window& w : r_.windows) {
      const bool here = pads_here(w);
      kept.push_back({w.axis, w.inside.begin, w.inside.end, here ? w.inside.low : 0, here ? w.inside.high : 0});
    }
    for (const std::size_t axis : r_.later) kept.push_back(whole(axis));
    Placed x = place(b_, w_.value(r_.operand), reading, loops_, kept);
    x.value = b_.convert(x.value, element_);
    repeat(x);
    reduce(x);
    if (!r_.windows.empty()) pool(x);
    for (const std::size_t axis : r_.later) unfold(x, axis);
    Items order;
    for (std::size_t k = 0; k < loops_.size(); ++k)
      if (loops_.from[k] < summed_) order.push_back({false, k});
    const ValueId y = b_.reshape(permute_and_broadcast(b_, x, order, loops_), b_.sizes(n_.shape));
    return b_.convert(y, element_of(n_.dtype));
  }

 private:
  bool sums() const { return n_.op == Op::SumReduce; }
  ValueId initial() {
    if (sums() || n_.dtype == DType::Bool) return b_.splat(element_, {}, 0);
    return is_float(n_.dtype) ? b_.splat(element_, {}, -kInf) : b_.splat_whole(element_, {}, info(n_.dtype).lowest);
  }
  // Returns true if padding is written explicitly: zeros that take part in a maximum. Padding by the identity is the
  // window's.
  bool pads_here(const Window& w) const { return (!sums() && !r_.padded) || w.inside.begin == w.inside.end; }

  // Adds axes for repeated reads. A sum counts them; a maximum does not, except that over an empty axis it is the
  // identity.
  void repeat(Placed& x) {
    const auto moving = r_.readings.operands[0].loops();
    const auto counts = [&](std::size_t k) { return sums() || b_.sizes().dim(loops_.extents[k]).bounds().lo == 0; };
    Items order = x.items;
    for (std::size_t k = 0; k < loops_.size(); ++k)
      if (loops_.from[k] >= summed_ && std::ranges::find(moving, k) == moving.end() && counts(k))
        order.push_back({false, k});
    x = {permute_and_broadcast(b_, x, order, loops_), order};
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
      const bool here = x.items[i].kept && w != r_.windows.end();
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

  // Returns everything that the windows of an axis read.
  Kept whole(std::size_t axis) const {
    const AxisReading& a = r_.readings.operands[0].axes[axis];
    std::int64_t reach = 1;
    for (const std::size_t k : a.loops()) reach += a.step[k] * (loops_.extents[k] - 1);
    const Inside in = inside(a, a.offset, a.offset + reach);
    return {axis, in.begin, in.end, in.low, in.high};
  }
  // Replaces a kept axis by its windows, as adjacent slices.
  void unfold(Placed& x, std::size_t axis) {
    const AxisReading& a = r_.readings.operands[0].axes[axis];
    const std::size_t outer = a.loops()[0], inner = a.loops()[1];
    const auto at = std::ranges::find(x.items, Placed::Item{true, axis});
    const auto i = static_cast<std::size_t>(at - x.items.begin());
    const Sizes from = b_.shape(x.value);
    std::vector<ValueId> slices;
    for (std::int64_t k = 0; k < loops_.extents[inner]; ++k) {
      Sizes begin(from.size(), 0), end = from, step(from.size(), 1), to = from;
      begin[i] = k * a.step[inner], step[i] = a.step[outer];
      end[i] = begin[i] + (loops_.extents[outer] - 1) * step[i] + 1;
      to[i] = loops_.extents[outer];
      to.insert(to.begin() + static_cast<std::ptrdiff_t>(i) + 1, 1);
      slices.push_back(b_.reshape(b_.slice(x.value, begin, end, step), to));
    }
    x.value = b_.concatenate(slices, i + 1);
    *at = {false, outer};
    x.items.insert(x.items.begin() + static_cast<std::ptrdiff_t>(i) + 1, {false, inner});
  }

  Writer& w_;
  Builder& b_;
  const Node& n_;
  const Reduction& r_;
  const Loops& loops_;
  std::size_t summed_;  // index of the first reduced loop
  std::string_view element_, combine_;
};

}  // namespace

namespace {

// Returns axes with windows whose places and taps are all axes of the result.
std::vector<std::size_t> unfolded_later(const Readings& r, std::size_t summed) {
  constexpr std::int64_t kFew = 8;
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < r.operands[0].axes.size(); ++i) {
    const AxisReading& a = r.operands[0].axes[i];
    const auto by = a.loops();
    if (is_open(a.extent) || is_plain(a, r.loops) || by.size() != 2 || r.loops.extents[by[1]] > kFew) continue;
    if (std::ranges::all_of(by, [&](std::size_t k) { return r.loops.from[k] < summed && a.step[k] > 0; }))
      all.push_back(i);
  }
  return all;
}

// Removes padding by the identity of the maximum, axis by axis, where only windows read it.
void without_padding(SizeTable& sizes, const Graph& g, const Node& n, Reduction& r, const auto& windows) {
  if (n.op != Op::MaxReduce || !is_float(n.dtype)) return;
  const auto is_window = [&](std::size_t axis) {
    return std::ranges::find(r.windows, axis, &Window::axis) != r.windows.end();
  };
  while (r.operand.view.identity()) {
    const auto p = match_padding(sizes, g, r.operand.node);
    if (!p || p->value != -kInf) return;
    Readings inner = r.readings;
    for (std::size_t i = 0; i < p->low.size(); ++i) {
      AxisReading& a = inner.operands[0].axes[i];
      const std::int64_t more = p->low[i] + p->high[i];
      if (more > 0 && (!is_window(i) || a.lo > 0 || a.hi < a.extent)) return;
      a.extent -= more, a.offset -= p->low[i], a.hi -= more;
    }
    auto again = windows(inner);
    if (!again || again->size() != r.windows.size()) return;
    r.operand = p->x, r.readings = std::move(inner), r.windows = std::move(*again), r.padded = true;
  }
}

}  // namespace

Reduction match_reduction(SizeTable& sizes, const Graph& g, NodeId id, const std::vector<int>& uses) {
  const Nest n = nest_of(g, id, uses);
  const Shape& base = n.operand.view.shape();
  auto r = read_in_loops(sizes, n.symbols, {n.at}, {&base, 1});
  if (!r) return of_view(sizes, g, id);
  const std::size_t summed = g[id].shape.size();
  Reduction found{n.operand, std::move(*r), {}, {}, false};
  found.later = unfolded_later(found.readings, summed);
  const auto windows = [&](const Readings& of) {
    return windows_of(
        sizes, of.operands[0], of.loops, summed, [&](std::size_t) { return n.unfolded; }, found.later);
  };
  auto all = windows(found.readings);
  if (!all) return of_view(sizes, g, id);
  found.windows = std::move(*all);
  without_padding(sizes, g, g[id], found, windows);
  for (const Window& w : found.windows) {  // an open axis cannot be padded with zeros that take part in a maximum
    const bool padded = w.inside.low > 0 || w.inside.high > 0;
    if (is_open(w.inside.end) && padded && g[id].op == Op::MaxReduce && !found.padded) return of_view(sizes, g, id);
  }
  return found;
}

ValueId write_reduction(Writer& w, const Node& n, const Reduction& r) { return ReductionWriter(w, n, r).write(); }

}  // namespace lc::stablehlo
