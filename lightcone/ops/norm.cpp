// Normalisation and rotary embeddings.
#include "lightcone/composites/composites.h"
#include "lightcone/ops/internal.h"

namespace lc {
using namespace detail;

namespace {
void check_last(const Shape& s, const Shape& normalized_shape, std::initializer_list<const OptionalOperand*> parameters,
                const char* op) {
  const auto n = static_cast<std::ptrdiff_t>(normalized_shape.size());
  if (n < 1 || n > static_cast<std::ptrdiff_t>(s.size()) || Shape(s.end() - n, s.end()) != normalized_shape)
    throw Error(op, str_cat(str(s), " does not end with the normalized shape ", str(normalized_shape)));
  for (const OptionalOperand* p : parameters)
    if (p->given() && (*p)->shape() != normalized_shape)
      throw Error(op, str_cat("a weight or bias ", str((*p)->shape()), " does not fit the normalized shape ",
                              str(normalized_shape)));
}
// Applies a norm with those of weight and bias that it takes: they are given and do not promote x. The others follow.
Tensor normalised(const CompositeRef& norm, const Tensor& x, const OptionalOperand& weight, const OptionalOperand& bias,
                  Attributes attributes, Tensor (*fit)(const Tensor& parameter, int rank)) {
  const auto keeps_type = [&](const OptionalOperand& p) { return result_type(x, *p) == x.dtype(); };
  std::vector<Tensor> in{x};
  const bool takes_weight = weight.given() && keeps_type(weight);
  const bool takes_bias = takes_weight && bias.given() && keeps_type(bias);
  if (takes_weight) in.push_back(prim::cast(*weight, x.dtype()));
  if (takes_bias) in.push_back(prim::cast(*bias, x.dtype()));
  Tensor y = call(norm, std::move(in), std::move(attributes))[0];
  if (weight.given() && !takes_weight) y = y * fit(*weight, x.rank());
  if (bias.given() && !takes_bias) y = y + fit(*bias, x.rank());
  return y;
}
Tensor as_given(const Tensor& parameter, int) { return parameter; }
Tensor per_channel(const Tensor& p, int rank) {
  Shape s(static_cast<std::size_t>(rank), 1);
  s.at(1) = p.extent(0);
  return p.reshape(s);
}
void check_channels(const Operand& x, std::initializer_list<const OptionalOperand*> parameters, const char* op) {
  if (x->rank() < 2) throw Error(op, "needs [batch, channels, ...], not " + str(x->shape()));
  for (const OptionalOperand* p : parameters)
    if (p->given() && ((*p)->rank() != 1 || !((*p)->extent(0) == x->extent(1))))
      throw Error(op, str_cat("statistics, a weight or a bias of ", str((*p)->shape()), " do not fit the channels of ",
                              str(x->shape())));
}
}  // namespace

Tensor layer_norm(Operand x, const Shape& normalized_shape, OptionalOperand weight, OptionalOperand bias, double eps) {
  const OpScope scope("layer_norm", x.at);
  check_last(x->shape(), normalized_shape, {&weight, &bias}, "layer_norm");
  LC_RETURN_IF_HALF(x, layer_norm(x, normalized_shape, weight, bias, eps));
  const auto axes = static_cast<std::int64_t>(normalized_shape.size());
  return normalised(builtin::layer_norm(), as_float(x), weight, bias, {{"axes", axes}, {"eps", eps}}, as_given);
}
Tensor rms_norm(Operand x, const Shape& normalized_shape, OptionalOperand weight, std::optional<double> eps) {
  const OpScope scope("rms_norm", x.at);
  check_last(x->shape(), normalized_shape, {&weight}, "rms_norm");
  if (!eps) eps = x->dtype() == DType::F64 ? 0x1p-52 : 0x1p-23;
  LC_RETURN_IF_HALF(x, rms_norm(x, normalized_shape, weight, eps));
  const auto axes = static_cast<std::int64_t>(normalized_shape.size());
  return normalised(builtin::rms_norm(), as_float(x), weight, {}, {{"axes", axes}, {"eps", *eps}}, as_given);
}
Tensor group_norm(Operand x, int num_groups, OptionalOperand weight, OptionalOperand bias, double eps) {
  const OpScope scope("group_norm", x.at);
  check_channels(x, {&weight, &bias}, "group_norm");
  const Dim c = x->extent(1);
  if (num_groups < 1 || !(c % Dim(num_groups) == Dim(0)))
    throw Error("group_norm", str_cat(num_groups, " groups do not divide ", c, " channels"));
  LC_RETURN_IF_HALF(x, group_norm(x, num_groups, weight, bias, eps));
  return normalised(builtin::group_norm(), as_float(x), weight, bias, {{"groups", num_groups}, {"eps", eps}},
                    per_channel);
}

namespace {
// Makes each run move the running statistics (inputs of the graph) towards those of the batch by `momentum`. `var` is
// the biased variance of `count` elements; the unbiased one is stored.
void move_statistics(const OptionalOperand& running_mean, const OptionalOperand& running_var, const Tensor& mean,
                     const Tensor& var, const Dim& count, double momentum) {
  Graph& g = mean.graph();
  const auto moved = [&](const Tensor& old, const Tensor& now) {
    g.assign(old, old * (1 - momentum) + prim::cast(now, old.dtype()) * momentum);
  };
  if (running_mean.given()) moved(*running_mean, mean);
  if (!running_var.given()) return;
  const Tensor n = prim::cast(g.index(var.shape(), count), var.dtype());
  moved(*running_var, var * n / maximum(n - 1.0, full_like(n, 1)));
}
Tensor by_statistics(const Tensor& x, const Tensor& mean, const Tensor& var, const OptionalOperand& weight,
                     const OptionalOperand& bias, double eps) {
  const auto wide = [](const Tensor& p) { return is_narrow(p.dtype()) ? prim::cast(p, DType::F32) : p; };
  Tensor scale = rsqrt(wide(var) + eps);
  if (weight.given()) scale = wide(*weight) * scale;
  const Tensor off = wide(mean) * scale, shift = bias.given() ? wide(*bias) - off : neg(off);
  return x * per_channel(scale, x.rank()) + per_channel(shift, x.rank());
}
}  // namespace

Tensor batch_norm(Operand x, OptionalOperand running_mean, OptionalOperand running_var, OptionalOperand weight,
                  OptionalOperand bias, bool training, double momentum, double eps) {
  const OpScope scope("batch_norm", x.at);
  check_channels(x, {&running_mean, &running_var, &weight, &bias}, "batch_norm");
  if (!training && (!running_mean.given() || !running_var.given()))
    throw Error("batch_norm", "needs running_mean and running_var, or training = true");
  LC_RETURN_IF_HALF(x, batch_norm(x, running_mean, running_var, weight, bias, training, momentum, eps));
  const Tensor t = as_float(x);
  if (!training) return by_statistics(t, *running_mean, *running_var, weight, bias, eps);
  Axes others;
  Dim n = 1;
  for (int i = 0; i < x->rank(); ++i)
    if (i != 1) others.push_back(i), n = n * x->extent(i);
  if (n == Dim(1))
    throw Error("batch_norm", str_cat("training needs more than one value in a channel, and ", str(x->shape()),
                                      " has one: take a larger batch"));
  const Tensor m = mean(t, others), v = var(t, others, 0);
  move_statistics(running_mean, running_var, m, v, n, momentum);
  return by_statistics(t, m, v, weight, bias, eps);
}
Tensor instance_norm(Operand x, OptionalOperand running_mean, OptionalOperand running_var, OptionalOperand weight,
                     OptionalOperand bias, bool use_input_stats, double momentum, double eps) {
  const OpScope scope("instance_norm", x.at);
  check_channels(x, {&running_mean, &running_var, &weight, &bias}, "instance_norm");
  if (x->rank() < 3) throw Error("instance_norm", "needs [batch, channels, spatial axes], not " + str(x->shape()));
  if (!use_input_stats && (!running_mean.given() || !running_var.given()))
    throw Error("instance_norm", "needs running_mean and running_var, or use_input_stats = true");
  LC_RETURN_IF_HALF(x, instance_norm(x, running_mean, running_var, weight, bias, use_input_stats, momentum, eps));
  const Tensor t = as_float(x);
  if (!use_input_stats) return by_statistics(t, *running_mean, *running_var, weight, bias, eps);
  Axes spatial;
  Dim n = 1;
  for (int i = 2; i < x->rank(); ++i) spatial.push_back(i), n = n * x->extent(i);
  if (running_mean.given() || running_var.given())
    move_statistics(running_mean, running_var, mean(mean(t, spatial), {0}), mean(var(t, spatial, 0), {0}), n, momentum);
  const auto axes = static_cast<std::int64_t>(spatial.size());
  Tensor y = normalised(builtin::layer_norm(), t, {}, {}, {{"axes", axes}, {"eps", eps}}, as_given);
  if (weight.given()) y = y * per_channel(*weight, t.rank());
  return bias.given() ? y + per_channel(*bias, t.rank()) : y;
}
Tensor normalize(Operand x, double p, int axis, double eps) {
  const OpScope scope("normalize", x.at);
  LC_RETURN_IF_NUMBER(x, axis, normalize(x, p, 0, eps));
  LC_RETURN_IF_HALF(x, normalize(x, p, axis, eps));
  axis = wrap_axis(axis, x->rank(), x->shape(), "normalize");
  const Tensor t = as_float(x), length = norm(t, p, {axis}, true);
  return prim::div(t, prim::maximum(length, full_like(length, eps)).expand(t.shape()));
}
Tensor cosine_similarity(Operand a, Operand b, int axis, double eps) {
  const OpScope scope("cosine_similarity", a.at);
  LC_RETURN_IF_EITHER_HALF(a, b, cosine_similarity(a, b, axis, eps));
  const Shape shape = broadcast(a->shape(), b->shape(), "cosine_similarity");
  if (shape.empty() && is_number(a, axis)) return number_of(cosine_similarity(row_of(a), row_of(b), 0, eps));
  axis = wrap_axis(axis, static_cast<int>(shape.size()), shape, "cosine_similarity");
  const Tensor x = expand_to(as_float(a), shape), y = expand_to(as_float(b), shape), n = norm(x, 2, {axis}),
               m = norm(y, 2, {axis});
  return sum(x * y, {axis}) / (prim::maximum(n, full_like(n, eps)) * prim::maximum(m, full_like(m, eps)));
}
Tensor rope(Operand x, Operand cos, Operand sin, bool interleaved) {
  const OpScope scope("rope", x.at);
  if (cos->dtype() == x->dtype() && sin->dtype() == x->dtype()) LC_RETURN_IF_HALF(x, rope(x, cos, sin, interleaved));
  const Shape s = x->shape();
  if (s.empty() || cos->rank() == 0 || cos->shape() != sin->shape())
    throw Error("rope",
                str_cat("cosines ", str(cos->shape()), " and sines ", str(sin->shape()), " do not fit ", str(s)));
  const Dim half = s.back() / Dim(2);
  if (!(half * 2 == s.back()) || !(cos->extent(-1) == half))
    throw Error("rope", str_cat("angles of ", str(cos->shape()), " do not fit ", str(s)));
  const DType type = promote(x->dtype(), promote(cos->dtype(), sin->dtype()));
  const auto in_type = [&](const Tensor& t) { return prim::cast(as_float(t), type); };
  return call(builtin::rope(), {in_type(x), in_type(cos), in_type(sin)}, {{"interleaved", interleaved ? 1 : 0}})[0];
}

}  // namespace lc
