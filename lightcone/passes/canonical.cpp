#include "lightcone/passes/canonical.h"

#include <algorithm>
#include <set>

#include "lightcone/composites/composites.h"

namespace lc {
namespace {

bool reads_windows(const Edge& e) {
  const auto moves = e.view.moves();
  return std::any_of(moves.begin(), moves.end(), [](const Move& m) { return m.kind == MoveKind::Unfold; });
}

}  // namespace

bool has_windows(const Graph& g) {
  return any_node(g, [](const Node& n) { return n.op == Op::MaxReduce && reads_windows(n.in[0]); });
}

// Unrolling makes the maximum elementwise: it is fused into its reader and vectorised along the row. A loop over three
// elements would spend its time on loop overhead.
Graph unroll_windows(const Graph& src, PassLog& log) {
  constexpr std::int64_t kSmall = 5;
  std::set<NodeId> unrolled;  // the inner maxima of a window over several axes
  return copy_graph(src, [&](Graph& dst, NodeId, Node n) {
    if (n.op == Op::MaxReduce && (reads_windows(n.in[0]) || unrolled.contains(n.in[0].node))) {
      const Tensor t(dst, n.in[0]);
      const auto extent = t.extent(n.axis).constant();
      if (extent && *extent > 0 && *extent <= kSmall) {
        const auto at = [&](std::int64_t k) { return t.slice(n.axis, k, k + 1).squeeze(n.axis); };
        Tensor m = at(0);
        for (std::int64_t k = 1; k < *extent; ++k) m = prim::maximum(m, at(k));
        ++log.fired["window unrolled"];
        if (*extent == 1) m = prim::contiguous(m);
        unrolled.insert(m.edge().node);
        return m.edge();
      }
    }
    const NodeId id = dst.add(std::move(n));
    return Edge{id, View(dst[id].shape)};
  });
}

// Inserts the copies. Exceptions: gather reads strided views of its data, and slice_scatter copies only its base.
Graph make_contiguous(const Graph& src) {
  const auto readable = [](Graph& dst, NodeId, Node n) {
    const bool gathers = is(n, builtin::gather()), updates = is(n, builtin::slice_scatter());
    const bool library = n.op == Op::Composite && !gathers && !updates;
    for (std::size_t k = 0; k < n.in.size(); ++k) {
      Edge& e = n.in[k];
      const bool plain_data = gathers && k == 0 && !e.view.strided();
      const bool base = updates && k == 0 && !e.view.identity();
      if ((library && !e.view.identity()) || plain_data || base) e = prim::contiguous(Tensor(dst, e)).edge();
    }
    const NodeId id = dst.add(std::move(n));
    return Edge{id, View(dst[id].shape)};
  };
  const auto whole = [](Graph& dst, Edge e, ResultKind kind) {
    const OpScope scope(dst[e.node].where);
    const Op op = dst[e.node].op;
    if (e.view.identity() && info(op).kind != Kind::Leaf) return e;
    if (e.view.identity() && op == Op::Input && kind == ResultKind::Output) return e;
    return prim::contiguous(Tensor(dst, e)).edge();
  };
  return copy_graph(src, readable, whole);
}

}  // namespace lc
