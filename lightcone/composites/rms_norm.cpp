// rms_norm: division by the root mean square of the last axes (B. Zhang and R. Sennrich, 2019; torch.rms_norm).
#include "lightcone/composites/internal.h"
#include "lightcone/composites/layers.h"

namespace lc {
namespace {

using namespace definitions;

std::vector<TensorType> infer_rms_norm(const Attributes& a, OperandTypes in) {
  one_float_type(in);
  over_last_axes(in, last_axes(a));
  return {in[0]};
}

// The derivative does not go through the mean square.
std::vector<Tensor> define_rms_norm(const Attributes& a, std::span<const Tensor> in) {
  const int axes = last_axes(a);
  const Tensor& x = in[0];
  const Tensor scale = reciprocal_root(mean_of_last(mul(x, x), axes), a.real("eps"));
  const Tensor y =
      with_vjp(mul(x, scale.expand(x.shape())), {x, scale}, [axes](const VjpCall& c) -> std::vector<Tensor> {
        const auto each = [&](const Tensor& t) { return t.expand(c.y().shape()); };
        const Tensor along = mean_of_last(mul(c.g(), c.y()), axes);
        return {mul(each(c.in[1]), add(c.g(), negate(mul(c.y(), each(along))))), {}};
      });
  return {in.size() > 1 ? mul(y, expand_to(in[1], y.shape())) : y};
}

}  // namespace

namespace builtin {
const CompositeRef& rms_norm() {
  static const CompositeRef c = std::make_shared<const Composite>(Composite{.name = "rms_norm",
                                                                            .arity = 2,
                                                                            .optional = 1,
                                                                            .infer = infer_rms_norm,
                                                                            .define = define_rms_norm,
                                                                            .transparent = true});
  return c;
}
}  // namespace builtin

}  // namespace lc
