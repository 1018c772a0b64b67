// layer_norm: normalisation of the last axes (J. L. Ba, J. R. Kiros and G. E. Hinton, 2016; torch.layer_norm).
#include "lightcone/composites/internal.h"
#include "lightcone/composites/layers.h"

namespace lc {
namespace {

using namespace definitions;

std::vector<TensorType> infer_layer_norm(const Attributes& a, OperandTypes in) {
  one_float_type(in);
  over_last_axes(in, last_axes(a));
  return {in[0]};
}

std::vector<Tensor> define_layer_norm(const Attributes& a, std::span<const Tensor> in) {
  Tensor y = standardize(in[0], last_axes(a), a.real("eps"));
  if (in.size() > 1) y = mul(y, expand_to(in[1], y.shape()));
  if (in.size() > 2) y = add(y, expand_to(in[2], y.shape()));
  return {y};
}

}  // namespace

namespace builtin {
const CompositeRef& layer_norm() {
  static const CompositeRef c = std::make_shared<const Composite>(Composite{.name = "layer_norm",
                                                                            .arity = 3,
                                                                            .optional = 2,
                                                                            .infer = infer_layer_norm,
                                                                            .define = define_layer_norm,
                                                                            .transparent = true});
  return c;
}
}  // namespace builtin

}  // namespace lc
