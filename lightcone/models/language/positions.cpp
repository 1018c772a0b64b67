#include "lightcone/models/language/positions.h"

#include "lightcone/ops/creation.h"
#include "lightcone/ops/ops.h"
#include "lightcone/ops/shape.h"

namespace lc {

Positions::Positions(Graph& g, Dim rows, Dim past, const Tensor& shown)
    : g_(g), rows_(std::move(rows)), past_(std::move(past)), shown_(shown) {}

Tensor Positions::row(const Shape& shape) const { return g_.index(shape, past_ + Dim::index(0, rows_)); }
Tensor Positions::column(const Shape& shape) const { return g_.index(shape, Dim::index(1, past_ + rows_)); }

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

}  // namespace lc
