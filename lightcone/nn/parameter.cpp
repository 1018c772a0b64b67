#include "lightcone/nn/parameter.h"

#include "lightcone/composites/composites.h"
#include "lightcone/ops/ops.h"

namespace lc::nn {

namespace {
Tensor stored(Graph& g, const std::string& path, Shape shape, DType dtype) {
  return g.parameter(path, std::move(shape), dtype);
}
}  // namespace

Parameter parameter(Graph& g, const std::string& path, Shape shape, DType dtype, std::optional<QuantFormat> quant) {
  if (!quant) return {nn::stored(g, path, std::move(shape), dtype), {}};
  const QuantInfo& q = info(*quant);
  if (shape.empty() || !(shape.back() % Dim(q.elements) == Dim(0)))
    throw Error("parameter", str_cat(path, ": rows of ", str(shape), " are not whole blocks of ", q.elements));
  shape.back() = shape.back() / Dim(q.elements) * Dim(q.bytes);
  return {nn::stored(g, path, std::move(shape), DType::U8), quant};
}

Tensor Parameter::value() const { return quant ? prim::dequantize(stored, *quant) : prim::cast(stored, DType::F32); }

Tensor Parameter::rows(Operand ids) const {
  const Tensor picked = embedding(ids, stored);
  return quant ? prim::dequantize(picked, *quant) : prim::cast(picked, DType::F32);
}

Tensor rows(Operand matrix, Operand ids) {
  const Node& n = matrix->graph()[matrix->edge().node];
  const bool converts = is(n, builtin::dequantize()) || (n.op == Op::Contiguous && is_float(matrix->dtype()));
  if (!converts || !matrix->edge().view.identity()) return embedding(ids, matrix);
  const Tensor stored(matrix->graph(), n.in[0]);
  if (is(n, builtin::dequantize()))
    return Parameter{stored, static_cast<QuantFormat>(n.attributes.integer("format"))}.rows(ids);
  if (stored.dtype() == matrix->dtype() || !is_float(stored.dtype())) return embedding(ids, matrix);
  return prim::cast(embedding(ids, stored), matrix->dtype());
}

Tensor linear(Operand x, const Parameter& weight, const Parameter& bias) {
  const OpScope scope("linear", x.at);
  const Tensor y = matmul(x, weight.value().transpose(0, 1));
  return bias.defined() ? y + bias.value() : y;
}

Tensor rms_norm(Operand x, const Parameter& weight, double eps) {
  const OpScope scope("rms_norm", x.at);
  return lc::rms_norm(x, {x->extent(-1)}, weight.value(), eps);
}

}  // namespace lc::nn
