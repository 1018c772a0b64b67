#include "lightcone/models/language/positions.h"

#include <numbers>

#include "lightcone/models/blocks/table.h"
#include "lightcone/ops/creation.h"
#include "lightcone/ops/ops.h"
#include "lightcone/ops/shape.h"

namespace lc {

Positions::Positions(Graph& g, Dim rows, Dim past, const Tensor& shown)
    : g_(g), rows_(std::move(rows)), past_(std::move(past)), shown_(shown) {}

Tensor Positions::row(const Shape& shape) const { return g_.index(shape, past_ + Dim::index(0, rows_)); }
Tensor Positions::column(const Shape& shape) const { return g_.index(shape, Dim::index(1, past_ + rows_)); }

// Computed in f64, where position * frequency is accurate for any context.
Positions::Angles Positions::angles(const RopeConfig& r) const {
  Tensor frequencies = table_of(g_, r.frequencies);
  if (!r.long_frequencies.empty()) {
    const Tensor length = g_.index({}, past_ + rows_);
    frequencies = where(length > r.original, table_of(g_, r.long_frequencies), frequencies);
  }
  const Shape shape{rows_, static_cast<std::int64_t>(r.frequencies.size())};
  const Tensor position = g_.index(shape, past_ + Dim::index(0, rows_), DType::F64);
  const Tensor a = position * broadcast_to(frequencies, shape);
  Tensor c = sin(a + std::numbers::pi / 2), s = sin(a);
  if (r.factor != 1) c = c * r.factor, s = s * r.factor;
  return {prim::cast(c, DType::F32), prim::cast(s, DType::F32)};
}

Tensor Positions::whole_mask(const LanguageLayerKind& kind) const {
  const Shape shape{rows_, past_ + rows_};
  const Tensor i = row(shape), j = column(shape);
  Tensor mask = j <= i;
  if (kind.window > 0) mask = logical_and(mask, i - j < kind.window);
  if (kind.chunk > 0) mask = logical_and(mask, eq(floor_divide(i, kind.chunk), floor_divide(j, kind.chunk)));
  if (!shown_.defined()) return mask;
  return logical_and(mask, logical_or(shown_.unsqueeze(1).unsqueeze(1), eq(i, j)));
}

Tensor Positions::mask(const LanguageLayerKind& kind) const {
  const bool all = kind.window == 0 && kind.chunk == 0 && !shown_.defined() && past_ == Dim(0);
  return all ? Tensor() : whole_mask(kind);
}

Tensor Positions::distances() const {
  const Shape shape{rows_, past_ + rows_};
  return prim::cast(column(shape) - row(shape), DType::F32);
}

Tensor Positions::numbers() const { return g_.index({rows_}, past_ + Dim::index(0, rows_)); }

Tensor Positions::shown_numbers() const {
  if (!shown_.defined()) return numbers();
  const Tensor counted = to(shown_, DType::I64);
  return cumsum(counted, 1) * counted - 1;
}

Tensor Positions::shown() const { return shown_.defined() ? shown_.unsqueeze(-1) : shown_; }

Tensor rotated(const Tensor& x, const Positions::Angles& a, bool interleaved) {
  const Dim turned = a.cos.extent(-1) * Dim(2), all = x.extent(-1);
  if (turned == all) return rope(x, a.cos, a.sin, interleaved);
  return cat({rope(x.slice(-1, 0, turned), a.cos, a.sin, interleaved), x.slice(-1, turned, all)}, -1);
}

}  // namespace lc
