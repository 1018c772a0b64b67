#include "lightcone/lowering/attention.h"

#include <cmath>
#include <map>
#include <numbers>

#include "lightcone/composites/composites.h"
#include "lightcone/lowering/attention_operands.h"

namespace lc::lowering {
namespace {

// Reads the operands of an attention composite.
class Composed : public AttentionOperands {
 public:
  using AttentionOperands::AttentionOperands;
  // `causal` is the mask of a causal attention, bool [queries, keys], or undefined.
  std::optional<Attention> plan_of(const Node& n, const Tensor& causal);

 private:
  bool add_mask(const Edge& e);
};

// Appends the step of a mask that broadcasts to the scores [..., h, s, t].
bool Composed::add_mask(const Edge& e) {
  const Shape& shape = e.view.shape();
  Index at;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const std::size_t from_end = shape.size() - i;  // 1: the keys
    const Dim index = from_end == 1 ? key_ : index_[index_.size() - from_end];
    at.push_back(shape[i] == Dim(1) ? Dim(0) : index);
  }
  const bool selects = g_[e.node].dtype == DType::Bool;
  Step s{selects ? AttentionStep{AttentionStep::Mask, static_cast<float>(-kInf)} : AttentionStep{AttentionStep::Bias},
         read_small(e, at)};
  if (!s.read) return false;
  steps_.push_back(std::move(s));
  return true;
}

std::optional<Attention> Composed::plan_of(const Node& n, const Tensor& causal) {
  make_axes();
  if (!add_keys(n.in[1].view.shape()[n.shape.size() - 2])) return std::nullopt;
  add_depth(n.in[0].view.shape().back());
  exponent_ = std::numbers::log2e, scale_ = static_cast<float>(n.attributes.real("scale"));
  Index q = index_, keys = index_;
  if (n.shape.size() > 2) {
    const std::size_t heads = n.shape.size() - 3;
    const Dim of_queries = n.shape[heads], of_keys = n.in[1].view.shape()[heads];
    if (!(of_queries == of_keys)) keys[heads] = index_[heads] / (of_queries / of_keys);
  }
  keys[keys.size() - 2] = key_;
  const Index values = keys;
  q.back() = keys.back() = depth_symbol();
  q_ = read(n.in[0], q);
  if (q_) k_ = cached(n.in[1], keys);
  if (k_) v_ = cached(n.in[2], values);
  if (!v_ || !fits_product()) return std::nullopt;
  if (causal.defined() && !add_mask(causal.edge())) return std::nullopt;
  if (n.in.size() > 3 && !add_mask(n.in[3])) return std::nullopt;
  return plan();
}

// Converts a mask that is added to the type that kernels read.
Node with_f32_mask(Graph& g, Node n) {
  if (n.in.size() < 4 || g[n.in[3].node].dtype == DType::Bool) return n;
  n.in[3] = prim::cast(Tensor(g, n.in[3]), DType::F32).edge();
  return n;
}

// Returns the mask of a causal attention, bool [queries, keys].
Tensor causal_mask(Graph& g, const Node& n) {
  if (n.attributes.integer("causal") == 0) return {};
  const Dim queries = n.shape[n.shape.size() - 2], keys = n.in[1].view.shape()[n.shape.size() - 2];
  return g.index({queries, keys}, less(Dim::index(1, keys), Dim::index(0, queries) + 1), DType::Bool);
}

// A node of a kernel; an operand that is not read whole is copied.
Node kernel_node(const Node& of, NamedKernel made, const std::vector<Tensor>& operands) {
  Node n{.op = Op::Kernel, .dtype = of.dtype, .shape = of.shape, .where = of.where};
  for (const Tensor& t : operands) n.in.push_back(t.view().identity() ? t.edge() : prim::contiguous(t).edge());
  n.name = std::move(made.name), n.kernel = std::move(made.kernel);
  return n;
}

// Returns every attention that is spelled out, by the node of its result.
std::map<NodeId, Attention> match_attentions(const Graph& g) {
  const std::vector<bool> live = g.live();
  const std::vector<int> uses = g.uses();
  std::map<NodeId, Attention> all;
  for (NodeId id = 0; id < g.size(); ++id)
    if (live[id])
      if (auto match = match_attention(g, uses, id)) all.emplace(id, std::move(*match));
  return all;
}

}  // namespace

std::string describe(const Attention& a) {
  Shape queries;
  for (int i = 0; i < a.axes; ++i) queries.push_back(a.layout.axis[i].extent);
  queries.push_back(a.layout.depth);
  return str_cat("attention ", str(queries), " over ", a.layout.keys);
}

bool is_attention(const Node& n) { return is(n, builtin::attention()); }

Graph fuse_attention(const Graph& g, PassLog& log, const AttentionKernels& kernels) {
  return copy_graph(g, [&](Graph& dst, NodeId, Node n) {
    const bool fits = is_attention(n) && n.dtype == DType::F32;
    const NodeId id = dst.add(std::move(n));
    const Edge whole{id, View(dst[id].shape)};
    if (!fits) return whole;
    const Node attention = with_f32_mask(dst, dst[id]);
    const Tensor causal = causal_mask(dst, attention);
    auto plan = plan_with_cuts<Composed>(dst, id, [&](Composed& of) { return of.plan_of(attention, causal); });
    if (!plan) return whole;
    std::vector<Tensor> operands;
    for (const Edge& e : plan->operands) operands.emplace_back(dst, e);
    NamedKernel made = kernels(dst, id, std::move(*plan));
    if (!made.kernel) return whole;
    ++log.fired["attention"];
    const NodeId kernel = dst.add(kernel_node(attention, std::move(made), operands));
    return Edge{kernel, View(dst[kernel].shape)};
  });
}

Graph fuse_matched_attention(const Graph& g, PassLog& log, const AttentionKernels& kernels) {
  std::map<NodeId, Attention> matches = match_attentions(g);
  if (matches.empty()) return g.clone();
  const std::vector<bool> live = g.live();
  Graph out;
  std::vector<NodeId> to(g.size());
  for (NodeId id = 0; id < g.size(); ++id) {
    if (!live[id]) continue;
    Node n = g[id];
    for (Edge& e : n.in) e.node = to[e.node];
    if (const auto match = matches.find(id); match != matches.end()) {
      const std::vector<Edge> read = match->second.operands;
      if (NamedKernel made = kernels(g, id, std::move(match->second)); made.kernel) {
        std::vector<Tensor> operands;
        for (const Edge& e : read) operands.emplace_back(out, Edge{to[e.node], e.view});
        n = kernel_node(n, std::move(made), operands);
        ++log.fired["attention"];
      }
    }
    to[id] = out.add(std::move(n));
  }
  copy_results(g, to, out);
  return out;
}

}  // namespace lc::lowering
