// Selects convolutions that are computed channels-last. The axes of a value are permuted, and its readers see it
// through the inverse view, so no data is moved: elementwise consumers adopt the layout, the next convolution reads
// contiguous channels, and a reader that needs the original order copies.
#include <algorithm>
#include <set>

#include "lightcone/backends/cpu/conv/algorithms.h"
#include "lightcone/backends/cpu/conv/depthwise.h"
#include "lightcone/backends/cpu/conv/nhwc.h"
#include "lightcone/core/tensor.h"

namespace lc::backends::cpu {
namespace {

using lowering::factors;
using lowering::Factors;
using lowering::filters_parameter;
using lowering::linear;

// The axis order that moves `axis` to the end.
std::vector<int> behind(std::size_t rank, int axis) {
  std::vector<int> order;
  for (int i = 0; i < static_cast<int>(rank); ++i)
    if (i != axis) order.push_back(i);
  order.push_back(axis);
  return order;
}

std::vector<int> inverse(const std::vector<int>& order) {
  std::vector<int> back(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) back[order[i]] = static_cast<int>(i);
  return back;
}

// Returns whether a sum may be a convolution of images with weights known at load time. This must be cheap, because it
// is evaluated for every node of every graph.
bool candidate(const Graph& g, const Node& sum) {
  if (sum.op != Op::SumReduce || sum.shape.size() < 4) return false;
  const Node& mul = g[sum.in[0].node];
  return mul.op == Op::Mul && std::any_of(mul.in.begin(), mul.in.end(),
                                          [&](const Edge& e) { return filters_parameter(g, e.node).has_value(); });
}

// The axis of output channels of a convolution: the only axis of the result on which the weights, a parameter, depend.
// In a depthwise convolution the image depends on it too.
std::optional<int> channels(const Graph& g, NodeId id, const Factors& s) {
  const int weight = filters_parameter(g, s.edge[0].node) ? 0 : 1;
  const auto in_weight = s.at[weight].offset.symbols();
  std::optional<int> axis;
  for (std::size_t i = 0; i < g[id].shape.size(); ++i) {
    const auto name = s.symbols[i].name();
    if (!name || !in_weight.contains(*name)) continue;
    if (axis) return std::nullopt;
    axis = static_cast<int>(i);
  }
  return axis;
}

// The convolution `id` computed channels-last, viewed in its original order; nullopt if that is not possible.
std::optional<Edge> written_last(Graph& g, NodeId id, const Target& target) {
  const auto s = factors(g, id);
  const Node sum = g[id];
  const int rank = static_cast<int>(sum.shape.size());
  if (!s || !sum.in[0].view.identity() || sum.axis != rank) return std::nullopt;
  const auto axis = channels(g, id, *s);
  if (!axis || *axis == rank - 1) return std::nullopt;
  const std::vector<int> order = behind(sum.shape.size(), *axis);
  std::vector<int> inner = order;
  inner.push_back(sum.axis);
  const Node mul = g[sum.in[0].node];
  const Tensor made =
      prim::sum_reduce(prim::mul(Tensor(g, mul.in[0]).permute(inner), Tensor(g, mul.in[1]).permute(inner)), rank);
  const auto t = factors(g, made.edge().node);
  const auto last = t ? find_convolution(g, *t, target) : std::nullopt;
  if (!last || !last->channels_last) return std::nullopt;
  return made.permute(inverse(order)).edge();
}

// Returns whether a channels-last convolution finds contiguous channels in its image.
bool reads_channels(const Graph& g, NodeId id, const Target& target) {
  const auto s = factors(g, id);
  const auto c = s ? find_convolution(g, *s, target) : std::nullopt;
  const auto shape = c && !is_depthwise_nhwc({*c}) ? nhwc_shape({*c}) : std::nullopt;
  return !shape || !shape->copy || shape->channel_step == 1;
}

// The axis along which an edge reads contiguous elements.
std::optional<int> contiguous_axis(const Edge& e) {
  const std::vector<Dim> symbols = index_symbols(e.view.shape());
  const auto l = linear(e.view.locate(symbols).offset, symbols);
  std::optional<int> axis;
  for (std::size_t i = 0; l && i < symbols.size(); ++i)
    if (symbols[i].name() && l->strides[i] == Dim(1)) axis = static_cast<int>(i);
  return axis;
}

// A reduction over pixels with contiguous channels, whose result keeps contiguous channels: it sums vectors of channels
// instead of strided elements.
std::optional<Edge> reduced(Graph& g, const Node& n, const std::set<NodeId>& last) {
  if (info(n.op).kind != Kind::Reduce || !last.contains(n.in[0].node) || candidate(g, n)) return std::nullopt;
  const auto axis = contiguous_axis(n.in[0]);
  if (!axis || *axis == n.axis) return std::nullopt;
  const std::vector<int> order = behind(n.in[0].view.shape().size(), *axis);
  Node permuted = n;
  permuted.in[0] = Tensor(g, n.in[0]).permute(order).edge();
  permuted.axis = n.axis - (*axis < n.axis ? 1 : 0);
  const std::vector<int> kept = behind(n.shape.size(), *axis - (n.axis < *axis ? 1 : 0));
  for (std::size_t i = 0; i < kept.size(); ++i) permuted.shape[i] = n.shape[kept[i]];
  const NodeId id = g.add(std::move(permuted));
  return Tensor(g, {id, View(g[id].shape)}).permute(inverse(kept)).edge();
}

}  // namespace

bool may_keep_channels_last(const Graph& g) {
  return any_node(g, [&](const Node& n) { return candidate(g, n); });
}

std::optional<Graph> channels_last(const Graph& g, PassLog& log, const Target& target, bool bf16) {
  if (!may_keep_channels_last(g)) return std::nullopt;
  std::set<NodeId> last;      // channels-last nodes of the new graph
  double gain = 0, keep = 0;  // work of convolutions that gain, and of those faster as they are
  int turns = 0;
  bool stuck = false;  // a convolution without a channels-last form would read strided pixels
  Graph made = copy_graph(g, [&](Graph& dst, NodeId, Node n) {
    if (info(n.op).kind == Kind::Elementwise && n.shape.size() > 2) {
      std::optional<int> axis;
      for (const Edge& e : n.in)
        if (!axis && last.contains(e.node)) axis = contiguous_axis(e);
      if (axis) {
        const std::vector<int> order = behind(n.shape.size(), *axis);
        for (Edge& e : n.in) e = Tensor(dst, e).permute(order).edge();
        Shape shape;
        for (int i : order) shape.push_back(n.shape[i]);
        n.shape = shape;
        const NodeId id = dst.add(std::move(n));
        last.insert(id);
        return Tensor(dst, {id, View(shape)}).permute(inverse(order)).edge();
      }
    }
    if (const auto sum = reduced(dst, n, last)) return *sum;
    const NodeId id = dst.add(std::move(n));
    const Edge plain{id, View(dst[id].shape)};
    if (dst[id].op != Op::SumReduce) return plain;
    const auto s = factors(dst, id);
    const auto c = s ? find_convolution(dst, *s, target) : std::nullopt;
    const auto edge = candidate(dst, dst[id]) ? written_last(dst, id, target) : std::nullopt;
    if (!edge) {
      stuck = stuck || (c && !c->channels_last);
      return plain;
    }
    last.insert(edge->node), ++turns;
    const bool loses = bf16 ? !reads_channels(dst, edge->node, target) : c && !winograd_refusal({*c});
    (loses ? keep : gain) += static_cast<double>(product(dst[dst[id].in[0].node].shape).bounds().hi);
    return *edge;
  });
  if (stuck || gain <= keep) return std::nullopt;
  log.fired["channels last"] += turns;
  return made;
}

}  // namespace lc::backends::cpu
