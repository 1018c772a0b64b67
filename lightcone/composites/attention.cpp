// attention: scaled dot product attention (A. Vaswani et al., "Attention is all you need", 2017), and its derivative.
#include "lightcone/composites/internal.h"
#include "lightcone/composites/layers.h"

namespace lc {
namespace {

using namespace definitions;

// Axes from the end: heads, queries or keys, and the length of one.
constexpr int kHeads = -3, kRows = -2, kLength = -1;

const Dim& extent(const TensorType& t, int axis) { return t.shape[t.shape.size() - static_cast<std::size_t>(-axis)]; }

Shape scores_of(const TensorType& q, const TensorType& k) {
  Shape s = q.shape;
  s.back() = extent(k, kRows);
  return s;
}

void check_heads(OperandTypes in) {
  const TensorType &q = in[0], &k = in[1], &v = in[2];
  const std::size_t rank = q.shape.size();
  if (rank < 2 || k.shape.size() != rank || v.shape.size() != rank)
    refuse(shapes(in.first(3)) + " have one rank, at least 2");
  if (!(extent(q, kLength) == extent(k, kLength)))
    refuse(str_cat(shapes(in.first(3)), ": head sizes differ: ", versus(extent(q, kLength), extent(k, kLength))));
  if (!(extent(k, kRows) == extent(v, kRows)))
    refuse(str_cat(shapes(in.first(3)), ": keys and values differ: ", versus(extent(k, kRows), extent(v, kRows))));
  for (std::size_t i = 0; i + 2 < rank; ++i) {
    const bool heads = i + 3 == rank;
    if (!(k.shape[i] == v.shape[i]) || (!heads && !(q.shape[i] == k.shape[i])))
      refuse(str_cat(shapes(in.first(3)), " differ at axis ", i));
  }
  if (rank == 2 || extent(q, kHeads) == extent(k, kHeads)) return;
  const Dim h = extent(q, kHeads), kv = extent(k, kHeads);
  const auto group = kv == Dim(0) ? std::nullopt : (h / kv).constant();
  if (!group || !(kv * Dim(*group) == h)) refuse(str_cat(kv, " key heads do not divide ", h, " query heads"));
}

void check_mask(const TensorType& mask, const Shape& scores) {
  if (mask.dtype != DType::Bool && !is_float(mask.dtype))
    refuse(str_cat("a mask is bool or floating, not ", name(mask.dtype)));
  if (!broadcasts_to(mask.shape, scores))
    refuse(str_cat("a mask ", str(mask.shape), " does not fit scores ", str(scores)));
}

std::vector<TensorType> infer_attention(const Attributes&, OperandTypes in) {
  one_float_type(in.first(3));
  check_heads(in);
  if (in.size() > 3) check_mask(in[3], scores_of(in[0], in[1]));
  Shape s = in[0].shape;
  s.back() = extent(in[2], kLength);
  return {{in[0].dtype, s}};
}

// The scaled and masked scores after softmax, [..., h, s, t]; `keys` has a head for each of the queries.
Tensor probabilities(const Attributes& a, const Tensor& q, const Tensor& keys, const Tensor* mask) {
  Tensor scores = matmul(q, keys.transpose(-1, -2));
  scores = mul(scores, like(scores, a.real("scale")));
  const int r = scores.rank();
  if (a.integer("causal") != 0) {
    const Dim i = Dim::index(r - 2, scores.extent(-2)), j = Dim::index(r - 1, scores.extent(-1));
    scores = where(scores.graph().index(scores.shape(), less(j, i + 1), DType::Bool), scores, like(scores, -kInf));
  }
  if (mask && is_float(mask->dtype())) scores = add(scores, expand_to(cast(*mask, scores.dtype()), scores.shape()));
  else if (mask) scores = where(expand_to(*mask, scores.shape()), scores, like(scores, -kInf));
  return softmax(scores);
}

std::vector<Tensor> define_attention(const Attributes& a, std::span<const Tensor> in) {
  const Tensor p = probabilities(a, in[0], for_heads(in[1], in[0]), in.size() > 3 ? &in[3] : nullptr);
  return {matmul(p, for_heads(in[2], in[0]))};
}

// The cotangents of q, k and v, and that of the scores as they are before the softmax.
struct Gradients {
  Tensor q, k, v, scores;
};
Gradients gradients_of(const Attributes& a, std::span<const Tensor> in, const Tensor& g, const Tensor* mask) {
  const Tensor &q = in[0], &k = in[1], &v = in[2];
  const Tensor keys = for_heads(k, q), values = for_heads(v, q);
  const Tensor p = probabilities(a, q, keys, mask);
  const Tensor slope = matmul(g, values.transpose(-1, -2));
  const int last = p.rank() - 1;
  const Tensor mean = sum_reduce(mul(p, slope), last).unsqueeze(last).expand(p.shape());
  const Tensor s = mul(p, add(slope, negate(mean))), d = mul(s, like(s, a.real("scale")));
  return {matmul(d, keys), for_keys(matmul(d.transpose(-1, -2), q), k), for_keys(matmul(p.transpose(-1, -2), g), v), s};
}

std::vector<TensorType> infer_gradients(const Attributes&, OperandTypes in) {
  one_float_type(in.first(4));
  check_heads(in);
  return {in[0], in[1], in[2]};
}

std::vector<Tensor> define_gradients(const Attributes& a, std::span<const Tensor> in) {
  const Gradients d = gradients_of(a, in, in[3], in.size() > 4 ? &in[4] : nullptr);
  return {d.q, d.k, d.v};
}

// A floating mask has a derivative of its own, which needs the scores.
std::vector<Tensor> vjp_attention(const VjpCall& c) {
  const bool masked = c.in.size() > 3;
  if (masked && is_float(c.in[3].dtype())) {
    const Gradients d = gradients_of(c.attributes, c.in, c.g(), &c.in[3]);
    return {d.q, d.k, d.v, c.wanted[3] ? cast(sum_to(d.scores, c.in[3].shape()), c.in[3].dtype()) : Tensor()};
  }
  std::vector<Tensor> in{c.in[0], c.in[1], c.in[2], c.g()};
  if (masked) in.push_back(c.in[3]);
  std::vector<Tensor> d = call(builtin::attention_gradients(), std::move(in), c.attributes);
  d.resize(c.in.size());
  return d;
}

}  // namespace

namespace builtin {
const CompositeRef& attention() {
  static const CompositeRef c = std::make_shared<const Composite>(Composite{.name = "scaled_dot_product_attention",
                                                                            .arity = 4,
                                                                            .optional = 1,
                                                                            .infer = infer_attention,
                                                                            .define = define_attention,
                                                                            .vjp = vjp_attention});
  return c;
}
const CompositeRef& attention_gradients() {
  static const CompositeRef c = std::make_shared<const Composite>(Composite{
      .name = "attention_gradients", .arity = 5, .optional = 1, .infer = infer_gradients, .define = define_gradients});
  return c;
}
}  // namespace builtin

}  // namespace lc
