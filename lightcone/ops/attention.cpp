// Scaled dot product attention: the composite, or its operations one by one if weights are dropped.
#include <cmath>

#include "lightcone/composites/composites.h"
#include "lightcone/ops/internal.h"
#include "lightcone/ops/random.h"

namespace lc {
using namespace detail;

namespace {

constexpr const char* kAttention = "scaled_dot_product_attention";

std::string shapes_of(const Tensor& q, const Tensor& k, const Tensor& v) {
  return str_cat("q ", str(q.shape()), ", k ", str(k.shape()), ", v ", str(v.shape()), ": ");
}

void check_operands(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& o) {
  if (q.rank() < 2 || k.rank() != q.rank() || v.rank() != q.rank())
    throw Error(kAttention, str_cat("q ", str(q.shape()), ", k ", str(k.shape()), " and v ", str(v.shape()),
                                    " have one rank, at least 2"));
  if (!(q.extent(-1) == k.extent(-1)))
    throw Error(kAttention, str_cat(shapes_of(q, k, v), "head sizes differ: ", versus(q.extent(-1), k.extent(-1))));
  if (!(k.extent(-2) == v.extent(-2)))
    throw Error(kAttention,
                str_cat(shapes_of(q, k, v), "keys and values differ: ", versus(k.extent(-2), v.extent(-2))));
  if (!o.scale && !q.extent(-1).constant()) throw Error(kAttention, "give a scale when the head size is symbolic");
  if (o.dropout_p != 0 && !o.random)
    throw Error(kAttention, "dropout_p needs AttentionOptions::random, which draws the numbers");
}

// How many query heads share a key head (grouped-query attention).
int group_of(const Tensor& q, const Tensor& k) {
  if (q.rank() < 3 || q.extent(-3) == k.extent(-3)) return 1;
  const Dim heads = q.extent(-3), kv = k.extent(-3);
  const auto group = kv == Dim(0) ? std::nullopt : (heads / kv).constant();
  if (!group || !(kv * Dim(*group) == heads))
    throw Error(kAttention, str_cat(kv, " key heads do not divide ", heads, " query heads"));
  return static_cast<int>(*group);
}

Tensor probabilities(const Tensor& q, const Tensor& keys, const AttentionOptions& o, double scale) {
  Tensor scores = mul(matmul(q, keys.transpose(-1, -2)), scale);
  const int r = scores.rank();
  if (o.is_causal) {
    const Dim i = Dim::index(r - 2, scores.extent(-2)), j = Dim::index(r - 1, scores.extent(-1));
    scores = prim::where(scores.graph().index(scores.shape(), less(j, i + 1), DType::Bool), scores,
                         full_like(scores, -kInf));
  }
  const Tensor& mask = o.attn_mask;
  if (mask.defined() && is_float(mask.dtype())) scores = scores + prim::cast(mask, scores.dtype());
  else if (mask.defined()) scores = masked_fill(scores, logical_not(mask), -kInf);
  return softmax(scores, -1);
}

Tensor with_dropout(const Tensor& q, Tensor k, Tensor v, const AttentionOptions& o, double scale) {
  if (const int group = group_of(q, k); group > 1)
    k = repeat_interleave(k, group, -3), v = repeat_interleave(v, group, -3);
  return matmul(o.random->dropout(probabilities(q, k, o, scale), o.dropout_p), v);
}

// Returns the leading axes of all operands together: those before heads, rows and lengths.
Shape batch_of(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask) {
  const auto leading = [rank = q.rank()](const Tensor& t) {
    const Shape s = t.shape();
    return Shape(s.begin(), s.end() - std::min<std::ptrdiff_t>(std::ssize(s), std::min(rank, 3)));
  };
  const Shape batch = broadcast(broadcast(leading(q), leading(k), kAttention), leading(v), kAttention);
  if (!mask.defined()) return batch;
  Shape scores = q.shape();
  scores.back() = k.extent(-2);
  broadcast(scores, mask.shape(), kAttention);  // throws Error where an axis does not fit
  return broadcast(batch, leading(mask), kAttention);
}

Tensor in_batch(const Tensor& t, const Shape& batch) {
  const Shape own = t.shape();
  Shape s = batch;
  s.insert(s.end(), own.end() - std::min(t.rank(), 3), own.end());
  return expand_to(t, s);
}

Tensor attention(const Operand& q, const Operand& k, const Operand& v, const AttentionOptions& o) {
  const OpScope scope(kAttention, q.at);
  check_operands(q, k, v, o);
  const DType type = promote(promote(as_float(q).dtype(), as_float(k).dtype()), as_float(v).dtype());
  const auto as = [](const Tensor& t, DType to) { return prim::cast(t, to); };
  if (is_narrow(type)) {
    const auto wide = [&](const Operand& t) { return Operand(as(t, DType::F32), t.at); };
    return as(attention(wide(q), wide(k), wide(v), o), type);
  }
  const double scale = o.scale ? *o.scale : 1 / std::sqrt(static_cast<double>(*q->extent(-1).constant()));
  const Tensor x = as(q, type), keys = as(k, type), values = as(v, type);
  if (o.dropout_p != 0) return with_dropout(x, keys, values, o, scale);
  group_of(x, keys);
  const Shape batch = batch_of(x, keys, values, o.attn_mask);
  std::vector<Tensor> in{in_batch(x, batch), in_batch(keys, batch), in_batch(values, batch)};
  if (o.attn_mask.defined()) in.push_back(o.attn_mask);
  return call(builtin::attention(), std::move(in), {{"scale", scale}, {"causal", o.is_causal ? 1 : 0}})[0];
}

}  // namespace

Tensor scaled_dot_product_attention(Operand q, Operand k, Operand v, const AttentionOptions& o) {
  return attention(q, k, v, o);
}
Tensor scaled_dot_product_attention(Operand q, Operand k, Operand v, OptionalOperand attn_mask, double dropout_p,
                                    bool is_causal, std::optional<double> scale) {
  return attention(q, k, v, {*attn_mask, dropout_p, is_causal, scale});
}

}  // namespace lc
