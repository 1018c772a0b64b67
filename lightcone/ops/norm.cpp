// Normalisation, attention and rotary embeddings.
#include "lightcone/ops/internal.h"

namespace lc {
using namespace detail;

Tensor layer_norm(Operand x, int axes, double eps) {
  const OpScope scope("layer_norm", x.at);
  Axes over;
  for (int i = -axes; i < 0; ++i) over.push_back(i);
  const Tensor t = as_float(x), d = prim::add(t, neg(mean(t, over, true).expand(t.shape())));
  const Tensor v = mean(prim::mul(d, d), over, true);
  return prim::mul(d, rsqrt(add(v, eps)).expand(t.shape()));
}
Tensor rms_norm(Operand x, double eps) {
  const OpScope scope("rms_norm", x.at);
  const Tensor t = as_float(x);
  return prim::mul(t, rsqrt(add(mean(prim::mul(t, t), {-1}, true), eps)).expand(t.shape()));
}
Tensor group_norm(Operand x, int groups, double eps) {
  const OpScope scope("group_norm", x.at);
  const Dim n = x->extent(0), c = x->extent(1);
  if (!(c % Dim(groups) == Dim(0))) throw Error("group_norm", cat(groups, " groups do not divide ", c, " channels"));
  Dim rest = c / Dim(groups);
  for (int i = 2; i < x->rank(); ++i) rest = rest * x->extent(i);
  return layer_norm(x->reshape({n, groups, rest}), 1, eps).reshape(x->shape());
}
Tensor batch_norm(Operand x, Operand mean, Operand var, Operand weight, Operand bias, double eps) {
  const OpScope scope("batch_norm", x.at);
  Shape s(static_cast<std::size_t>(x->rank()), 1);
  s.at(1) = x->extent(1);
  const Tensor scale = weight.tensor * rsqrt(var.tensor + eps);
  const Tensor shift = bias.tensor - mean.tensor * scale;
  return x.tensor * scale.reshape(s) + shift.reshape(s);
}

namespace {

Tensor attention(const Operand& q, const Operand& k, const Operand& v, const Tensor* mask, double scale) {
  const OpScope scope("scaled_dot_product_attention", q.at);
  const auto d = q->extent(-1).constant();
  if (scale == 0 && !d) throw Error("scaled_dot_product_attention", "give a scale when the head size is symbolic");
  if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(*d));
  Tensor keys = k, values = v;
  const Dim heads = q->extent(-3), kv = k->extent(-3);
  if (!(heads == kv)) {  // each key head serves a group of query heads
    const auto group = (heads / kv).constant();
    if (!group || !(kv * Dim(*group) == heads))
      throw Error("scaled_dot_product_attention", cat(kv, " key heads do not divide ", heads, " query heads"));
    keys = repeat_interleave(keys, static_cast<int>(*group), -3);
    values = repeat_interleave(values, static_cast<int>(*group), -3);
  }
  Tensor scores = mul(matmul(q, keys.transpose(-1, -2)), scale);
  if (mask) scores = masked_fill(scores, logical_not(*mask), -kInf);
  return matmul(softmax(scores, -1), values);
}

}  // namespace

Tensor scaled_dot_product_attention(Operand q, Operand k, Operand v, double scale) { return attention(q, k, v, nullptr, scale); }
Tensor scaled_dot_product_attention(Operand q, Operand k, Operand v, Operand mask, double scale) { return attention(q, k, v, &mask.tensor, scale); }

Tensor rope(Operand x, Operand cos, Operand sin, bool interleaved) {
  const OpScope scope("rope", x.at);
  const Shape s = x->shape();
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
