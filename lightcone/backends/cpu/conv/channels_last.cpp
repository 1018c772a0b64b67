// Selects convolutions that are computed channels-last. The axes of a value are permuted, and its readers see it
// through the inverse view, so no data is moved: elementwise consumers adopt the layout, the next convolution reads
// contiguous channels, and a reader that needs the original order copies.
#include <algorithm>
#include <set>

#include "lightcone/backends/cpu/conv/algorithms.h"
#include "lightcone/backends/cpu/conv/depthwise.h"
#include "lightcone/backends/cpu/conv/filter_gradients_last.h"
#include "lightcone/backends/cpu/conv/nhwc.h"
#include "lightcone/backends/cpu/products/microkernel.h"
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
bool has_parameter(const Graph& g, const Node& sum) {
  if (sum.op != Op::SumReduce || sum.shape.size() < 4) return false;
  const Node& mul = g[sum.in[0].node];
  return mul.op == Op::Mul && std::any_of(mul.in.begin(), mul.in.end(),
                                          [&](const Edge& e) { return filters_parameter(g, e.node).has_value(); });
}

// Makes the copy of a graph whose convolutions have their channels last.
class ChannelsLast {
 public:
  ChannelsLast(const Target& target, Precision precision) : target_(target), precision_(precision) {}
  // Returns whether a sum may be a convolution that can be computed channels-last: its filters are a parameter, or it
  // runs on tile registers.
  bool candidate(const Graph& g, NodeId id) const;
  // Copies a node.
  Edge copy(Graph& dst, Node n);

  int turned = 0;             // convolutions
  double gain = 0, keep = 0;  // work of convolutions that gain, and of those faster as they are
  bool stuck = false;         // a convolution without a channels-last form would read strided pixels

 private:
  std::optional<Edge> follows(Graph& dst, Node& n);
  std::optional<Edge> written_last(Graph& g, NodeId id) const;
  bool reads_channels(const Graph& g, NodeId id) const;
  bool in_bf16(const Graph& g, NodeId id) const;

  const Target& target_;
  Precision precision_;
  std::set<NodeId> last_;  // channels-last nodes of the new graph
};

bool ChannelsLast::candidate(const Graph& g, NodeId id) const {
  if (has_parameter(g, g[id])) return true;
  if (g[id].op != Op::SumReduce || g[id].shape.size() < 4 || !may_have_tiles(target_)) return false;
  const auto f = factors(g, id);
  if (!f || !multiplied_on_registers(g, *f, target_, precision_)) return false;
  const auto c = lowering::match_convolution(g, *f);
  return c && !c->channels_last && !sums_over_pixels(g, *c);
}

// The axis of output channels of a convolution: the only axis of the result on which the weights depend. In a depthwise
// convolution the image depends on it too.
std::optional<int> channels(const Graph& g, NodeId id, const Factors& s) {
  int weight = filters_parameter(g, s.edge[0].node) ? 0 : 1;
  if (!has_parameter(g, g[id])) {
    const auto c = lowering::match_convolution(g, s);
    weight = c && c->weight_node == s.edge[0].node ? 0 : 1;
  }
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
std::optional<Edge> ChannelsLast::written_last(Graph& g, NodeId id) const {
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
  const auto last = t ? find_convolution(g, *t, target_, precision_) : std::nullopt;
  if (!last || !last->channels_last) return std::nullopt;
  return made.permute(inverse(order)).edge();
}

// Returns whether a channels-last convolution finds contiguous channels in its image.
bool ChannelsLast::reads_channels(const Graph& g, NodeId id) const {
  const auto s = factors(g, id);
  const auto c = s ? find_convolution(g, *s, target_, precision_) : std::nullopt;
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
  if (info(n.op).kind != Kind::Reduce || !last.contains(n.in[0].node) || has_parameter(g, n)) return std::nullopt;
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

// An elementwise operation, or a conversion, of channels-last values: it has its channels last, too.
std::optional<Edge> ChannelsLast::follows(Graph& dst, Node& n) {
  const bool converts = n.op == Op::Contiguous && dst[n.in[0].node].dtype != n.dtype;
  if ((info(n.op).kind != Kind::Elementwise && !converts) || n.shape.size() <= 2) return std::nullopt;
  std::optional<int> axis;
  for (const Edge& e : n.in)
    if (!axis && last_.contains(e.node)) axis = contiguous_axis(e);
  if (!axis) return std::nullopt;
  const std::vector<int> order = behind(n.shape.size(), *axis);
  for (Edge& e : n.in) e = Tensor(dst, e).permute(order).edge();
  Shape shape;
  for (int i : order) shape.push_back(n.shape[i]);
  n.shape = shape;
  const NodeId id = dst.add(std::move(n));
  last_.insert(id);
  return Tensor(dst, {id, View(shape)}).permute(inverse(order)).edge();
}

bool ChannelsLast::in_bf16(const Graph& g, NodeId id) const {
  if (precision_ == Precision::Medium) return true;
  const auto f = factors(g, id);
  return f && multiplied_on_registers(g, *f, target_, precision_);
}

Edge ChannelsLast::copy(Graph& dst, Node n) {
  if (const auto edge = follows(dst, n)) return *edge;
  if (const auto sum = reduced(dst, n, last_)) return *sum;
  const NodeId id = dst.add(std::move(n));
  const Edge plain{id, View(dst[id].shape)};
  if (dst[id].op != Op::SumReduce) return plain;
  const auto s = factors(dst, id);
  const auto c = s ? find_convolution(dst, *s, target_, precision_) : std::nullopt;
  const auto edge = candidate(dst, id) ? written_last(dst, id) : std::nullopt;
  if (!edge) {
    const bool gradient = c && multiplied_on_registers(dst, *s, target_, precision_) && sums_over_pixels(dst, *c);
    stuck = stuck || (c && !c->channels_last && !gradient);
    return plain;
  }
  last_.insert(edge->node), ++turned;
  const bool loses = in_bf16(dst, edge->node) ? !reads_channels(dst, edge->node) : c && !winograd_refusal({*c});
  (loses ? keep : gain) += static_cast<double>(product(dst[dst[id].in[0].node].shape).bounds().hi);
  return *edge;
}

}  // namespace

bool may_keep_channels_last(const Graph& g, const Target& target, Precision precision) {
  const ChannelsLast pass(target, precision);
  for (NodeId id = 0; id < g.size(); ++id)
    if (pass.candidate(g, id)) return true;
  return false;
}

std::optional<Graph> channels_last(const Graph& g, PassLog& log, const Target& target, Precision precision) {
  if (!may_keep_channels_last(g, target, precision)) return std::nullopt;
  ChannelsLast pass(target, precision);
  Graph made = copy_graph(g, [&](Graph& dst, NodeId, Node n) { return pass.copy(dst, std::move(n)); });
  if (pass.stuck || pass.gain <= pass.keep) return std::nullopt;
  log.fired["channels last"] += pass.turned;
  return made;
}

}  // namespace lc::backends::cpu
