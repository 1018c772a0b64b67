#include "lightcone/models/vision_transformer/clip_towers.h"

#include "lightcone/models/blocks/activation.h"
#include "lightcone/ops/creation.h"
#include "lightcone/ops/indexing/indexing.h"
#include "lightcone/ops/shape.h"

namespace lc {

ClipTowerConfig read_clip_tower(const ConfigFile& c, ClipKind kind, bool texts, const LoadModelOptions& o) {
  const bool clip = kind == ClipKind::Clip;
  ClipTowerConfig t;
  t.kind = kind;
  const std::int64_t width = clip && texts ? 512 : 768;
  static_cast<TowerConfig&>(t) = read_tower(c, {.block = {.width = width,
                                                          .heads = clip && texts ? 8 : 12,
                                                          .inner = clip && texts ? 2048 : 3072,
                                                          .eps = clip ? 1e-5 : 1e-6,
                                                          .activation = clip ? "quick_gelu" : "gelu_pytorch_tanh"},
                                                .patches = {.patch_height = clip ? 32 : 16, .height = 224}});
  if (texts) {
    t.vocab = c.size("vocab_size", clip ? 49408 : 32000);
    t.positions = c.size("max_position_embeddings", clip ? 77 : 64);
    if (clip) t.end = c.id("eos_token_id", 49407), t.projection = c.size("projection_dim", 512);
    else t.projection = c.size("projection_size", t.width());
  } else {
    t.patches.class_tokens = clip, t.patches.flat = true, t.patches.bias = !clip;
    read_patches(c, t, o);
    if (clip) t.projection = c.size("projection_dim", 512);
    else t.pooler = c.flag("vision_use_head", true);
  }
  c.neutral({"initializer_factor", "model_type", "eos_token_id", "projection_dim"});
  c.require_all_known(clip ? "CLIP" : "SigLIP");
  return t;
}

AttentionPool::AttentionPool(const TransformerBlockOptions& o)
    : o_(o),
      output_(o.width, o.width),
      norm_(o.width, {.eps = o.eps}),
      up_(o.width, o.inner),
      down_(o.inner, o.width) {}
void AttentionPool::visit(nn::Visitor& v) {
  const nn::Init zero = nn::constant_init(0);
  v.parameter("probe", probe_, {1, 1, o_.width}, zero);
  v.parameter("in_weight", in_weight_, {3 * o_.width, o_.width}, zero);
  v.parameter("in_bias", in_bias_, {3 * o_.width}, zero);
  v("output", output_)("norm", norm_)("up", up_)("down", down_);
}
Tensor AttentionPool::operator()(const Tensor& x) const {
  const OpScope scope("AttentionPool", nn::At::current());
  const std::int64_t head = o_.width / o_.heads;
  const auto projected = [&](const Tensor& y, int part) {
    const Tensor z =
        linear(y, narrow(in_weight_, 0, part * o_.width, o_.width), narrow(in_bias_, 0, part * o_.width, o_.width));
    return z.reshape({y.extent(0), y.extent(1), o_.heads, head}).permute({0, 2, 1, 3});
  };
  const Tensor query = projected(probe_, 0).expand({x.extent(0), o_.heads, 1, head});
  const Tensor attended = scaled_dot_product_attention(query, projected(x, 1), projected(x, 2), AttentionOptions{});
  const Tensor y = output_(attended.permute({0, 2, 1, 3}).reshape({x.extent(0), o_.width}));
  return y + down_(activate(o_.activation, up_(norm_(y))));
}

PictureTower::PictureTower(const ClipTowerConfig& c)
    : c_(c),
      patches_(c.patches),
      before_(c.width(), {.eps = c.block.eps}),
      after_(c.width(), {.eps = c.block.eps}),
      layers_(static_cast<std::size_t>(c.layers), TransformerBlock(c.block)) {
  if (c.kind == ClipKind::Siglip && c.pooler) pool_.emplace(c.block);
}
void PictureTower::visit(nn::Visitor& v) {
  v("patches", patches_);
  if (c_.kind == ClipKind::Clip) v("norm_before", before_);
  v("layers", layers_)("norm", after_);
  if (pool_) v("pool", *pool_);
}
std::vector<Tensor> PictureTower::states(const Tensor& pictures) const {
  const Tensor x = patches_(pictures);
  std::vector<Tensor> all{c_.kind == ClipKind::Clip ? before_(x) : x};
  for (const TransformerBlock& layer : layers_) all.push_back(layer(all.back()));
  return all;
}
TowerOutput PictureTower::operator()(const Tensor& pictures) const {
  Tensor x = states(pictures).back();
  if (c_.kind == ClipKind::Clip) return {x, after_(select(x, 1, 0))};
  x = after_(x);
  return {x, pool_ ? (*pool_)(x) : Tensor()};
}

TextTower::TextTower(const ClipTowerConfig& c)
    : c_(c),
      tokens_(c.vocab, c.width()),
      positions_(c.positions, c.width()),
      layers_(static_cast<std::size_t>(c.layers), TransformerBlock(c.block)),
      norm_(c.width(), {.eps = c.block.eps}),
      head_(c.width(), c.projection) {}
void TextTower::visit(nn::Visitor& v) {
  v("tokens", tokens_)("positions", positions_)("layers", layers_)("norm", norm_);
  if (c_.kind == ClipKind::Siglip) v("head", head_);
}

// The token that stands for the text: that of CLIP's end, the last one of SigLIP.
Tensor TextTower::last_token(const Tensor& hidden, const Tensor& ids) const {
  if (c_.kind == ClipKind::Siglip) return select(hidden, 1, hidden.extent(1) - 1);
  const Tensor at = c_.end == 2 ? argmax(ids, 1) : argmax(to(eq(ids, c_.end), DType::I64), 1);
  const Shape row{hidden.extent(0), 1, hidden.extent(2)};
  return gather(hidden, 1, at.reshape({hidden.extent(0), 1, 1}).expand(row)).squeeze(1);
}

TowerOutput TextTower::operator()(const Tensor& ids, const Tensor& mask) const {
  const AttentionOptions seen{.attn_mask = ne(mask, 0).unsqueeze(1).unsqueeze(1),
                              .is_causal = c_.kind == ClipKind::Clip};
  Tensor x = tokens_(ids) + positions_(arange(ids.graph(), ids.extent(1)));
  Tensor before;
  for (const TransformerBlock& layer : layers_) {
    before = x;
    x = layer(x, seen);
  }
  x = norm_(x);
  const Tensor last = last_token(x, ids);
  return {x, c_.kind == ClipKind::Siglip ? head_(last) : last, before};
}

}  // namespace lc
