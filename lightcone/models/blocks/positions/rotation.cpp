#include "lightcone/models/blocks/positions/rotation.h"

#include <numbers>

#include "lightcone/models/blocks/table.h"
#include "lightcone/ops/ops.h"
#include "lightcone/ops/shape.h"

namespace lc {

// Computed in f64, where position * frequency is accurate for any context.
RopeAngles rope_angles(Graph& g, const RopeConfig& r, const Dim& rows, const Dim& past) {
  Tensor frequencies = table_of(g, r.frequencies);
  if (!r.long_frequencies.empty()) {
    const Tensor length = g.index({}, past + rows);
    frequencies = where(length > r.original, table_of(g, r.long_frequencies), frequencies);
  }
  const Shape shape{rows, static_cast<std::int64_t>(r.frequencies.size())};
  const Tensor position = g.index(shape, past + Dim::index(0, rows), DType::F64);
  const Tensor a = position * broadcast_to(frequencies, shape);
  Tensor c = sin(a + std::numbers::pi / 2), s = sin(a);
  if (r.factor != 1) c = c * r.factor, s = s * r.factor;
  return {prim::cast(c, DType::F32), prim::cast(s, DType::F32)};
}

Tensor rotated(const Tensor& x, const RopeAngles& a, bool interleaved) {
  const Dim turned = a.cos.extent(-1) * Dim(2), all = x.extent(-1);
  if (turned == all) return rope(x, a.cos, a.sin, interleaved);
  return cat({rope(x.slice(-1, 0, turned), a.cos, a.sin, interleaved), x.slice(-1, turned, all)}, -1);
}

}  // namespace lc
