// The two towers of CLIP and SigLIP as modules.
#pragma once

#include <optional>

#include "lightcone/models/vision_transformer/tower_config.h"

namespace lc {

// What the towers of one kind do.
enum class ClipKind : std::uint8_t { Clip, Siglip };

struct ClipTowerConfig : TowerConfig {
  ClipKind kind = ClipKind::Clip;
  std::int64_t projection = 0;  // width of the vectors after a layer without bias (CLIP), or of the text head (SigLIP);
                                // 0: none
  std::int64_t end = 0;         // CLIP's texts: the id whose token is the text's; 2: the highest id of the text
  bool pooler = true;           // SigLIP's pictures: whether there is a head that attends to the patches
};

// Reads the section of a tower.
ClipTowerConfig read_clip_tower(const ConfigFile& c, ClipKind kind, bool texts, const LoadModelOptions& o);

struct TowerOutput {
  Tensor hidden, pooled;    // [batch, tokens, width], [batch, width]; pooled is undefined without a head
  Tensor penultimate = {};  // texts: the states before the last layer, without a norm
};

// SigLIP's head of pictures: a learnt query attends to the patches ("multihead attention pooling").
class AttentionPool {
 public:
  explicit AttentionPool(const TransformerBlockOptions& o);
  void visit(nn::Visitor& v);
  Tensor operator()(const Tensor& x) const;  // [batch, patches, width] -> [batch, width]

 private:
  TransformerBlockOptions o_;
  Tensor probe_, in_weight_, in_bias_;
  nn::Linear<> output_;
  nn::LayerNorm<> norm_;
  nn::Linear<> up_, down_;
};

// Pictures [batch, channels, height, width]. CLIP's hidden states have no last norm. states() returns the input of the
// first layer and the results of all layers (transformers' hidden_states), without the last norm.
class PictureTower {
 public:
  explicit PictureTower(const ClipTowerConfig& c);
  void visit(nn::Visitor& v);
  TowerOutput operator()(const Tensor& pictures) const;
  std::vector<Tensor> states(const Tensor& pictures) const;
  const ClipTowerConfig& config() const { return c_; }

 private:
  ClipTowerConfig c_;
  PatchEmbedding patches_;
  nn::LayerNorm<> before_, after_;
  std::vector<TransformerBlock> layers_;
  std::optional<AttentionPool> pool_;
};

// Ids and mask i64 [texts, length].
class TextTower {
 public:
  explicit TextTower(const ClipTowerConfig& c);
  void visit(nn::Visitor& v);
  TowerOutput operator()(const Tensor& ids, const Tensor& mask) const;
  const ClipTowerConfig& config() const { return c_; }

 private:
  Tensor last_token(const Tensor& hidden, const Tensor& ids) const;
  ClipTowerConfig c_;
  nn::Embedding<> tokens_, positions_;
  std::vector<TransformerBlock> layers_;
  nn::LayerNorm<> norm_;
  nn::Linear<> head_;
};

}  // namespace lc
