#include "lightcone/models/diffusion/unet_config.h"

#include <algorithm>

#include "lightcone/io/printable.h"
#include "lightcone/models/blocks/activation.h"
#include "lightcone/models/diffusion/layers.h"
#include "lightcone/runtime/names.h"

namespace lc::diffusion {
namespace {

// The value of each level: a list, or one value for all.
std::vector<std::int64_t> per_level(const ConfigFile& c, std::string_view key, std::size_t levels,
                                    std::int64_t otherwise) {
  std::vector<std::int64_t> all = c.sizes(key);
  if (all.empty()) all = {otherwise};
  if (all.size() == 1) all.assign(levels, all[0]);
  if (all.size() != levels)
    c.fail(key, " has ", all.size(), " numbers, and block_out_channels has ", levels, " levels");
  return all;
}

// Whether each block of a direction attends. Throws Error for other kinds of blocks.
std::vector<bool> attending(const ConfigFile& c, std::string_view key, std::string_view with, std::string_view without,
                            std::vector<std::string> otherwise, std::size_t levels) {
  std::vector<std::string> kinds = c.texts(key);
  if (kinds.empty()) kinds = std::move(otherwise);
  if (kinds.size() != levels)
    c.fail(key, " has ", kinds.size(), " blocks, and block_out_channels has ", levels, " levels");
  std::vector<bool> attends;
  for (const std::string& kind : kinds) {
    if (kind != with && kind != without)
      c.fail(key, " has ", in_quotes(kind), "; supported are ", with, " and ", without);
    attends.push_back(kind == with);
  }
  return attends;
}

std::string known_activation(const ConfigFile& c, std::string_view key, std::string_view otherwise) {
  std::string name = c.text(key, otherwise);
  const auto& known = activation_names();
  if (!name.empty() && std::ranges::find(known, name) == known.end())
    c.fail(key, " is ", in_quotes(name), ", which is no known activation; the nearest is ", nearest_name(name, known));
  return name;
}

// The number of heads of each level. diffusers' attention_head_dim is that number, whatever it is called. Files of the
// dialect that has latent_size, a key that diffusers does not write, mean the width of a head by it: of each level's
// heads, or, by one number for all, of the first level's, of which the others have as many.
std::vector<std::int64_t> heads_of(const ConfigFile& c, const std::vector<std::int64_t>& channels) {
  const std::size_t levels = channels.size();
  if (c.has("num_attention_heads")) {
    c.neutral({"attention_head_dim"});
    return per_level(c, "num_attention_heads", levels, 8);
  }
  std::vector<std::int64_t> heads = per_level(c, "attention_head_dim", levels, 8);
  if (!c.has("latent_size")) return heads;
  const bool one_number = c.sizes("attention_head_dim").size() == 1;
  for (std::size_t k = 0; k < levels; ++k) {
    const std::int64_t width = channels[one_number ? 0 : k];
    if (width % heads[k] != 0)
      c.fail("heads of ", heads[k], " numbers (attention_head_dim) do not divide ", width, " channels");
    heads[k] = width / heads[k];
  }
  return heads;
}

void read_levels(const ConfigFile& c, bool controls, std::size_t weights, UNetConfig& u) {
  std::vector<std::int64_t> channels = c.sizes("block_out_channels");
  if (channels.empty()) channels = {320, 640, 1280, 1280};
  const std::size_t n = channels.size();
  if (n > kMostLevels) c.fail("block_out_channels has ", n, " levels, and at most ", kMostLevels, " are supported");
  std::vector<std::string> down(n, "CrossAttnDownBlock2D"), up(n, "CrossAttnUpBlock2D");
  down.back() = "DownBlock2D", up.front() = "UpBlock2D";
  const auto attends_down = attending(c, "down_block_types", "CrossAttnDownBlock2D", "DownBlock2D", std::move(down), n);
  const auto attends_up = controls
                              ? std::vector<bool>(n)
                              : attending(c, "up_block_types", "CrossAttnUpBlock2D", "UpBlock2D", std::move(up), n);
  const auto layers = per_level(c, "layers_per_block", n, 2),
             depth = per_level(c, "transformer_layers_per_block", n, 1),
             context = per_level(c, "cross_attention_dim", n, 1280), heads = heads_of(c, channels);
  c.lacks({"reverse_transformer_layers_per_block"});
  const auto most = static_cast<std::int64_t>(weights);
  std::int64_t blocks = 0;
  for (std::size_t k = 0; k < n; ++k) {
    if (layers[k] > most || depth[k] > most) blocks = most + 1;
    else blocks += layers[k] * depth[k];
    if (blocks > most) c.fail("the levels have ", blocks, " or more layers, and the file has ", weights, " weights");
    u.levels.push_back(
        {channels[k], layers[k], heads[k], depth[k], context[k], attends_down[k], attends_up[n - 1 - k]});
  }
}

void read_time(const ConfigFile& c, bool controls, UNetConfig& u) {
  const std::int64_t first = u.levels.front().channels;
  u.cosines_first = c.flag("flip_sin_to_cos", true);
  u.frequency_shift = c.number("freq_shift", 0);
  u.time_width = 4 * first;
  if (controls) return;
  c.only("time_embedding_type", "positional");
  u.time_width = c.size("time_embedding_dim", u.time_width);
  u.time_condition = c.has("time_cond_proj_dim") ? c.size("time_cond_proj_dim") : 0;
  u.time_last = known_activation(c, "timestep_post_act", "");
  u.time_activation = known_activation(c, "time_embedding_act_fn", "");
}

void read_conditions(const ConfigFile& c, UNetConfig& u) {
  const std::string classes = c.text("class_embed_type"), added = c.text("addition_embed_type");
  const bool projects = classes == "projection" || classes == "simple_projection";
  if (classes == "timestep") u.classes = ClassEmbedding::Timestep;
  else if (classes == "identity") u.classes = ClassEmbedding::Identity;
  else if (projects) {
    u.classes = classes == "projection" ? ClassEmbedding::Projection : ClassEmbedding::SimpleProjection;
    u.class_width = c.size("projection_class_embeddings_input_dim");
  } else if (!classes.empty()) {
    c.fail("class_embed_type is ", in_quotes(classes),
           "; supported are timestep, identity, projection and simple_projection");
  } else if (c.has("num_class_embeds")) {
    u.classes = ClassEmbedding::Table, u.class_count = c.size("num_class_embeds");
  }
  c.neutral({"num_class_embeds"});
  u.classes_beside = c.flag("class_embeddings_concat", false) && u.classes != ClassEmbedding::None;
  if (added == "text_time") {
    u.added_time_width = c.size("addition_time_embed_dim");
    u.added_width = c.size("projection_class_embeddings_input_dim");
  } else if (!added.empty()) {
    c.fail("addition_embed_type is ", in_quotes(added), ", and only text_time (SDXL) is supported");
  }
  // these are read with the kinds above, and say nothing without them
  c.neutral({"addition_embed_type_num_heads", "projection_class_embeddings_input_dim", "addition_time_embed_dim"});
  const std::string text = c.text("encoder_hid_dim_type", c.has("encoder_hid_dim") ? "text_proj" : "");
  if (text == "text_proj") u.text_width = c.size("encoder_hid_dim");
  else if (!text.empty()) c.fail("encoder_hid_dim_type is ", in_quotes(text), ", and only text_proj is supported");
}

void read_hint(const ConfigFile& c, UNetConfig& u) {
  u.hint_channels = c.size("conditioning_channels", 3);
  u.hint_widths = c.sizes("conditioning_embedding_out_channels");
  if (u.hint_widths.empty()) u.hint_widths = {16, 32, 96, 256};
  if (u.hint_widths.size() > kMostLevels)
    c.fail("conditioning_embedding_out_channels has ", u.hint_widths.size(), " widths, and at most ", kMostLevels,
           " are supported");
  const std::string order = c.text("controlnet_conditioning_channel_order", "rgb");
  if (order != "rgb" && order != "bgr")
    c.fail("controlnet_conditioning_channel_order is ", in_quotes(order), ", and neither rgb nor bgr");
  u.hint_bgr = order == "bgr";
  u.pools = c.flag("global_pool_conditions", false);
  c.neutral({"cond_size"});
}

void read_mid(const ConfigFile& c, UNetConfig& u) {
  const std::string mid = c.text("mid_block_type", "UNetMidBlock2DCrossAttn");
  if (mid == "UNetMidBlock2DCrossAttn") u.mid = MidBlock::CrossAttention;
  else if (mid == "UNetMidBlock2D") u.mid = MidBlock::Resnets;
  else c.fail("mid_block_type is ", in_quotes(mid), "; supported are UNetMidBlock2DCrossAttn and UNetMidBlock2D");
  u.mid_scale = c.number("mid_block_scale_factor", 1);
}

}  // namespace

UNetConfig UNetConfig::from(const ConfigFile& c, bool controls, std::size_t weights) {
  UNetConfig u;
  u.in_channels = c.size("in_channels", 4), u.out_channels = c.size("out_channels", 4);
  read_levels(c, controls, weights, u);
  read_mid(c, u);
  read_time(c, controls, u);
  read_conditions(c, u);
  u.groups = c.size("norm_num_groups", 32), u.eps = c.number("norm_eps", 1e-5);
  u.activation = known_activation(c, "act_fn", "silu");
  u.linear_projection = c.flag("use_linear_projection", false);
  u.only_cross_attention = c.flag("only_cross_attention", false);
  const std::string scaled = c.text("resnet_time_scale_shift", "default");
  if (scaled != "default" && scaled != "scale_shift")
    c.fail("resnet_time_scale_shift is ", in_quotes(scaled), ", and neither default nor scale_shift");
  u.scale_shift = scaled == "scale_shift";
  const std::int64_t padding = c.id("downsample_padding", 1);
  if (padding > 1) c.fail("downsample_padding is ", padding, ", and neither 0 nor 1");
  u.downsample_padding = static_cast<int>(padding);
  if (controls) {
    read_hint(c, u);
  } else {
    u.center_input = c.flag("center_input_sample", false);
    const std::int64_t in = c.size("conv_in_kernel", 3), out = c.size("conv_out_kernel", 3);
    if (in > 63 || out > 63) c.fail("a kernel of ", std::max(in, out), " pixels, and at most 63 are supported");
    u.kernel_in = static_cast<int>(in), u.kernel_out = static_cast<int>(out);
    c.only("attention_type", "default");
    c.lacks({"cross_attention_norm"});
  }
  if (!(u.eps > 0)) c.fail("norm_eps is ", u.eps, ", and not above 0");
  if (!(u.mid_scale > 0)) c.fail("mid_block_scale_factor is ", u.mid_scale, ", and not above 0");
  c.lacks({"dual_cross_attention"});
  // sizes that a training had, dropout, precision, and what blocks of other kinds read
  c.neutral({"sample_size", "latent_size", "text_seq_len", "upcast_attention", "resnet_skip_time_act",
             "resnet_out_scale_factor", "mid_block_only_cross_attention"});
  c.require_all_known(controls ? "ControlNetModel" : "UNet2DConditionModel");
  return u;
}

}  // namespace lc::diffusion
