#include "lightcone/models/blocks/expert_linear.h"

#include <algorithm>

#include "lightcone/composites/composites.h"
#include "lightcone/ops/ops.h"
#include "lightcone/ops/shape.h"

namespace lc {

Tensor expert_linear(Operand x, const Tensor& experts, const nn::Parameter& weights) {
  const OpScope scope("expert_linear", x.at);
  return prim::gather_mm(x, weights.stored, experts, weights.quant);
}

nn::Parameter stored_parameter(const Tensor& value, bool transposed) {
  const auto turned = [&](const Tensor& t) { return transposed ? t.transpose(-1, -2) : t; };
  if (!value.edge().view.identity()) return {turned(value)};
  const Node& n = value.node();
  const bool blocks = is(n, builtin::dequantize());
  if (blocks && !transposed)
    return {Tensor(value.graph(), n.in[0]), static_cast<QuantFormat>(n.attributes.integer("format"))};
  if (!blocks && n.op == Op::Contiguous && n.dtype == DType::F32) {
    const Tensor stored(value.graph(), n.in[0]);
    if (is_float(stored.dtype())) return {turned(stored)};
  }
  return {turned(value)};
}

nn::Parameter stacked_parameter(const std::vector<Tensor>& values) {
  std::vector<nn::Parameter> all;
  for (const Tensor& v : values) all.push_back(stored_parameter(v));
  const auto as_first = [&](const nn::Parameter& p) {
    return p.quant == all.front().quant && p.stored.dtype() == all.front().stored.dtype();
  };
  if (!std::ranges::all_of(all, as_first)) return {stack(values)};
  std::vector<Tensor> stored;
  for (const nn::Parameter& p : all) stored.push_back(p.stored);
  return {stack(stored), all.front().quant};
}

nn::Parameter mxfp4_parameter(const Tensor& blocks, const Tensor& scales) {
  const Tensor both = prim::cast(blocks, DType::I32), low = both % 16, high = floor_divide(both, 16);
  Shape s = blocks.shape();
  s.back() = kMxfp4Block;
  const Tensor elements = stack({low, high}, -1).reshape(s);
  const Tensor bytes = elements.slice(-1, 0, kMxfp4Block / 2) + elements.slice(-1, kMxfp4Block / 2, kMxfp4Block) * 16;
  const Tensor all = cat({scales.unsqueeze(-1), prim::cast(bytes, DType::U8)}, -1);
  return {all.reshape({s[0], s[1], s[2] * all.extent(-1)}), QuantFormat::MXFP4};
}

}  // namespace lc
