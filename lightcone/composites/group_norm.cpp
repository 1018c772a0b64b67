// group_norm: normalisation of groups of channels with all later axes (Y. Wu and K. He, 2018; torch.group_norm).
#include "lightcone/composites/internal.h"
#include "lightcone/composites/layers.h"

namespace lc {
namespace {

using namespace definitions;

std::vector<TensorType> infer_group_norm(const Attributes& a, OperandTypes in) {
  one_float_type(in);
  const Shape& x = in[0].shape;
  const std::int64_t groups = a.integer("groups");
  if (x.size() < 2) refuse("needs [batch, channels, ...], not " + str(x));
  if (groups < 1 || !(x[1] % Dim(groups) == Dim(0)))
    refuse(str_cat(groups, " groups do not divide ", x[1], " channels"));
  for (const TensorType& p : in.subspan(1))
    if (p.shape != Shape{x[1]})
      refuse(str_cat("a weight or bias ", str(p.shape), " does not fit the channels of ", str(x)));
  return {in[0]};
}

Tensor per_channel(const Tensor& p, const Shape& x) {
  Shape s(x.size(), 1);
  s[1] = p.extent(0);
  return p.reshape(s).expand(x);
}

std::vector<Tensor> define_group_norm(const Attributes& a, std::span<const Tensor> in) {
  const Shape shape = in[0].shape();
  const std::int64_t groups = a.integer("groups");
  Dim rest = shape[1] / Dim(groups);
  for (std::size_t i = 2; i < shape.size(); ++i) rest = rest * shape[i];
  Tensor y = standardize(in[0].reshape({shape[0], groups, rest}), 1, a.real("eps")).reshape(shape);
  if (in.size() > 1) y = mul(y, per_channel(in[1], shape));
  if (in.size() > 2) y = add(y, per_channel(in[2], shape));
  return {y};
}

}  // namespace

namespace builtin {
const CompositeRef& group_norm() {
  static const CompositeRef c = std::make_shared<const Composite>(Composite{.name = "group_norm",
                                                                            .arity = 3,
                                                                            .optional = 2,
                                                                            .infer = infer_group_norm,
                                                                            .define = define_group_norm,
                                                                            .transparent = true});
  return c;
}
}  // namespace builtin

}  // namespace lc
