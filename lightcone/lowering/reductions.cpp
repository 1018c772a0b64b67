#include "lightcone/lowering/reductions.h"

#include <algorithm>
#include <optional>

#include "lightcone/core/tensor.h"
#include "lightcone/lowering/factors.h"

namespace lc::lowering {
namespace {

bool reduces(const Node& n) { return info(n.op).kind == Kind::Reduce; }

Tensor reduced(Op op, const Tensor& t, int axis) {
  return op == Op::SumReduce ? prim::sum_reduce(t, axis) : prim::max_reduce(t, axis);
}

// Returns the largest number of parts up to `most` that divides the length, or 1 if there is none above most / 4.
std::int64_t parts(std::int64_t length, std::int64_t most) {
  for (std::int64_t p = std::min(most, length); p >= 2 && p * 4 >= most; --p)
    if (length % p == 0) return p;
  return 1;
}

// Returns the number of parts that a reduction is split into.
std::int64_t wanted_parts(const Node& n, const SplitRules& r) {
  const Shape& from = n.in[0].view.shape();
  const auto length = from[n.axis].constant();
  const std::int64_t results = std::max<std::int64_t>(product(n.shape).bounds().hi, 1);
  if (!length || *length <= 0) return 1;
  const bool row = static_cast<std::size_t>(n.axis) + 1 == from.size();
  const std::int64_t threads = row ? r.group : 1, shortest = row ? r.row : r.column;
  // For columns the count stays below the target: the grid then lets threads read neighbouring columns together
  // (codegen/simt/grid.cpp).
  const std::int64_t most = std::min(*length / shortest, (r.threads - (row ? 0 : 1)) / threads / results);
  return most < 2 ? 1 : parts(*length, most);
}

}  // namespace

Graph join_reductions(const Graph& src, PassLog& log) {
  const std::vector<int> uses = src.uses();
  return copy_graph(src, [&](Graph& dst, NodeId id, Node n) {
    const Node& was = src[id];
    // `inner` is read only by this reduction and as a whole, and reduces the adjacent axis.
    const bool alone = reduces(n) && uses[was.in[0].node] == 1 && n.in[0].view.identity() && !is_narrow(n.dtype);
    const Node* inner = alone && !factors(src, was.in[0].node) ? &dst[n.in[0].node] : nullptr;
    const bool beside = inner && (inner->axis == n.axis || inner->axis == n.axis + 1);
    if (beside && inner->op == n.op && inner->dtype == n.dtype) {
      const Tensor t(dst, inner->in[0]);
      Shape joined = t.shape();
      const auto axis = static_cast<std::size_t>(n.axis);
      joined[axis] = joined[axis] * joined[axis + 1];
      joined.erase(joined.begin() + static_cast<std::ptrdiff_t>(axis) + 1);
      ++log.fired["reductions joined"];
      return reduced(n.op, t.reshape(joined), n.axis).edge();
    }
    const NodeId made = dst.add(std::move(n));
    return Edge{made, View(dst[made].shape)};
  });
}

Graph split_reductions(const Graph& src, PassLog& log, const SplitRules& rules) {
  return copy_graph(src, [&](Graph& dst, NodeId id, Node n) {
    const std::int64_t p = reduces(n) && !factors(src, id) ? wanted_parts(n, rules) : 1;
    if (p < 2) {
      const NodeId made = dst.add(std::move(n));
      return Edge{made, View(dst[made].shape)};
    }
    // Halves are summed in f32 and rounded once, as they are without a split.
    const DType type = n.dtype;
    Tensor t(dst, n.in[0]);
    if (is_narrow(type)) t = prim::cast(t, DType::F32);
    Shape cut = t.shape();
    const auto axis = static_cast<std::size_t>(n.axis);
    cut.insert(cut.begin() + n.axis, p);
    cut[axis + 1] = cut[axis + 1] / Dim(p);
    Tensor y = reduced(n.op, reduced(n.op, t.reshape(cut), n.axis + 1), n.axis);
    if (is_narrow(type)) y = prim::cast(y, type);
    ++log.fired["reduction split"];
    return y.edge();
  });
}

}  // namespace lc::lowering
