#include "lightcone/models/blocks/norm.h"

#include "lightcone/ops/ops.h"

namespace lc {

void Norm::visit(nn::Visitor& v) {
  if (!o_.affine) return;
  v.parameter("weight", weight, over_, nn::constant_init(o_.kind == NormKind::RmsPlusOne ? 0 : 1));
  if (o_.kind == NormKind::Layer && o_.bias) v.parameter("bias", bias, over_, nn::constant_init(0));
}

Tensor Norm::operator()(const Tensor& x, const nn::At& at) const {
  const OpScope scope("Norm", at);
  const auto given = [](const Tensor& t) { return t.defined() ? OptionalOperand(t) : OptionalOperand(); };
  if (o_.kind == NormKind::Layer) return layer_norm(x, over_, given(weight), given(bias), o_.eps);
  if (o_.kind == NormKind::RmsPlusOne && o_.affine) return rms_norm(x, over_, weight + 1.0, o_.eps);
  return rms_norm(x, over_, given(weight), o_.eps);
}

}  // namespace lc
