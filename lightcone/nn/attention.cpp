#include "lightcone/nn/attention.h"

#include <cmath>

namespace lc::nn {

MultiheadAttention::MultiheadAttention(std::int64_t width, int heads, const AttentionLayerOptions& o)
    : width_(width), heads_(heads), o_(o), out_proj_(width, width, {.bias = o.bias}) {
  if (heads < 1 || width < 1 || width % heads != 0)
    throw Error("MultiheadAttention", cat(heads, " heads do not divide a width of ", width));
}

void MultiheadAttention::visit(Visitor& v) {
  v.parameter("in_proj_weight", in_proj_weight, {3 * width_, width_},
              [](const init::Extents& s, const init::Source& from) { return init::xavier_uniform(s, from); });
  if (o_.bias) v.parameter("in_proj_bias", in_proj_bias, {3 * width_}, constant_init(0));
  v("out_proj", out_proj_);
}

// One projection of what is one tensor, three of what are several; then heads side by side.
lc::Tensor MultiheadAttention::attend(Operand query, const lc::Tensor& key, const lc::Tensor& value,
                                      Random* random) const {
  const OpScope scope("MultiheadAttention", query.at);
  const lc::Tensor* const in[] = {&query.tensor, &key, &value};
  lc::Tensor heads[3];
  for (int k = 0; k < 3; ++k) {
    const lc::Tensor& x = *in[k];
    if (x.rank() != 3 || !(x.extent(2) == Dim(width_)))
      throw Error("MultiheadAttention", cat(str(x.shape()), " is not [batch, length, ", width_, "]"));
    const lc::Tensor weight = in_proj_weight.slice(0, k * width_, (k + 1) * width_);
    const lc::Tensor y = o_.bias ? linear(x, weight, in_proj_bias.slice(0, k * width_, (k + 1) * width_)) : linear(x, weight);
    heads[k] = y.reshape({x.extent(0), x.extent(1), heads_, width_ / heads_}).permute({0, 2, 1, 3});
  }
  lc::Tensor y;
  if (!random) {
    y = scaled_dot_product_attention(heads[0], heads[1], heads[2], AttentionOptions{.causal = o_.causal});
  } else {
    const double scale = 1 / std::sqrt(static_cast<double>(width_ / heads_));
    lc::Tensor scores = matmul(heads[0], heads[1].transpose(2, 3)) * scale;
    if (o_.causal) {
      const Dim i = Dim::index(2, scores.extent(2)), j = Dim::index(3, scores.extent(3));
      scores = masked_fill(scores, scores.graph().index(scores.shape(), less(i, j), DType::Bool),
                           -std::numeric_limits<double>::infinity());
    }
    y = matmul(random->dropout(softmax(scores, -1), o_.dropout), heads[2]);
  }
  return out_proj_(y.permute({0, 2, 1, 3}).reshape({query->extent(0), query->extent(1), width_}));
}

TransformerEncoderLayer::TransformerEncoderLayer(std::int64_t width, int heads, const EncoderLayerOptions& o)
    : o_(o),
      self_attn_(width, heads, {.dropout = o.dropout, .causal = o.causal}),
      linear1_(width, o.feedforward),
      linear2_(o.feedforward, width),
      norm1_(width, {.eps = o.eps}),
      norm2_(width, {.eps = o.eps}),
      dropout_(o.dropout) {}

void TransformerEncoderLayer::visit(Visitor& v) {
  v("self_attn", self_attn_)("linear1", linear1_)("linear2", linear2_)("norm1", norm1_)("norm2", norm2_);
}

void TransformerEncoder::visit(Visitor& v) {
  for (std::size_t k = 0; k < layers_.size(); ++k) v(cat("layers.", k), layers_[k]);
}

}  // namespace lc::nn
