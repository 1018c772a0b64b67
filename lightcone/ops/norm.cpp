// Normalisation and rotary embeddings.
#include "lightcone/ops/internal.h"

namespace lc {
using namespace detail;

Tensor layer_norm(Operand x, int axes, double eps) {
  const OpScope scope("layer_norm", x.at);
  LC_RETURN_IF_HALF(x, layer_norm(x, axes, eps));
  if (axes < 1 || axes > x->rank()) throw Error("layer_norm", cat(axes, " axes of ", str(x->shape())));
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
namespace {
// weight and bias over the last axes of t
Tensor affine(const Tensor& t, const Operand& weight, const Operand& bias, int axes, const char* op) {
  const Shape s = t.shape(), last(s.end() - axes, s.end());
  for (const Operand* p : {&weight, &bias})
    if ((*p)->shape() != last)
      throw Error(op, cat("weight ", str(weight->shape()), " and bias ", str(bias->shape()), " do not fit ", str(s),
                          " over its last axes"));
  return t * weight.tensor + bias.tensor;
}
Tensor per_channel(const Operand& p, int rank) {
  Shape s(static_cast<std::size_t>(rank), 1);
  s.at(1) = p->extent(0);
  return p->reshape(s);
}
}  // namespace

Tensor layer_norm(Operand x, int axes, Operand weight, Operand bias, double eps) {
  const OpScope scope("layer_norm", x.at);
  LC_RETURN_IF_HALF(x, layer_norm(x, axes, weight, bias, eps));
  return affine(layer_norm(x, axes, eps), weight, bias, axes, "layer_norm");
}
Tensor rms_norm(Operand x, Operand weight, double eps) {
  const OpScope scope("rms_norm", x.at);
  LC_RETURN_IF_HALF(x, rms_norm(x, weight, eps));
  if (weight->rank() != 1 || x->rank() == 0 || !(weight->extent(0) == x->extent(-1)))
    throw Error("rms_norm", cat("a weight ", str(weight->shape()), " does not fit ", str(x->shape())));
  return rms_norm(x, eps) * weight.tensor;
}
Tensor rms_norm(Operand x, double eps) {
  const OpScope scope("rms_norm", x.at);
  LC_RETURN_IF_HALF(x, rms_norm(x, eps));
  if (x->rank() == 0) throw Error("rms_norm", "needs at least one axis");
  const Tensor t = as_float(x);
  const Tensor scale = rsqrt(add(mean(prim::mul(t, t), {-1}, true), eps));
  return with_vjp(prim::mul(t, scale.expand(t.shape())), {t, scale}, [](const VjpCall& c) -> std::vector<Tensor> {
    const auto each = [&](const Tensor& t) { return t.expand(c.y().shape()); };
    const Tensor along = mean(prim::mul(c.g(), c.y()), {-1}, true);
    return {prim::mul(each(c.in[1]), prim::add(c.g(), neg(prim::mul(c.y(), each(along))))), {}};
  });
}
Tensor group_norm(Operand x, int groups, double eps) {
  const OpScope scope("group_norm", x.at);
  if (x->rank() < 2 || groups < 1)
    throw Error("group_norm", cat(groups, " groups of ", str(x->shape()), ", which is not [batch, channels, ...]"));
  const Dim n = x->extent(0), c = x->extent(1);
  if (!(c % Dim(groups) == Dim(0))) throw Error("group_norm", cat(groups, " groups do not divide ", c, " channels"));
  Dim rest = c / Dim(groups);
  for (int i = 2; i < x->rank(); ++i) rest = rest * x->extent(i);
  return layer_norm(x->reshape({n, groups, rest}), 1, eps).reshape(x->shape());
}
Tensor group_norm(Operand x, int groups, Operand weight, Operand bias, double eps) {
  const OpScope scope("group_norm", x.at);
  LC_RETURN_IF_HALF(x, group_norm(x, groups, weight, bias, eps));
  const Tensor t = group_norm(x, groups, eps);
  for (const Operand* p : {&weight, &bias})
    if ((*p)->rank() != 1 || !((*p)->extent(0) == x->extent(1)))
      throw Error("group_norm", cat("weight ", str(weight->shape()), " and bias ", str(bias->shape()),
                                    " do not fit the channels of ", str(x->shape())));
  return t * per_channel(weight, t.rank()) + per_channel(bias, t.rank());
}
Tensor instance_norm(Operand x, double eps) {
  const OpScope scope("instance_norm", x.at);
  if (x->rank() < 3) throw Error("instance_norm", "needs [batch, channels, spatial axes], not " + str(x->shape()));
  Axes over;
  for (int i = 2; i < x->rank(); ++i) over.push_back(i);
  return layer_norm(x, static_cast<int>(over.size()), eps);
}
Tensor normalize(Operand x, double p, int axis, double eps) {
  const OpScope scope("normalize", x.at);
  LC_RETURN_IF_HALF(x, normalize(x, p, axis, eps));
  axis = wrap_axis(axis, x->rank(), x->shape(), "normalize");
  const Tensor t = as_float(x), length = norm(t, p, {axis}, true);
  return prim::div(t, prim::maximum(length, full_like(length, eps)).expand(t.shape()));
}
Tensor cosine_similarity(Operand a, Operand b, int axis, double eps) {
  const OpScope scope("cosine_similarity", a.at);
  LC_RETURN_IF_EITHER_HALF(a, b, cosine_similarity(a, b, axis, eps));
  const Shape shape = broadcast(a->shape(), b->shape(), "cosine_similarity");
  axis = wrap_axis(axis, static_cast<int>(shape.size()), shape, "cosine_similarity");
  const Tensor x = expand_to(as_float(a), shape), y = expand_to(as_float(b), shape), n = norm(x, 2, {axis}),
               m = norm(y, 2, {axis});
  return sum(x * y, {axis}) / (prim::maximum(n, full_like(n, eps)) * prim::maximum(m, full_like(m, eps)));
}
Tensor batch_norm(Operand x, Operand mean, Operand var, Operand weight, Operand bias, double eps) {
  const OpScope scope("batch_norm", x.at);
  LC_RETURN_IF_HALF(x, batch_norm(x, mean, var, weight, bias, eps));
  if (x->rank() < 2) throw Error("batch_norm", "needs [batch, channels, ...], not " + str(x->shape()));
  for (const Operand* p : {&mean, &var, &weight, &bias})
    if ((*p)->rank() != 1 || !((*p)->extent(0) == x->extent(1)))
      throw Error("batch_norm",
                  cat("statistics or weights ", str((*p)->shape()), " do not fit the channels of ", str(x->shape())));
  const auto wide = [](const Operand& p) { return is_half(p->dtype()) ? prim::cast(p, DType::F32) : p.tensor; };
  const Tensor scale = wide(weight) * rsqrt(wide(var) + eps);
  const Tensor shift = wide(bias) - wide(mean) * scale;
  return x.tensor * per_channel(scale, x->rank()) + per_channel(shift, x->rank());
}

Tensor rope(Operand x, Operand cos, Operand sin, bool interleaved) {
  const OpScope scope("rope", x.at);
  if (cos->dtype() == x->dtype() && sin->dtype() == x->dtype()) LC_RETURN_IF_HALF(x, rope(x, cos, sin, interleaved));
  const Shape s = x->shape();
  if (s.empty() || cos->rank() == 0 || cos->shape() != sin->shape())
    throw Error("rope", cat("cosines ", str(cos->shape()), " and sines ", str(sin->shape()), " do not fit ", str(s)));
  const Dim half = s.back() / Dim(2);
  if (!(half * 2 == s.back()) || !(cos->extent(-1) == half))
    throw Error("rope", cat("angles of ", str(cos->shape()), " do not fit ", str(s)));
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
