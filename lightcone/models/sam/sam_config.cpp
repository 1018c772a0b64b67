#include "lightcone/models/sam/sam_config.h"

#include <algorithm>

#include "lightcone/models/blocks/config.h"

namespace lc {
namespace {

void require_divided(const ConfigFile& file, std::int64_t width, std::int64_t heads) {
  if (width < heads || width % heads != 0) file.fail(heads, " attention heads do not divide a width of ", width);
}

// Pictures of SAM and their patches are squares.
std::int64_t side(const ConfigFile& file, std::string_view key, std::int64_t otherwise) {
  const std::vector<std::int64_t> all = file.sizes(key);
  if (all.empty()) return otherwise;
  if (constexpr std::int64_t kMost = 16'384; all.size() > 2 || all.front() != all.back() || all.front() > kMost)
    file.fail(key, " is no side of a square of at most ", kMost);
  return all.front();
}

SamPromptConfig read_prompts(const ConfigFile& file) {
  SamPromptConfig c;
  c.width = file.size("hidden_size", 256), c.mask_channels = file.size("mask_input_channels", 16);
  c.picture = side(file, "image_size", 1024), c.patch = side(file, "patch_size", 16);
  c.kinds = file.size("num_point_embeddings", 4), c.activation = known_activation(file, "hidden_act", "gelu");
  c.eps = file.number("layer_norm_eps", 1e-6);
  if (c.kinds != 4) file.fail("there are ", c.kinds, " kinds of points, and 4 are known: out, in, and the corners");
  if (c.mask_channels % 4 != 0) file.fail("mask_input_channels is ", c.mask_channels, ", which 4 does not divide");
  file.neutral({"image_embedding_size"});
  file.require_all_known("SAM's encoder of prompts");
  return c;
}

SamDecoderConfig read_decoder(const ConfigFile& file, const Weights& w) {
  SamDecoderConfig c;
  c.width = file.size("hidden_size", 256), c.inner = file.size("mlp_dim", 2048);
  c.layers = file.size("num_hidden_layers", 2), c.heads = file.size("num_attention_heads", 8);
  c.downsampling = file.size("attention_downsample_rate", 2), c.masks = file.size("num_multimask_outputs", 3);
  c.score_depth = file.size("iou_head_depth", 3), c.score_width = file.size("iou_head_hidden_dim", 256);
  c.activation = known_activation(file, "hidden_act", "relu"), c.eps = file.number("layer_norm_eps", 1e-6);
  const auto most = std::ssize(w.tensors());
  if (c.layers > most || c.masks > most || c.score_depth > most || c.score_depth < 2)
    file.fail("num_hidden_layers, num_multimask_outputs or iou_head_depth is out of range");
  require_divided(file, c.width, c.heads);
  require_divided(file, c.width / c.downsampling, c.heads);
  if (c.width % 8 != 0) file.fail("hidden_size is ", c.width, ", which 8 does not divide");
  file.neutral({"scale_factor", "mlp_ratio"});
  file.require_all_known("SAM's decoder of masks");
  return c;
}

}  // namespace

SamVisionConfig read_sam_vision(const ConfigFile& file, const Weights& w) {
  SamVisionConfig c;
  c.width = file.size("hidden_size", 768), c.layers = file.size("num_hidden_layers", 12);
  c.heads = file.size("num_attention_heads", 12), c.out = file.size("output_channels", 256);
  c.channels = file.size("num_channels", 3), c.picture = side(file, "image_size", 1024);
  c.patch = side(file, "patch_size", 16), c.window = file.id("window_size", 14);
  c.features = file.size("num_pos_feats", 128), c.bias = file.flag("qkv_bias", true);
  c.absolute_positions = file.flag("use_abs_pos", true), c.relative_positions = file.flag("use_rel_pos", true);
  c.activation = known_activation(file, "hidden_act", "gelu"), c.eps = file.number("layer_norm_eps", 1e-6);
  const double ratio = file.number("mlp_ratio", 4);
  if (constexpr double kMost = 1000; !(ratio > 0 && ratio <= kMost)) file.fail("mlp_ratio is ", ratio);
  c.inner =
      file.size("mlp_dim", std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(c.width) * ratio)));
  if (c.layers > std::ssize(w.tensors())) file.fail(c.layers, " layers, and ", w.tensors().size(), " weights");
  require_divided(file, c.width, c.heads);
  if (c.grid() < 1) file.fail("a picture of ", c.picture, " has no patch of ", c.patch);
  std::vector<double> global{2, 5, 8, 11};
  if (file.has("global_attn_indexes")) global = file.numbers("global_attn_indexes");
  for (std::int64_t k = 0; k < c.layers; ++k)
    c.global.push_back(c.window == 0 || std::ranges::count(global, static_cast<double>(k)) > 0);
  file.neutral({"projection_dim", "num_pos_feats", "scale"});
  file.require_all_known("SAM's encoder of pictures");
  return c;
}

SamConfig read_sam(const ConfigFile& file, const Weights& w) {
  SamConfig c;
  c.vision = read_sam_vision(file.section("vision_config"), w);
  c.prompts = read_prompts(file.section("prompt_encoder_config"));
  c.decoder = read_decoder(file.section("mask_decoder_config"), w);
  if (c.vision.out != c.decoder.width || c.prompts.width != c.decoder.width || 2 * c.vision.features != c.decoder.width)
    file.fail("its parts have different widths: ", c.vision.out, ", ", c.prompts.width, ", ", c.decoder.width,
              " and 2 x ", c.vision.features);
  if (c.vision.grid() != c.prompts.grid())
    file.fail("pictures have ", c.vision.grid(), " patches a side, and for prompts ", c.prompts.grid());
  file.neutral({"tie_word_embeddings"});
  file.require_all_known("sam");
  return c;
}

}  // namespace lc
