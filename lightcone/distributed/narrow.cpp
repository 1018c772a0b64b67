#include <algorithm>
#include <array>

#include "lightcone/core/tensor.h"
#include "lightcone/distributed/combine.h"

namespace lc {
namespace {

using Operation = Collective::Operation;

// The operations that move numbers and compute none.
constexpr std::array kMoves{Operation::AllGather, Operation::AllToAll, Operation::Broadcast, Operation::Permute};

bool is_widened(const Graph& g, const Node& n) {
  if (n.op != Op::Contiguous) return false;
  const DType from = g[n.in[0].node].dtype;
  return is_float(from) && is_float(n.dtype) && size_of(from) < size_of(n.dtype);
}

Graph narrowed(const Graph& g, const Collectives& ranks, PassLog& log) {
  return copy_graph(g, [&](Graph& dst, NodeId, Node n) -> Edge {
    const bool moves = std::ranges::any_of(kMoves, [&](Operation o) { return is(n, ranks.composite(o)); });
    if (moves && is_widened(dst, dst[n.in[0].node])) {
      const Edge& x = dst[n.in[0].node].in[0];
      const Tensor narrow(dst, {x.node, x.view.then(n.in[0].view)});
      const DType wide = n.dtype;
      ++log.fired[str_cat("exchange in ", name(narrow.dtype()))];
      return prim::cast(call(n.composite, {narrow}, n.attributes)[0], wide).edge();
    }
    const NodeId id = dst.add(std::move(n));
    return {id, View(dst[id].shape)};
  });
}

}  // namespace

Compiler narrow_exchanges(const Collectives& ranks) {
  return Compiler(Pass{"narrow-exchanges", [ranks](const Graph& g, PassLog& log) { return narrowed(g, ranks, log); }});
}

}  // namespace lc
