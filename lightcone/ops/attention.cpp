// Scaled dot product attention and its derivative.
#include "lightcone/ops/attention.h"

#include <cmath>

#include "lightcone/ops/internal.h"
#include "lightcone/ops/random.h"

namespace lc {
using namespace detail;

namespace {

// Repeats keys or values so that each query head has its own.
Tensor for_heads(const Tensor& t, const Tensor& q) {
  if (q.rank() < 3 || q.extent(-3) == t.extent(-3)) return t;
  return repeat_interleave(t, static_cast<int>(*(q.extent(-3) / t.extent(-3)).constant()), -3);
}
// The transpose of for_heads: sums over the query heads that share a key head.
Tensor for_keys(const Tensor& t, const Tensor& k) {
  if (t.rank() < 3 || t.extent(-3) == k.extent(-3)) return t;
  Shape s = t.shape();
  const auto axis = s.size() - 3;
  const Dim group = s[axis] / k.extent(-3);
  s[axis] = k.extent(-3);
  s.insert(s.begin() + static_cast<std::ptrdiff_t>(axis) + 1, group);
  return sum(t.reshape(s), {static_cast<int>(axis) + 1});
}

Tensor probabilities(const Tensor& q, const Tensor& keys, const Tensor* mask, double scale, bool causal) {
  Tensor scores = mul(matmul(q, keys.transpose(-1, -2)), scale);
  const int r = scores.rank();
  if (causal) {
    const Dim i = Dim::index(r - 2, scores.extent(-2)), j = Dim::index(r - 1, scores.extent(-1));
    scores = prim::where(scores.graph().index(scores.shape(), less(j, i + 1), DType::Bool), scores,
                         full_like(scores, -kInf));
  }
  if (mask && is_float(mask->dtype())) scores = scores + prim::cast(*mask, scores.dtype());
  else if (mask) scores = masked_fill(scores, logical_not(*mask), -kInf);
  return softmax(scores, -1);
}

std::vector<Tensor> define_gradients(const Attributes& a, std::span<const Tensor> in) {
  const Tensor &q = in[0], &k = in[1], &v = in[2], &g = in[3];
  const double scale = a.real("scale");
  const Tensor keys = for_heads(k, q), values = for_heads(v, q);
  const Tensor p = probabilities(q, keys, in.size() > 4 ? &in[4] : nullptr, scale, a.integer("causal") != 0);
  const Tensor slope = matmul(g, values.transpose(-1, -2));
  const Tensor mean = sum(p * slope, {-1}, true).expand(p.shape());
  const Tensor d = mul(p * (slope - mean), scale);
  return {matmul(d, keys), for_keys(matmul(d.transpose(-1, -2), q), k), for_keys(matmul(p.transpose(-1, -2), g), v)};
}

// True if the derivative can be a single operation: q, k and v are [..., h, s, d] with equal leading axes.
bool plain(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor* mask) {
  for (int i = 0; i + 3 < q.rank(); ++i)
    if (!(q.extent(i) == k.extent(i)) || !(q.extent(i) == v.extent(i))) return false;
  if (q.rank() > 2 && !(k.extent(-3) == v.extent(-3))) return false;
  return q.dtype() == k.dtype() && q.dtype() == v.dtype() && (!mask || mask->dtype() == DType::Bool);
}

Tensor attention(const Operand& q, const Operand& k, const Operand& v, AttentionOptions o) {
  const char* op = "scaled_dot_product_attention";
  const OpScope scope(op, q.at);
  if (q->rank() < 2 || k->rank() != q->rank() || v->rank() != q->rank())
    throw Error(op, str_cat("q ", str(q->shape()), ", k ", str(k->shape()), " and v ", str(v->shape()),
                            " have one rank, at least 2"));
  const auto d = q->extent(-1).constant();
  const auto said = [&] {
    return str_cat("q ", str(q->shape()), ", k ", str(k->shape()), ", v ", str(v->shape()), ": ");
  };
  if (!(q->extent(-1) == k->extent(-1)))
    throw Error(op, str_cat(said(), "head sizes differ: ", versus(q->extent(-1), k->extent(-1))));
  if (!(k->extent(-2) == v->extent(-2)))
    throw Error(op, str_cat(said(), "keys and values differ: ", versus(k->extent(-2), v->extent(-2))));
  if (!o.scale && !d) throw Error(op, "give a scale when the head size is symbolic");
  const double scale = o.scale ? *o.scale : 1 / std::sqrt(static_cast<double>(*d));
  if (o.dropout_p != 0 && !o.random)
    throw Error(op, "dropout_p needs AttentionOptions::random, which draws the numbers");
  const Tensor* const mask = o.attn_mask.defined() ? &o.attn_mask : nullptr;
  if (is_narrow(q->dtype())) {
    const auto wide = [](const Operand& t) { return Operand(prim::cast(t, DType::F32), t.at); };
    return prim::cast(attention(wide(q), wide(k), wide(v), o), q->dtype());
  }
  Tensor keys = k, values = v;
  if (q->rank() > 2 && !(q->extent(-3) == k->extent(-3))) {  // grouped-query attention
    const Dim heads = q->extent(-3), kv = k->extent(-3);
    const auto group = kv == Dim(0) ? std::nullopt : (heads / kv).constant();
    if (!group || !(kv * Dim(*group) == heads))
      throw Error(op, str_cat(kv, " key heads do not divide ", heads, " query heads"));
    keys = repeat_interleave(keys, static_cast<int>(*group), -3);
    values = repeat_interleave(values, static_cast<int>(*group), -3);
  }
  Tensor weights = probabilities(q, keys, mask, scale, o.is_causal);
  if (o.dropout_p != 0) return matmul(o.random->dropout(weights, o.dropout_p), values);
  const Tensor y = matmul(weights, values);
  Shape shape = q->shape();
  shape.back() = v->extent(-1);
  if (!plain(q, k, v, mask) || y.shape() != shape) return y;
  std::vector<Tensor> in{q, k, v};
  if (mask) in.push_back(*mask);
  const Tensor whole(y.graph(), {y.edge().node, View(y.node().shape)});  // y may be a view of its node
  const bool same = y.edge().view.identity();
  if (!same && !(y.with(View(y.node().shape)).reshape(shape).view() == y.view())) return y;
  with_vjp(whole, in, [scale, causal = o.is_causal, shape](const VjpCall& c) -> std::vector<Tensor> {
    std::vector<Tensor> operands{c.in[0], c.in[1], c.in[2], c.g().reshape(shape)};
    if (c.in.size() > 3) operands.push_back(c.in[3]);
    std::vector<Tensor> d =
        call(attention_gradients(c.in.size() > 3), std::move(operands), {{"scale", scale}, {"causal", causal ? 1 : 0}});
    d.resize(c.in.size());
    return d;
  });
  return y;
}

}  // namespace

const CompositeRef& attention_gradients(bool masked) {
  const auto make = [](int arity) {
    return std::make_shared<const Composite>(
        Composite{.name = "attention_gradients",
                  .arity = arity,
                  .infer = [](const Attributes&, std::span<const TensorType> in) -> std::vector<TensorType> {
                    return {in[0], in[1], in[2]};
                  },
                  .define = define_gradients});
  };
  static const CompositeRef plain = make(4), with_mask = make(5);
  return masked ? with_mask : plain;
}

Tensor scaled_dot_product_attention(Operand q, Operand k, Operand v, const AttentionOptions& o) {
  return attention(q, k, v, o);
}
Tensor scaled_dot_product_attention(Operand q, Operand k, Operand v, OptionalOperand attn_mask, double dropout_p,
                                    bool is_causal, std::optional<double> scale) {
  return attention(q, k, v, {*attn_mask, dropout_p, is_causal, scale});
}

}  // namespace lc
