// Rules for batch normalisation, as TensorFlow and PyTorch/XLA use it.
#include "lightcone/ops/shape.h"
#include "lightcone/stablehlo/read/reader.h"

namespace lc::stablehlo {
namespace {

// Operands [.., features, ..] and vectors with one number per feature.
class BatchNorm {
 public:
  BatchNorm(const Call& c, std::size_t operands) : epsilon_(c.number("epsilon", 0)) {
    if (c.in.size() != operands) c.refuse(str_cat("takes ", operands, " operands"));
    const Tensor& x = c.x();
    const std::int64_t axis = c.integer("feature_index", -1);
    if (axis < 0 || axis >= x.rank()) c.refuse(str_cat("there is no axis ", axis));
    axis_ = static_cast<int>(axis);
    if (!is_float(x.dtype())) c.refuse("is of floats");
    for (const Tensor& t : c.in)
      if (t.dtype() != x.dtype() || !(t.shape() == x.shape() || t.shape() == Shape{x.extent(axis_)}))
        c.refuse("its operands do not fit");
    for (int a = 0; a < x.rank(); ++a)
      if (a != axis_) others_.push_back(a);
    type_ = x.dtype();
  }

  // Halves are computed in f32.
  Tensor wide(const Tensor& t) const { return is_narrow(type_) ? prim::cast(t, DType::F32) : t; }
  Tensor narrow(const Tensor& t) const { return prim::cast(t, type_); }
  Tensor summed(const Tensor& x) const { return sum(x, others_); }
  Tensor mean_of(const Tensor& x) const { return mean(x, others_); }
  Tensor along(const Tensor& feature, const Tensor& x) const {  // broadcasts a number per feature to the shape of x
    Shape s(static_cast<std::size_t>(x.rank()), Dim(1));
    s[axis_] = x.extent(axis_);
    return feature.reshape(s).expand(x.shape());
  }
  Tensor inverse_deviation(const Tensor& variance) const { return rsqrt(variance + epsilon_); }
  Tensor elements(const Tensor& x) const {  // number of elements per feature
    Dim n = 1;
    for (const int a : others_) n = n * x.extent(a);
    return scalar_like(summed(x), static_cast<double>(n.constant().value_or(0)));
  }
  Tensor normalised(const Tensor& x, const Tensor& mean, const Tensor& variance) const {
    return (x - along(mean, x)) * along(inverse_deviation(variance), x);
  }

 private:
  double epsilon_;
  int axis_ = 0;
  IntList others_;
  DType type_;
};

std::vector<Tensor> inference(const Call& c) {
  const BatchNorm n(c, 5);
  const Tensor x = n.wide(c.x()), scale = n.wide(c.in[1]), offset = n.wide(c.in[2]);
  const Tensor y = n.normalised(x, n.wide(c.in[3]), n.wide(c.in[4]));
  return {n.narrow(y * n.along(scale, x) + n.along(offset, x))};
}

// The variance of the batch is divided by the number of elements, without Bessel's correction.
std::vector<Tensor> training(const Call& c) {
  const BatchNorm n(c, 3);
  const Tensor x = n.wide(c.x()), scale = n.wide(c.in[1]), offset = n.wide(c.in[2]);
  const Tensor mean = n.mean_of(x), centred = x - n.along(mean, x);
  const Tensor variance = n.mean_of(centred * centred);
  const Tensor y = n.normalised(x, mean, variance) * n.along(scale, x) + n.along(offset, x);
  return {n.narrow(y), n.narrow(mean), n.narrow(variance)};
}

// Returns the gradients of the operand, the scale and the offset.
std::vector<Tensor> gradients(const Call& c) {
  const BatchNorm n(c, 5);
  const Tensor x = n.wide(c.x()), scale = n.wide(c.in[1]), g = n.wide(c.in[4]);
  const Tensor mean = n.wide(c.in[2]), variance = n.wide(c.in[3]);
  const Tensor y = n.normalised(x, mean, variance), count = n.elements(x);
  const Tensor offset_gradient = n.summed(g), scale_gradient = n.summed(g * y);
  const Tensor rest = g - n.along(offset_gradient / count, x) - y * n.along(scale_gradient / count, x);
  const Tensor gradient = rest * n.along(scale * n.inverse_deviation(variance), x);
  return {n.narrow(gradient), n.narrow(scale_gradient), n.narrow(offset_gradient)};
}

}  // namespace

void add_norms(Rules& r) {
  r["stablehlo.batch_norm_inference"] = inference;
  r["stablehlo.batch_norm_training"] = training;
  r["stablehlo.batch_norm_grad"] = gradients;
}

}  // namespace lc::stablehlo
