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

// Halves are summed in f32 and rounded once, which a loop does.
bool is_unrollable(const Node& n) {
  return n.op == Op::MaxReduce || (n.op == Op::SumReduce && !is_narrow(n.dtype) && n.dtype != DType::Bool);
}

// Reduces the slices of the axis in order. A sum begins with zero, so that it is never -0.
Tensor unrolled_reduction(const Tensor& t, int axis, std::int64_t extent, bool sum) {
  const auto at = [&](std::int64_t k) { return t.slice(axis, k, k + 1).squeeze(axis); };
  Tensor r = sum ? prim::add(at(0), full_like(at(0), 0)) : at(0);
  for (std::int64_t k = 1; k < extent; ++k) r = sum ? prim::add(r, at(k)) : prim::maximum(r, at(k));
  return !sum && extent == 1 ? prim::contiguous(r) : r;
}

}  // namespace

bool has_windows(const Graph& g) {
  return any_node(g, [](const Node& n) { return is_unrollable(n) && reads_windows(n.in[0]); });
}

// Unrolling makes the reduction elementwise: it is fused into its reader and vectorised along the row. A loop over
// three elements would spend its time on loop overhead. A longer maximum is faster in a loop: where the distance of its
// operands keeps a compiler from vectors, each comparison takes several instructions, and an addition takes one.
Graph unroll_windows(const Graph& src, PassLog& log) {
  constexpr std::int64_t kMostCompared = 5, kMostAdded = 8;
  std::set<NodeId> unrolled;  // the inner reductions of a window over several axes
  return copy_graph(src, [&](Graph& dst, NodeId, Node n) {
    if (is_unrollable(n) && (reads_windows(n.in[0]) || unrolled.contains(n.in[0].node))) {
      const Tensor t(dst, n.in[0]);
      const bool sum = n.op == Op::SumReduce;
      const auto extent = t.extent(n.axis).constant();
      if (extent && *extent > 0 && *extent <= (sum ? kMostAdded : kMostCompared)) {
        const Tensor r = unrolled_reduction(t, n.axis, *extent, sum);
        ++log.fired["window unrolled"];
        unrolled.insert(r.edge().node);
        return r.edge();
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
