// The hyperparameters of UNets and ControlNets from diffusers' config.json.
#pragma once

#include "lightcone/macros_off.h"

#include <cstdint>
#include <string>
#include <vector>

#include "lightcone/models/files/config_file.h"

namespace lc::diffusion {

constexpr std::int64_t kTimeIds = 6;  // SDXL: sizes before and after, and where it was cut

// What class labels add to the time embedding.
enum class ClassEmbedding : std::uint8_t { None, Table, Timestep, Projection, SimpleProjection, Identity };
enum class MidBlock : std::uint8_t { Resnets, CrossAttention };

// One level of a UNet: what its blocks on the way down and up have in common.
struct UNetLevel {
  std::int64_t channels = 0;
  std::int64_t layers = 2;   // residual blocks on the way down; one more on the way up
  std::int64_t heads = 8;    // number of heads
  std::int64_t depth = 1;    // layers of each spatial transformer
  std::int64_t context = 0;  // width of the tokens of the text
  bool attends_down = false, attends_up = false;
};

// Hyperparameters of a UNet2DConditionModel or a ControlNetModel.
struct UNetConfig {
  std::int64_t in_channels = 4, out_channels = 4;
  std::vector<UNetLevel> levels;
  MidBlock mid = MidBlock::CrossAttention;
  std::int64_t groups = 32;
  double eps = 1e-5, mid_scale = 1;
  std::string activation = "silu";
  bool linear_projection = false, only_cross_attention = false, scale_shift = false, center_input = false;
  int downsample_padding = 1, kernel_in = 3, kernel_out = 3;
  bool cosines_first = true;
  double frequency_shift = 0;
  std::int64_t time_width = 0;       // width of the time embedding
  std::int64_t time_condition = 0;   // width of "timestep_cond"; 0: the model has none
  std::string time_last = {};        // an activation after the time embedding's second product
  std::string time_activation = {};  // an activation on the finished time embedding
  std::int64_t text_width = 0;       // width of the text's tokens before encoder_hid_proj; 0: there is none
  ClassEmbedding classes = ClassEmbedding::None;
  std::int64_t class_count = 0, class_width = 0;
  bool classes_beside = false;        // the class embedding stands beside the time embedding, not on it
  std::int64_t added_time_width = 0;  // SDXL: sinusoids of each of the time_ids; 0: no added embedding
  std::int64_t added_width = 0;       // SDXL: width of "text_embeds" and the sinusoids together
  // A ControlNet's:
  std::int64_t hint_channels = 3;         // that the controlling picture has
  std::vector<std::int64_t> hint_widths;  // channels of the layers that look at it
  bool hint_bgr = false;                  // the picture's channels are reversed
  bool pools = false;                     // residuals are averaged over the picture

  // Widths that the residual blocks see.
  std::int64_t block_time_width() const { return classes_beside ? 2 * time_width : time_width; }
  // The width of "text_embeds"; 0: the model has none.
  std::int64_t pooled() const { return added_width > 0 ? added_width - kTimeIds * added_time_width : 0; }
  // The width of the tokens that a caller gives.
  std::int64_t context() const { return text_width > 0 ? text_width : levels.back().context; }
  // Reads config.json of a UNet2DConditionModel or, with `controls`, a ControlNetModel. `weights` is the number of
  // tensors in the file, more than which no count can be. Throws Error that names a key which is missing, wrong, not
  // supported or not known.
  static UNetConfig from(const ConfigFile& c, bool controls, std::size_t weights);
};

}  // namespace lc::diffusion
#include "lightcone/macros_on.h"
