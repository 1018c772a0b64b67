#include "lightcone/backends/cpu/bf16_propagation.h"

#include <vector>

#include "lightcone/backends/cpu/matcher.h"
#include "lightcone/composites/composites.h"

namespace lc::backends::cpu {
namespace {

// Returns false if a view pads, repeats or leaves out elements: what it shows is then kept in memory.
bool shows_all(const View& v) { return product(v.shape()) == product(v.base()); }

// Operations whose result is one of their operands, so that rounding may come before or after them. The condition of
// `where` is no number.
bool selects(Op op) { return op == Op::Maximum || op == Op::Where; }

// What is known of each node of a graph.
class Values {
 public:
  Values(const Graph& g, const CpuOptions& o)
      : g_(g), matcher_(g, o), uses_(g.uses()), reads_(g.size()), in_part_(g.size()) {
    const lowering::PartitionRules rules = matcher_.rules();
    for (NodeId id = 0; id < g.size(); ++id) {
      if (uses_[id] == 0) continue;
      for (const Edge& e : g[id].in)
        if (!shows_all(e.view)) in_part_[e.node] = true;
      if (const auto f = lowering::factors(g, id)) see(*f, rules);
    }
    for (NodeId id = static_cast<NodeId>(g.size()); id-- > 0;)
      if (selects(g[id].op) && only_rounded(id))
        for (const Edge& e : g[id].in) ++reads_[e.node].selected;
  }

  // Returns whether a value is to be kept in bf16. A loop may run inside the product that reads it, and is left alone.
  bool narrows(NodeId id) const {
    if (!only_rounded(id) || info(g_[id].op).kind == Kind::Leaf) return false;
    const Reads& r = reads_[id];
    if (r.products + r.convolutions == 0 && !in_part_[id]) return false;
    const Matcher::MadeBy by = matcher_.made_by(id);
    return by == Matcher::MadeBy::WriterOfBf16 || (by == Matcher::MadeBy::Loop && r.convolutions == uses_[id]);
  }

 private:
  // Reads that round: by kernels of convolutions and products, and by a selection whose readers round.
  struct Reads {
    int convolutions = 0, products = 0, selected = 0;
    int all() const { return convolutions + products + selected; }
  };

  void see(const lowering::Factors& f, const lowering::PartitionRules& rules) {
    rules.match(g_, f);
    if (!matcher_.reads_bf16(f.sum) || uses_[g_[f.sum].in[0].node] != 1) return;
    const auto c = matcher_.convolutions.find(f.sum);
    const bool convolution = c != matcher_.convolutions.end();
    const NodeId read = convolution ? c->second.image_node : matcher_.matmuls.at(f.sum).a_node;
    for (const Edge& e : f.edge)
      if (e.node == read) ++(convolution ? reads_[read].convolutions : reads_[read].products);
  }

  bool only_rounded(NodeId id) const {
    return uses_[id] > 0 && reads_[id].all() == uses_[id] && g_[id].dtype == DType::F32;
  }

  const Graph& g_;
  Matcher matcher_;
  std::vector<int> uses_;
  std::vector<Reads> reads_;
  std::vector<bool> in_part_;  // a reader does not read all of it once
};

}  // namespace

bool may_propagate_bf16(const Graph& g, Precision precision, const Target& target) {
  const std::size_t axes =
      may_have_tiles(target) ? 1 : 4;  // the fewest of a product, or of a result with channels last
  return precision == Precision::Medium && any_node(g, [&](const Node& n) {
           return n.op == Op::SumReduce && n.shape.size() >= axes && g[n.in[0].node].op == Op::Mul;
         });
}

Graph bf16_propagation(const Graph& g, PassLog& log, const CpuOptions& options) {
  const Values values(g, options);
  return copy_graph(g, [&](Graph& dst, NodeId id, Node n) {
    const NodeId made = dst.add(std::move(n));
    const Edge e{made, View(dst[made].shape)};
    if (!values.narrows(id)) return e;
    ++log.fired["value kept in bf16"];
    const OpScope scope(dst[made].where);
    return prim::cast(prim::cast(Tensor(dst, e), DType::BF16), DType::F32).edge();
  });
}

}  // namespace lc::backends::cpu
