#include "lightcone/ops/creation.h"

#include <cmath>

#include "lightcone/ops/internal.h"

namespace lc {
using namespace detail;
#define LC_IN(name) const OpScope scope(name, in.at)

Tensor full(GraphOf in, const Shape& size, Scalar fill_value, DType dtype) {
  LC_IN("full");
  return full(in.graph, size, fill_value, dtype);
}
Tensor zeros(GraphOf in, const Shape& size, DType dtype) {
  LC_IN("zeros");
  return full(in.graph, size, 0, dtype);
}
Tensor ones(GraphOf in, const Shape& size, DType dtype) {
  LC_IN("ones");
  return full(in.graph, size, 1, dtype);
}
Tensor empty(GraphOf in, const Shape& size, DType dtype) {
  LC_IN("empty");
  return full(in.graph, size, 0, dtype);
}
Tensor full_like(Operand a, Scalar fill_value, DType dtype) {
  const OpScope scope("full_like", a.at);
  return full(a->graph(), a->shape(), fill_value, dtype);
}
Tensor zeros_like(Operand a, std::optional<DType> dtype) { return full_like(a, 0, dtype.value_or(a->dtype())); }
Tensor ones_like(Operand a, std::optional<DType> dtype) { return full_like(a, 1, dtype.value_or(a->dtype())); }
Tensor empty_like(Operand a, std::optional<DType> dtype) { return full_like(a, 0, dtype.value_or(a->dtype())); }

Tensor arange(GraphOf in, Dim end, DType dtype) {
  LC_IN("arange");
  if (end.bounds().hi < 0) throw Error("arange", str_cat(end, " elements"));
  return in.graph.index({end}, Dim::index(0, end), dtype);
}
Tensor arange(GraphOf in, Scalar start, Scalar end, Scalar step, std::optional<DType> dtype) {
  LC_IN("arange");
  if (step.value == 0) throw Error("arange", "the step is zero");
  const bool whole = start.whole && end.whole && step.whole;
  if (step.value > 0 ? end.value < start.value : end.value > start.value)
    throw Error("arange", str_cat("a step of ", step.value, " does not lead from ", start.value, " to ", end.value));
  if (whole) {
    const std::int64_t from = *start.whole, by = *step.whole, n = (*end.whole - from + by - (by > 0 ? 1 : -1)) / by;
    return in.graph.index({n}, Dim::index(0, n) * Dim(by) + from, dtype.value_or(DType::I64));
  }
  const double n = std::ceil((end.value - start.value) / step.value);
  if (!(n < 0x1p62)) throw Error("arange", "the ends and the step are finite, and not too many steps apart");
  const DType type = dtype.value_or(DType::F32), exact = is_float(type) ? type : DType::F64;
  const Tensor i = arange(in.graph, static_cast<std::int64_t>(n), exact);
  return prim::cast(add(mul(i, step.value), start.value), type);
}
Tensor linspace(GraphOf in, double start, double end, int steps, DType dtype) {
  LC_IN("linspace");
  if (steps < 0) throw Error("linspace", str_cat(steps, " steps"));
  const double step = steps > 1 ? (end - start) / (steps - 1) : 0;
  const Tensor i = arange(in.graph, steps, is_float(dtype) ? dtype : DType::F64);
  // counts from the nearer end, so that both ends are exact
  const Tensor up = add(mul(i, step), start), down = add(mul(add(i, 1 - steps), step), end);
  const Tensor first = prim::less_than(i, full_like(i, steps / 2));
  return prim::cast(steps > 1 ? prim::where(first, up, down) : up, dtype);
}
Tensor eye(GraphOf in, Dim n, Dim m, DType dtype) {
  LC_IN("eye");
  if (n.bounds().hi < 0 || m.bounds().hi < 0) throw Error("eye", str_cat(n, " rows and ", m, " columns"));
  const Dim i = Dim::index(0, n), j = Dim::index(1, m);
  return in.graph.index({n, m}, less(i, j + 1) * less(j, i + 1), dtype);
}
Tensor eye(GraphOf in, Dim n, DType dtype) { return eye(in, n, n, dtype); }

}  // namespace lc
