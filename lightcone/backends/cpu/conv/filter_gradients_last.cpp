#include "lightcone/backends/cpu/conv/filter_gradients_last.h"

#include <algorithm>
#include <optional>

#include "lightcone/backends/cpu/conv/algorithms.h"
#include "lightcone/backends/cpu/conv/gradients/filter_gradient.h"
#include "lightcone/core/tensor.h"

namespace lc::backends::cpu {
namespace {

using lowering::Factors;
using lowering::factors;

constexpr int kRank = 5;
constexpr std::int64_t kManySums = 512, kForEachPlace = 16;  // ordinary convolutions have fewer sums, or more positions

bool is_filter_gradient(const Graph& g, const Node& n) {
  return n.op == Op::SumReduce && n.dtype == DType::F32 && n.shape.size() == kRank && n.axis == kRank &&
         n.in[0].view.identity() && g[n.in[0].node].op == Op::Mul;
}

// Stride of a factor in memory along an axis of the result; nullopt if it is not constant along the axis.
std::optional<Dim> stride(const Factors& f, int side, std::size_t axis) {
  const auto name = f.symbols[axis].name();
  if (!name) return Dim(0);
  const auto at = [&](std::int64_t v) {
    return f.at[side].offset.substitute(
        [&](const std::string& s) { return s == *name ? std::optional<Dim>(v) : std::nullopt; });
  };
  const Dim step = at(1) - at(0);
  if (step.symbols().contains(*name) || !(at(0) + step * f.symbols[axis] == f.at[side].offset)) return std::nullopt;
  return step;
}

// The factor, read from a copy of its value in which the axis with stride `step` is the innermost.
std::optional<Tensor> with_axis_last(Graph& g, const Edge& e, const Dim& step) {
  const Tensor seen(g, e);
  if (step == Dim(1) || step == Dim(0)) return seen;
  const Shape shape = g[e.node].shape;
  std::vector<int> order, back(shape.size());
  int axis = -1;
  Dim along = 1;
  for (int i = static_cast<int>(shape.size()); i-- > 0; along = along * shape[i])
    if (axis < 0 && along == step) axis = i;
  if (axis < 0) return std::nullopt;
  for (int i = 0; i < static_cast<int>(shape.size()); ++i)
    if (i != axis) order.push_back(i);
  order.push_back(axis);
  for (std::size_t i = 0; i < order.size(); ++i) back[order[i]] = static_cast<int>(i);
  const Tensor copy = prim::contiguous(Tensor(g, {e.node, View(shape)}).permute(order)).permute(back);
  return copy.with(copy.view().then(e.view));
}

// The roles of the result's axes.
struct Roles {
  int image;  // index of the factor that is the image
  int in, groups, out, down, across;
};
// Axis orders: as the derivative of conv() writes them, and with either channel axis last.
constexpr int kOrders[][kRank] = {{0, 1, 2, 3, 4}, {0, 1, 4, 2, 3}, {4, 0, 1, 2, 3}};
std::optional<Roles> roles(const Factors& f) {
  const auto moves = [&](int side, int axis) {
    const auto name = f.symbols[axis].name();
    return name && f.at[side].offset.symbols().contains(*name);
  };
  const auto named = [&](int axis) { return f.symbols[axis].name().has_value(); };
  for (const auto& [in, groups, out, down, across] : kOrders)
    for (const int image : {0, 1}) {
      const auto only = [&](int side, int axis) {
        return !named(axis) || (moves(side, axis) && !moves(1 - side, axis));
      };
      if (named(out) && only(image, in) && only(image, down) && only(image, across) && only(1 - image, out))
        return Roles{image, in, groups, out, down, across};
    }
  return std::nullopt;
}

// Returns the convolution if it is a filter gradient.
std::optional<lowering::Convolution> filter_gradient(const Graph& g, const Factors& f, const Target& target,
                                                     Precision precision) {
  const auto c = lowering::match_convolution(g, f);
  if (!c) return std::nullopt;
  const bool found =
      multiplied_on_registers(g, f, target, precision) ? sums_over_pixels(g, *c) : like_filter_gradient(g, *c);
  return found ? c : std::nullopt;
}

std::optional<Edge> written_last(Graph& g, NodeId id, const Target& target, Precision precision) {
  const auto f = factors(g, id);
  const auto c = f ? filter_gradient(g, *f, target, precision) : std::nullopt;
  if (!c || filter_gradient_shape({*c})) return std::nullopt;
  const auto r = roles(*f);
  if (!r) return std::nullopt;
  const auto in = stride(*f, r->image, static_cast<std::size_t>(r->in));
  const auto out = stride(*f, 1 - r->image, static_cast<std::size_t>(r->out));
  if (!in || !out) return std::nullopt;
  const auto x = with_axis_last(g, f->edge[r->image], *in), dy = with_axis_last(g, f->edge[1 - r->image], *out);
  if (!x || !dy) return std::nullopt;
  const std::vector<int> order{r->groups, r->in, r->down, r->across, r->out, kRank};
  std::vector<int> back(kRank);
  for (int i = 0; i < kRank; ++i) back[order[static_cast<std::size_t>(i)]] = i;
  const Tensor made = prim::sum_reduce(prim::mul(x->permute(order), dy->permute(order)), kRank);
  const auto t = factors(g, made.edge().node);
  const auto last = t ? lowering::match_convolution(g, *t) : std::nullopt;
  if (!last || !last->channels_last || !filter_gradient_shape({*last})) return std::nullopt;
  return made.permute(back).edge();
}

}  // namespace

bool like_filter_gradient(const Graph& g, const lowering::Convolution& c) {
  if (lowering::filters_parameter(g, c.weight_node)) return false;
  Dim pixels = 1, sums = 1;
  for (const auto& p : c.pixels) pixels = pixels * p.extent;
  for (const auto& s : c.sums) sums = sums * s.extent;
  return sums.bounds().lo >= std::max(kManySums, kForEachPlace * pixels.bounds().hi);
}

bool sums_over_pixels(const Graph& g, const lowering::Convolution& c) {
  Dim pixels = 1, window = 1;
  bool moves = false;
  for (const auto& p : c.pixels)
    if (p.step != 0) pixels = pixels * p.extent;
  for (const auto& s : c.sums)
    if (s.dilation[0] != 0 || s.dilation[1] != 0 || s.dilation[2] != 0) window = window * s.extent, moves = true;
  return moves ? !lowering::filters_parameter(g, c.weight_node) && window.bounds().lo > pixels.bounds().hi
               : like_filter_gradient(g, c);
}

bool may_have_filter_gradients(const Graph& g, const Target& target, Precision precision) {
  for (NodeId id = 0; id < g.size(); ++id) {
    const auto f = is_filter_gradient(g, g[id]) ? factors(g, id) : std::nullopt;
    if (f && filter_gradient(g, *f, target, precision)) return true;
  }
  return false;
}

Graph filter_gradients_last(const Graph& g, PassLog& log, const Target& target, Precision precision) {
  return copy_graph(g, [&](Graph& dst, NodeId, Node n) {
    const NodeId id = dst.add(std::move(n));
    const auto edge = is_filter_gradient(dst, dst[id]) ? written_last(dst, id, target, precision) : std::nullopt;
    if (edge) ++log.fired["channels last"];
    return edge ? *edge : Edge{id, View(dst[id].shape)};
  });
}

}  // namespace lc::backends::cpu
