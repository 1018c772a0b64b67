#include "lightcone/models/sam/sam_vision.h"

#include "lightcone/models/blocks/activation.h"
#include "lightcone/models/blocks/patch_embedding.h"
#include "lightcone/ops/creation.h"
#include "lightcone/ops/ops.h"
#include "lightcone/ops/shape.h"

namespace lc {

Tensor SamMlp::operator()(const Tensor& x) const { return second_(activate(activation_, first_(x))); }

Tensor sam_norm(const nn::LayerNorm<>& norm, const Tensor& x) {
  return norm(x.permute({0, 2, 3, 1})).permute({0, 3, 1, 2});
}

SamVisionLayer::SamVisionLayer(const SamVisionConfig& c, bool global)
    : width_(c.width),
      heads_(c.heads),
      side_(global ? c.grid() : c.window),
      global_(global),
      relative_(c.relative_positions),
      norm1_(c.width, {.eps = c.eps}),
      norm2_(c.width, {.eps = c.eps}),
      query_key_value_(c.width, 3 * c.width, {.bias = c.bias}),
      projection_(c.width, c.width),
      mlp_(c.width, c.inner, c.activation) {}

void SamVisionLayer::visit(nn::Visitor& v) {
  v("layer_norm1", norm1_)("attn.qkv", query_key_value_)("attn.proj", projection_);
  if (relative_) {
    const Shape shape{2 * side_ - 1, width_ / heads_};
    v.parameter("attn.rel_pos_h", rows_, shape, nn::constant_init(0));
    v.parameter("attn.rel_pos_w", columns_, shape, nn::constant_init(0));
  }
  v("layer_norm2", norm2_)("mlp", mlp_);
}

Tensor SamVisionLayer::attend(const Tensor& x) const {
  const Dim batch = x.extent(0);
  const std::int64_t n = side_, head = width_ / heads_;
  const Tensor all = query_key_value_(x).reshape({batch, n * n, 3, heads_, head}).permute({2, 0, 3, 1, 4});
  const auto part = [&](int k) { return select(all, 0, k); };  // [batch, heads, n n, head]
  const Tensor query = part(0);
  AttentionOptions attention;
  if (relative_) {
    const Tensor line = arange(x.graph(), n);
    const Tensor distance = (line.unsqueeze(1) - line.unsqueeze(0) + (n - 1)).reshape({n * n});
    // [n, head, n]: of each row (column) the vectors of the others
    const auto vectors = [&](const Tensor& table) {
      return index_select(table, 0, distance).reshape({n, n, head}).permute({0, 2, 1});
    };
    const Tensor map = query.reshape({batch * Dim(heads_), n, n, head});
    const Tensor by_row = matmul(map, vectors(rows_).unsqueeze(0));
    const Tensor by_column = matmul(map.permute({0, 2, 1, 3}), vectors(columns_).unsqueeze(0)).permute({0, 2, 1, 3});
    attention.attn_mask = (by_row.unsqueeze(4) + by_column.unsqueeze(3)).reshape({batch, heads_, n * n, n * n});
  }
  const Tensor y = scaled_dot_product_attention(query, part(1), part(2), attention);
  return projection_(y.permute({0, 2, 1, 3}).reshape({batch, n, n, width_}));
}

// Maps that windows do not divide are filled up with zeros, which are attended to as in training.
Tensor SamVisionLayer::in_windows(const Tensor& x) const {
  const std::int64_t n = number_of(x, 1, "SamVisionLayer"), w = side_, count = (n + w - 1) / w, rest = count * w - n;
  const Dim batch = x.extent(0);
  const Tensor filled = rest > 0 ? x.pad(1, 0, rest).pad(2, 0, rest) : x;
  const Tensor windows = filled.reshape({batch, count, w, count, w, width_})
                             .permute({0, 1, 3, 2, 4, 5})
                             .reshape({batch * Dim(count * count), w, w, width_});
  const Tensor y = attend(windows)
                       .reshape({batch, count, count, w, w, width_})
                       .permute({0, 1, 3, 2, 4, 5})
                       .reshape({batch, count * w, count * w, width_});
  return rest > 0 ? narrow(narrow(y, 1, 0, n), 2, 0, n) : y;
}

Tensor SamVisionLayer::operator()(const Tensor& x) const {
  const Tensor normed = norm1_(x);
  const Tensor y = x + (global_ ? attend(normed) : in_windows(normed));
  return y + mlp_(norm2_(y));
}

SamVision::SamVision(const SamVisionConfig& c)
    : c_(c),
      patches_(c.channels, c.width, c.patch, {.stride = {static_cast<int>(c.patch)}}),
      conv1_(c.width, c.out, 1, {}, false),
      conv2_(c.out, c.out, 3, {.padding = {1}}, false),
      norm1_(c.out, {.eps = 1e-6}),
      norm2_(c.out, {.eps = 1e-6}) {
  for (const bool global : c.global) layers_.emplace_back(c, global);
}

void SamVision::visit(nn::Visitor& v) {
  v("patch_embed.projection", patches_);
  if (c_.absolute_positions)
    v.parameter("pos_embed", positions_, {1, c_.grid(), c_.grid(), c_.width}, nn::constant_init(0));
  v("layers", layers_)("neck.conv1", conv1_)("neck.layer_norm1", norm1_);
  v("neck.conv2", conv2_)("neck.layer_norm2", norm2_);
}

Tensor SamVision::operator()(const Tensor& pictures) const {
  Tensor x = patches_(pictures).permute({0, 2, 3, 1});
  if (c_.absolute_positions) x = x + positions_;
  for (const SamVisionLayer& layer : layers_) x = layer(x);
  return sam_norm(norm2_, conv2_(sam_norm(norm1_, conv1_(x.permute({0, 3, 1, 2})))));
}

}  // namespace lc
