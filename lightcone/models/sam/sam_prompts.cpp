#include "lightcone/models/sam/sam_prompts.h"

#include <numbers>

#include "lightcone/models/blocks/activation.h"
#include "lightcone/models/sam/sam_vision.h"
#include "lightcone/ops/creation.h"
#include "lightcone/ops/ops.h"
#include "lightcone/ops/shape.h"

namespace lc {

Tensor sam_positions(const Tensor& places, const Tensor& frequencies) {
  const Tensor angles = matmul(places * 2.0 - 1.0, frequencies) * (2 * std::numbers::pi);
  return cat({sin(angles), cos(angles)}, -1);
}

Tensor sam_grid_positions(Graph& g, std::int64_t n, const Tensor& frequencies) {
  const Tensor line = (to(arange(g, n), DType::F32) + 0.5) / static_cast<double>(n);
  const Tensor x = line.reshape({1, n, 1}).expand({n, n, 1}), y = line.reshape({n, 1, 1}).expand({n, n, 1});
  return sam_positions(cat({x, y}, 2).reshape({n * n, 2}), frequencies);
}

SamPrompts::SamPrompts(const SamPromptConfig& c)
    : c_(c),
      conv1_(1, c.mask_channels / 4, 2, {.stride = {2}}),
      conv2_(c.mask_channels / 4, c.mask_channels, 2, {.stride = {2}}),
      conv3_(c.mask_channels, c.width, 1),
      norm1_(c.mask_channels / 4, {.eps = c.eps}),
      norm2_(c.mask_channels, {.eps = c.eps}),
      no_mask_(1, c.width),
      no_point_(1, c.width),
      kinds_(static_cast<std::size_t>(c.kinds), nn::Embedding<>(1, c.width)) {}

void SamPrompts::visit(nn::Visitor& v) {
  v("mask_embed.conv1", conv1_)("mask_embed.layer_norm1", norm1_)("mask_embed.conv2", conv2_);
  v("mask_embed.layer_norm2", norm2_)("mask_embed.conv3", conv3_);
  v("no_mask_embed", no_mask_)("point_embed", kinds_)("not_a_point_embed", no_point_);
}

Tensor SamPrompts::points(const Tensor& given, const Tensor& labels, bool alone, const Tensor& frequencies) const {
  Tensor at = (given + 0.5) / static_cast<double>(c_.picture), kind = labels;
  if (alone) {
    at = at.pad(2, 0, 1);
    kind = (kind + 1).pad(2, 0, 1) - 1;  // the label of the point more is -1
  }
  kind = kind.unsqueeze(3);
  const Tensor none = Tensor(no_point_.weight).reshape({1, 1, 1, c_.width});
  Tensor x = where(eq(kind, -1), none, sam_positions(at, frequencies));
  x = where(eq(kind, -10), full_like(x, 0), x);
  for (int k = 0; k < 2; ++k)
    x = where(eq(kind, k), x + Tensor(kinds_[static_cast<std::size_t>(k)].weight).reshape({1, 1, 1, c_.width}), x);
  return x;
}

Tensor SamPrompts::boxes(const Tensor& boxes, const Tensor& frequencies) const {
  const Tensor corners =
      (boxes.reshape({boxes.extent(0), boxes.extent(1), 2, 2}) + 0.5) / static_cast<double>(c_.picture);
  const Tensor kinds = cat({Tensor(kinds_[2].weight), Tensor(kinds_[3].weight)}, 0);
  return sam_positions(corners, frequencies) + kinds;
}

Tensor SamPrompts::masks(const Tensor& masks) const {
  const Tensor once = activate(c_.activation, sam_norm(norm1_, conv1_(masks)));
  return conv3_(activate(c_.activation, sam_norm(norm2_, conv2_(once))));
}

Tensor SamPrompts::no_mask() const { return Tensor(no_mask_.weight).reshape({1, c_.width, 1, 1}); }

}  // namespace lc
