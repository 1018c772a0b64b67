#include "lightcone/passes/index_checks.h"

#include "lightcone/composites/composites.h"
#include "lightcone/passes/compiler.h"

namespace lc {

std::optional<std::string> IndexCheck::problem(std::int64_t least, std::int64_t most, std::int64_t end) const {
  if (least > most || (least >= 0 && most < end)) return std::nullopt;  // an empty index tensor has least > most
  return str_cat("the index ", least < 0 ? least : most, " is out of range: there are ", end, " places");
}

IndexChecks index_checks(const Graph& g, bool with_outputs) {
  IndexChecks made;
  std::vector<NodeId> to(g.size());
  const std::vector<bool> live = g.live();
  for (NodeId id = 0; id < g.size(); ++id) {
    if (!live[id]) continue;
    std::vector<Edge> in;
    for (const Edge& e : g[id].in) in.push_back({to[e.node], e.view});
    if (g[id].composite != builtin::index_in_range()) {
      to[id] = made.graph.adopt(g[id], std::move(in));
      continue;
    }
    const OpScope scope(g[id].where);
    const Tensor index(made.graph, in[0]);
    const Tensor flat = prim::cast(index, DType::I64).reshape({product(index.shape())});
    const Tensor minus_one = full_like(flat, -1), others = prim::add(prim::mul(flat, minus_one), minus_one);
    const Tensor high = prim::max_reduce(flat, 0),
                 least = prim::max_reduce(others, 0);  // -1 - x reverses the order without overflow
    const Tensor low = prim::add(prim::mul(least, full_like(least, -1)), full_like(least, -1));
    IndexCheck c{str_cat("index check ", made.checks.size(), " low"),
                 str_cat("index check ", made.checks.size(), " high"), g[id].attributes.dim("below"), g[id].where};
    made.graph.output(c.low, low);
    made.graph.output(c.high, high);
    made.checks.push_back(std::move(c));
    to[id] = prim::contiguous(index).edge().node;
  }
  if (with_outputs) copy_results(g, to, made.graph);
  return made;
}

}  // namespace lc
