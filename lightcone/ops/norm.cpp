// Normalisation and rotary embeddings.
#include "lightcone/ops/internal.h"

namespace lc {
using namespace detail;

namespace {
// Normalises over the last axes, without weight and bias. The input is not a 16-bit float.
Tensor normalised(const Tensor& x, int axes, double eps) {
  Axes over;
  for (int i = -axes; i < 0; ++i) over.push_back(i);
  const Tensor t = as_float(x), d = prim::add(t, neg(mean(t, over, true).expand(t.shape())));
  const Tensor v = mean(prim::mul(d, d), over, true), scale = rsqrt(add(v, eps));
  return with_vjp(prim::mul(d, scale.expand(t.shape())), {t, scale}, [over](const VjpCall& c) -> std::vector<Tensor> {
    const auto each = [&](const Tensor& t) { return t.expand(c.y().shape()); };
    const Tensor along = mean(prim::mul(c.g(), c.y()), over, true), level = mean(c.g(), over, true);
    const Tensor off = prim::add(prim::add(c.g(), neg(each(level))), neg(prim::mul(c.y(), each(along))));
    return {prim::mul(each(c.in[1]), off), {}};
  });
}
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
Tensor scaled(Tensor t, const OptionalOperand& weight, const OptionalOperand& bias) {
  if (weight.given()) t = t * *weight;
  return bias.given() ? t + *bias : t;
}
Tensor per_channel(const Tensor& p, int rank) {
  Shape s(static_cast<std::size_t>(rank), 1);
  s.at(1) = p.extent(0);
  return p.reshape(s);
}
Tensor scaled_by_channel(Tensor t, const OptionalOperand& weight, const OptionalOperand& bias) {
  if (weight.given()) t = t * per_channel(*weight, t.rank());
  return bias.given() ? t + per_channel(*bias, t.rank()) : t;
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
  return scaled(normalised(as_float(x), static_cast<int>(normalized_shape.size()), eps), weight, bias);
}
Tensor rms_norm(Operand x, const Shape& normalized_shape, OptionalOperand weight, std::optional<double> eps) {
  const OpScope scope("rms_norm", x.at);
  check_last(x->shape(), normalized_shape, {&weight}, "rms_norm");
  if (!eps) eps = x->dtype() == DType::F64 ? 0x1p-52 : 0x1p-23;
  LC_RETURN_IF_HALF(x, rms_norm(x, normalized_shape, weight, eps));
  Axes over;
  for (int i = -static_cast<int>(normalized_shape.size()); i < 0; ++i) over.push_back(i);
  const Tensor t = as_float(x);
  const Tensor scale = rsqrt(add(mean(prim::mul(t, t), over, true), *eps));
  const Tensor y =
      with_vjp(prim::mul(t, scale.expand(t.shape())), {t, scale}, [over](const VjpCall& c) -> std::vector<Tensor> {
        const auto each = [&](const Tensor& t) { return t.expand(c.y().shape()); };
        const Tensor along = mean(prim::mul(c.g(), c.y()), over, true);
        return {prim::mul(each(c.in[1]), prim::add(c.g(), neg(prim::mul(c.y(), each(along))))), {}};
      });
  return scaled(y, weight, {});
}
Tensor group_norm(Operand x, int num_groups, OptionalOperand weight, OptionalOperand bias, double eps) {
  const OpScope scope("group_norm", x.at);
  check_channels(x, {&weight, &bias}, "group_norm");
  const Dim n = x->extent(0), c = x->extent(1);
  if (num_groups < 1 || !(c % Dim(num_groups) == Dim(0)))
    throw Error("group_norm", str_cat(num_groups, " groups do not divide ", c, " channels"));
  LC_RETURN_IF_HALF(x, group_norm(x, num_groups, weight, bias, eps));
  Dim rest = c / Dim(num_groups);
  for (int i = 2; i < x->rank(); ++i) rest = rest * x->extent(i);
  const Tensor t = as_float(x);
  return scaled_by_channel(normalised(t.reshape({n, num_groups, rest}), 1, eps).reshape(x->shape()), weight, bias);
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
  return scaled_by_channel(normalised(t, static_cast<int>(spatial.size()), eps), weight, bias);
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
  Shape pairs = s;
  pairs.back() = interleaved ? half : Dim(2);
  pairs.push_back(interleaved ? Dim(2) : half);
  Tensor t = x->reshape(pairs);
  if (!interleaved) t = t.transpose(-1, -2);
  const int last = t.rank() - 1;
  const Tensor a = t.slice(last, 0, 1), b = t.slice(last, 1, 2);
  const Tensor c = cos->unsqueeze(cos->rank()), n = sin->unsqueeze(sin->rank());
  Tensor r = concat({a * c - b * n, a * n + b * c}, last);
  if (!interleaved) r = r.transpose(-1, -2);
  return r.reshape(s);
}

}  // namespace lc
