#include "lightcone/models/diffusion/autoencoder_kl.h"

#include <algorithm>

#include "lightcone/io/printable.h"
#include "lightcone/models/blocks/activation.h"
#include "lightcone/ops/ops.h"
#include "lightcone/ops/shape.h"
#include "lightcone/runtime/names.h"

namespace lc::diffusion {
namespace {

void check_blocks(const ConfigFile& c, std::string_view key, std::string_view only, std::size_t levels) {
  const std::vector<std::string> kinds = c.texts(key);
  if (!kinds.empty() && kinds.size() != levels)
    c.fail(key, " has ", kinds.size(), " blocks, and block_out_channels has ", levels, " levels");
  for (const std::string& kind : kinds)
    if (kind != only) c.fail(key, " has ", in_quotes(kind), ", and only ", only, " is supported");
}

ResnetBlock resnet(const AutoencoderConfig& a, std::int64_t in, std::int64_t out) {
  return ResnetBlock({.in = in, .out = out, .groups = a.groups, .eps = a.eps, .activation = a.activation});
}

constexpr WeightName kAutoencoderNames[] = {
    // Files of 2022 call the attention's products so.
    {"encoder.mid_block.attentions.#.query", "encoder.mid_block.attentions.#.to_q"},
    {"encoder.mid_block.attentions.#.key", "encoder.mid_block.attentions.#.to_k"},
    {"encoder.mid_block.attentions.#.value", "encoder.mid_block.attentions.#.to_v"},
    {"encoder.mid_block.attentions.#.proj_attn", "encoder.mid_block.attentions.#.to_out.0"},
    {"decoder.mid_block.attentions.#.query", "decoder.mid_block.attentions.#.to_q"},
    {"decoder.mid_block.attentions.#.key", "decoder.mid_block.attentions.#.to_k"},
    {"decoder.mid_block.attentions.#.value", "decoder.mid_block.attentions.#.to_v"},
    {"decoder.mid_block.attentions.#.proj_attn", "decoder.mid_block.attentions.#.to_out.0"},
    {"encoder", "encoder"},
    {"decoder", "decoder"},
    {"quant_conv", "quant_conv"},
    {"post_quant_conv", "post_quant_conv"},
};

}  // namespace

AutoencoderConfig AutoencoderConfig::from(const ConfigFile& c, std::size_t weights) {
  AutoencoderConfig a;
  a.in_channels = c.size("in_channels", 3), a.out_channels = c.size("out_channels", 3);
  a.latent_channels = c.size("latent_channels", 4);
  a.channels = c.sizes("block_out_channels");
  if (a.channels.empty()) a.channels = {64};
  if (a.channels.size() > kMostLevels)
    c.fail("block_out_channels has ", a.channels.size(), " levels, and at most ", kMostLevels, " are supported");
  a.layers = c.size("layers_per_block", 1);
  if (a.layers > static_cast<std::int64_t>(weights)) c.fail(a.layers, " layers_per_block, and ", weights, " weights");
  a.groups = c.size("norm_num_groups", 32);
  a.eps = c.number("norm_eps", 1e-6);
  a.activation = c.text("act_fn", "silu");
  const auto& known = activation_names();
  if (std::ranges::find(known, a.activation) == known.end())
    c.fail("act_fn is ", in_quotes(a.activation), ", which is no known activation; the nearest is ",
           nearest_name(a.activation, known));
  a.quant = c.flag("use_quant_conv", true), a.post_quant = c.flag("use_post_quant_conv", true);
  a.attention = c.flag("mid_block_add_attention", true);
  a.scaling_factor = c.number("scaling_factor", 0.18215), a.shift_factor = c.number("shift_factor", 0);
  check_blocks(c, "down_block_types", "DownEncoderBlock2D", a.channels.size());
  check_blocks(c, "up_block_types", "UpDecoderBlock2D", a.channels.size());
  if (a.scaling_factor == 0) c.fail("scaling_factor is 0");
  if (!(a.eps > 0)) c.fail("norm_eps is ", a.eps, ", and not above 0");
  c.lacks({"latents_mean", "latents_std"});
  // sizes that a training had, and precision
  c.neutral({"sample_size", "image_size", "latent_size", "force_upcast"});
  c.require_all_known("AutoencoderKL");
  return a;
}

AutoencoderMiddle::PixelAttention::PixelAttention(const AutoencoderConfig& a)
    : group_norm(a.groups, a.channels.back(), a.eps), attention({.width = a.channels.back(), .bias = true}) {}
void AutoencoderMiddle::PixelAttention::visit(nn::Visitor& v) {
  v("group_norm", group_norm);
  attention.visit(v);
}
Tensor AutoencoderMiddle::PixelAttention::operator()(const Tensor& x) const {
  return x + tokens_as_pixels(attention(pixels_as_tokens(group_norm(x))), x);
}

AutoencoderMiddle::AutoencoderMiddle(const AutoencoderConfig& a) {
  for (int n = 0; n < 2; ++n) resnets_.push_back(resnet(a, a.channels.back(), a.channels.back()));
  if (a.attention) attention_.emplace(a);
}
void AutoencoderMiddle::visit(nn::Visitor& v) {
  v("resnets", resnets_);
  if (attention_) v("attentions.0", *attention_);
}
Tensor AutoencoderMiddle::operator()(const Tensor& x) const {
  const Tensor h = resnets_[0](x);
  return resnets_[1](attention_ ? (*attention_)(h) : h);
}

AutoencoderEncoder::AutoencoderEncoder(const AutoencoderConfig& a)
    : a_(a),
      conv_in_(a.in_channels, a.channels.front(), 3, {.padding = 1}),
      conv_out_(a.channels.back(), 2 * a.latent_channels, 3, {.padding = 1}),
      quant_conv_(2 * a.latent_channels, 2 * a.latent_channels, 1),
      middle_(a),
      norm_(a.groups, a.channels.back(), a.eps) {
  std::int64_t in = a.channels.front();
  for (std::size_t k = 0; k < a.channels.size(); ++k) {
    Level& level = levels_.emplace_back();
    for (std::int64_t n = 0; n < a.layers; ++n) {
      level.resnets.push_back(resnet(a, in, a.channels[k]));
      in = a.channels[k];
    }
    if (k + 1 < a.channels.size()) level.down.emplace(in, 0);
  }
}
void AutoencoderEncoder::Level::visit(nn::Visitor& v) {
  v("resnets", resnets);
  if (down) v("downsamplers.0", *down);
}
void AutoencoderEncoder::visit(nn::Visitor& v) {
  v("encoder.conv_in", conv_in_)("encoder.down_blocks", levels_)("encoder.mid_block", middle_);
  v("encoder.conv_norm_out", norm_)("encoder.conv_out", conv_out_);
  if (a_.quant) v("quant_conv", quant_conv_);
}
Tensor AutoencoderEncoder::operator()(const Tensor& image) const {
  Tensor x = conv_in_(image);
  for (const Level& level : levels_) {
    for (const ResnetBlock& block : level.resnets) x = block(x);
    if (level.down) x = (*level.down)(x);
  }
  x = conv_out_(silu(norm_(middle_(x))));
  return a_.quant ? quant_conv_(x) : x;
}

AutoencoderDecoder::AutoencoderDecoder(const AutoencoderConfig& a)
    : a_(a),
      post_quant_conv_(a.latent_channels, a.latent_channels, 1),
      conv_in_(a.latent_channels, a.channels.back(), 3, {.padding = 1}),
      conv_out_(a.channels.front(), a.out_channels, 3, {.padding = 1}),
      middle_(a),
      norm_(a.groups, a.channels.front(), a.eps) {
  std::int64_t in = a.channels.back();
  for (std::size_t k = a.channels.size(); k-- > 0;) {
    Level& level = levels_.emplace_back();
    for (std::int64_t n = 0; n <= a.layers; ++n) {
      level.resnets.push_back(resnet(a, in, a.channels[k]));
      in = a.channels[k];
    }
    if (k > 0) level.up.emplace(in);
  }
}
void AutoencoderDecoder::Level::visit(nn::Visitor& v) {
  v("resnets", resnets);
  if (up) v("upsamplers.0", *up);
}
void AutoencoderDecoder::visit(nn::Visitor& v) {
  if (a_.post_quant) v("post_quant_conv", post_quant_conv_);
  v("decoder.conv_in", conv_in_)("decoder.mid_block", middle_)("decoder.up_blocks", levels_);
  v("decoder.conv_norm_out", norm_)("decoder.conv_out", conv_out_);
}
Tensor AutoencoderDecoder::operator()(const Tensor& latent) const {
  Tensor x = middle_(conv_in_(a_.post_quant ? post_quant_conv_(latent) : latent));
  for (const Level& level : levels_) {
    for (const ResnetBlock& block : level.resnets) x = block(x);
    if (level.up) x = (*level.up)(x);
  }
  return conv_out_(silu(norm_(x)));
}

AutoencoderShapes autoencoder_shapes(LoadedModel& m, const LoadModelOptions& o, const AutoencoderSizes& sizes,
                                     std::int64_t in_channels, std::int64_t latent_channels, std::int64_t scale) {
  const auto extent = [&](const char* name, std::int64_t size, std::int64_t least, std::int64_t most) {
    return extent_of_input(m, name, size, least, most);
  };
  const Dim batch = extent("batch", sizes.batch, 1, o.batch);
  return {.image = {batch, in_channels, extent("image_height", sizes.height * scale, scale, kLargestLatent * scale),
                    extent("image_width", sizes.width * scale, scale, kLargestLatent * scale)},
          .latent = {batch, latent_channels, extent("height", sizes.height, 1, kLargestLatent),
                     extent("width", sizes.width, 1, kLargestLatent)}};
}

LoadedModel load_autoencoder_kl(const Weights& w, const ConfigFile& config, const LoadModelOptions& o,
                                const AutoencoderSizes& sizes) {
  const AutoencoderConfig a = AutoencoderConfig::from(config, w.tensors().size());
  LoadedModel m("AutoencoderKL", WeightTable(w, {}, kAutoencoderNames));
  m.architecture = m.type;
  // A file with neither half is refused by the first weight of the decoder that it lacks.
  const bool encodes = m.weights.has("encoder.conv_in.weight"), decodes = m.weights.has("decoder.conv_in.weight");
  const AutoencoderShapes shapes = autoencoder_shapes(m, o, sizes, a.in_channels, a.latent_channels, a.scale());
  if (encodes) {
    const AutoencoderEncoder& encoder = m.add(AutoencoderEncoder(a));
    const Tensor image = m.inputs["image"] = m.graph().input("image", shapes.image);
    const Tensor both = encoder(image), mean = narrow(both, 1, 0, a.latent_channels);
    m.give("mean", mean);
    m.give("logvar", clamp(narrow(both, 1, a.latent_channels, a.latent_channels), -30.0, 20.0));
    m.give("encoded", (mean - a.shift_factor) * a.scaling_factor);
  }
  if (decodes || !encodes) {
    const AutoencoderDecoder& decoder = m.add(AutoencoderDecoder(a));
    const Tensor latent = m.inputs["latent"] = m.graph().input("latent", shapes.latent);
    m.give("decoded", decoder(latent / a.scaling_factor + a.shift_factor));
  }
  m.weights.require_all_used("an AutoencoderKL");
  m.retrieve(o);
  return m;
}
LoadedModel load_autoencoder_kl(const Weights& w, const ConfigFile& config, const LoadModelOptions& o) {
  return load_autoencoder_kl(w, config, o, {.height = o.height, .width = o.width});
}

}  // namespace lc::diffusion
