#include "lightcone/models/blocks/projection.h"

#include <cmath>

#include "lightcone/ops/ops.h"

namespace lc {

void Projection::visit(nn::Visitor& v) {
  const nn::Init init = nn::uniform_init(1 / std::sqrt(static_cast<double>(in_)));
  v.parameter("weight", weight, o_.transposed ? Shape{in_, out_} : Shape{out_, in_}, init);
  if (o_.bias) v.parameter("bias", bias, {out_}, init);
}

Tensor Projection::operator()(const Tensor& x, const nn::At& at) const {
  const OpScope scope("linear", at);
  const Tensor y = matmul(x, o_.transposed ? weight : weight.transpose(0, 1));
  return o_.bias ? y + bias : y;
}

}  // namespace lc
