// SAM's decoder of masks: tokens of prompts and the map of a picture attend to each other; tokens become the weights of
// masks, and the map is enlarged four times.
//
// Parameters: iou_token, mask_tokens, transformer.layers.K.{self_attn,cross_attn_token_to_image,mlp,
// cross_attn_image_to_token,layer_norm1..4}, transformer.{final_attn_token_to_image,layer_norm_final_attn},
// upscale_{conv1,layer_norm,conv2}, output_hypernetworks_mlps.K, iou_prediction_head, as files name them.
#pragma once

#include <vector>

#include "lightcone/models/sam/sam_config.h"
#include "lightcone/models/sam/sam_vision.h"

namespace lc {

// Attention at a smaller width. Parameters: q_proj, k_proj, v_proj, out_proj.
class SamAttention {
 public:
  SamAttention(const SamDecoderConfig& c, std::int64_t downsampling);
  void visit(nn::Visitor& v) { v("q_proj", query_)("k_proj", key_)("v_proj", value_)("out_proj", out_); }
  // [batch, a, width], [batch, b, width] twice -> [batch, a, width]
  Tensor operator()(const Tensor& query, const Tensor& key, const Tensor& value) const;

 private:
  std::int64_t heads_, inner_;
  nn::Linear<> query_, key_, value_, out_;
};

// A layer in which tokens [batch, t, width] and places of the map [batch, p, width] attend to each other.
class SamTwoWayLayer {
 public:
  SamTwoWayLayer(const SamDecoderConfig& c, bool first);
  void visit(nn::Visitor& v);
  struct Sides {
    Tensor tokens, places;
  };
  // `at`: what is added to queries and keys, the tokens as they began and the positions of the places.
  Sides operator()(const Sides& x, const Sides& at) const;

 private:
  bool first_;
  SamAttention self_, to_places_, to_tokens_;
  SamMlp mlp_;
  std::vector<nn::LayerNorm<>> norms_;
};

// Linear layers with relu between them. Parameters: proj_in, layers.K, proj_out.
class SamFeedForward {
 public:
  SamFeedForward(std::int64_t in, std::int64_t inner, std::int64_t out, std::int64_t depth);
  void visit(nn::Visitor& v) { v("proj_in", in_)("layers", layers_)("proj_out", out_); }
  Tensor operator()(const Tensor& x) const;

 private:
  nn::Linear<> in_, out_;
  std::vector<nn::Linear<>> layers_;
};

class SamDecoder {
 public:
  explicit SamDecoder(const SamDecoderConfig& c);
  void visit(nn::Visitor& v);
  struct Result {
    Tensor masks, scores;  // [batch, 1 + masks, 4 n, 4 n] and [batch, 1 + masks]; the first is the only one
  };
  // map [batch, width, n, n] and its positions [n n, width]; prompts [batch, tokens, width], or undefined.
  Result operator()(const Tensor& map, const Tensor& positions, const Tensor& prompts) const;

 private:
  SamDecoderConfig c_;
  nn::Embedding<> score_token_, mask_tokens_;
  std::vector<SamTwoWayLayer> layers_;
  SamAttention last_;
  nn::LayerNorm<> last_norm_, upscale_norm_;
  nn::ConvTranspose2d<> upscale1_, upscale2_;
  std::vector<SamFeedForward> of_masks_;
  SamFeedForward of_scores_;
};

}  // namespace lc
