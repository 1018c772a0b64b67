#include "lightcone/models/diffusion/autoencoder_tiny.h"

#include <algorithm>
#include <charconv>

#include "lightcone/io/printable.h"
#include "lightcone/models/blocks/activation.h"
#include "lightcone/ops/ops.h"
#include "lightcone/ops/shape.h"
#include "lightcone/runtime/names.h"

namespace lc::diffusion {
namespace {

using Kind = TinyLayer::Kind;
constexpr std::int64_t kMostLayers = 256;
constexpr std::int64_t kPoolGroups = 4;

TinyLayer convolution(std::int64_t in, std::int64_t out, int stride = 1, bool bias = true) {
  return {.kind = Kind::Convolution, .in = in, .out = out, .stride = stride, .bias = bias};
}

std::int64_t scale_of(const std::vector<TinyLayer>& layers, std::int64_t repeat) {
  std::int64_t scale = 1;
  for (const TinyLayer& l : layers) scale *= l.kind == Kind::Repeat ? repeat : l.stride;
  return scale;
}

}  // namespace

TinyAutoencoder::Block::Block(const TinyLayer& l)
    : conv_0(l.in, l.out, 3, {.padding = 1}),
      conv_2(l.out, l.out, 3, {.padding = 1}),
      conv_4(l.out, l.out, 3, {.padding = 1}) {
  if (l.in != l.out) skip.emplace(l.in, l.out, 1, ConvOptions{}, false);
  if (l.pool == 0) return;
  pool_0.emplace(l.in, l.pool, 1, ConvOptions{}, false);
  pool_1.emplace(kPoolGroups, l.pool, 1e-5);
  pool_3.emplace(l.pool, l.in, 1, ConvOptions{}, false);
}
void TinyAutoencoder::Block::visit(nn::Visitor& v) {
  v("conv.0", conv_0)("conv.2", conv_2)("conv.4", conv_4);
  if (skip) v("skip", *skip);
  if (pool_0) v("pool.0", *pool_0)("pool.1", *pool_1)("pool.3", *pool_3);
}
Tensor TinyAutoencoder::Block::operator()(const Tensor& x, const std::string& activation) const {
  const Tensor h = pool_0 ? x + (*pool_3)(relu((*pool_1)((*pool_0)(x)))) : x;
  const Tensor y = conv_4(activate(activation, conv_2(activate(activation, conv_0(h)))));
  return relu(y + (skip ? (*skip)(h) : h));
}

TinyAutoencoder::TinyAutoencoder(std::vector<TinyLayer> layers, std::string activation, std::int64_t repeat)
    : layers_(std::move(layers)), activation_(std::move(activation)), repeat_(repeat) {
  for (const TinyLayer& l : layers_) {
    Step& step = steps_.emplace_back();
    if (l.kind == Kind::Convolution)
      step.convolution.emplace(l.in, l.out, 3, ConvOptions{.stride = l.stride, .padding = 1}, l.bias);
    else if (l.kind == Kind::Block) step.block.emplace(l);
  }
}
void TinyAutoencoder::visit(nn::Visitor& v) {
  for (std::size_t k = 0; k < steps_.size(); ++k) {
    if (steps_[k].convolution) v(std::to_string(k), *steps_[k].convolution);
    if (steps_[k].block) v(std::to_string(k), *steps_[k].block);
  }
}
Tensor TinyAutoencoder::operator()(const Tensor& given) const {
  Tensor x = given;
  for (std::size_t k = 0; k < layers_.size(); ++k) switch (layers_[k].kind) {
      case Kind::Bound: x = tanh(x / 3.0) * 3.0; break;
      case Kind::Convolution: x = (*steps_[k].convolution)(x); break;
      case Kind::Activation: x = activate(activation_, x); break;
      case Kind::Block: x = (*steps_[k].block)(x, activation_); break;
      case Kind::Repeat: x = repeat_pixels(x, repeat_); break;
    }
  return x;
}

namespace {

// ---- the author's files ----------------------------------------------------------------------------

// The number before the first '.' of a weight's name; nullopt: it is not one of a layer.
std::optional<std::int64_t> layer_of(std::string_view name) {
  std::int64_t n = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), n);
  const bool whole = error == std::errc() && end != name.data() + name.size() && *end == '.';
  return whole && n >= 0 && n < kMostLayers ? std::optional(n) : std::nullopt;
}

// Layers without weights stand between those that have some: the first is a bound, the one after the first convolution
// an activation, others double the picture. A half that begins with a bound is a decoder.
std::vector<TinyLayer> taesd_layers(const Weights& w) {
  std::int64_t count = 0;
  for (const auto& [name, t] : w.tensors()) count = std::max(count, layer_of(name).value_or(0) + 1);
  const bool decodes = !w.find("0.weight");
  std::vector<TinyLayer> layers;
  for (std::int64_t k = 0; k < count; ++k) {
    const StoredTensor* plain = w.find(str_cat(k, ".weight"));
    const StoredTensor* block = w.find(str_cat(k, ".conv.0.weight"));
    if (const StoredTensor* t = plain ? plain : block) {
      if (t->shape.size() != 4) throw file_error("load_model", w.path(), "layer ", k, " is no convolution of pictures");
      TinyLayer l = convolution(t->shape[1], t->shape[0], 1, w.find(str_cat(k, ".bias")) != nullptr);
      if (plain) l.stride = !decodes && k > 0 && k + 1 < count ? 2 : 1;
      else l.kind = Kind::Block;
      if (const StoredTensor* pool = w.find(str_cat(k, ".pool.0.weight")))
        l.pool = pool->shape.empty() ? 0 : pool->shape[0];
      layers.push_back(l);
    } else {
      layers.push_back({.kind = k == 0 ? Kind::Bound : k == 2 ? Kind::Activation : Kind::Repeat});
    }
  }
  return layers;
}

// ---- diffusers' AutoencoderTiny ------------------------------------------------------------------------

struct TinyConfig {
  std::vector<TinyLayer> encoder, decoder;
  std::string activation = "relu";
  std::int64_t repeat = 2;
  double scaling_factor = 1, shift_factor = 0;
};

TinyConfig tiny_config(const ConfigFile& c, std::size_t weights) {
  TinyConfig t;
  const std::int64_t in = c.size("in_channels", 3), out = c.size("out_channels", 3),
                     latent = c.size("latent_channels", 4);
  const auto listed = [&](std::string_view key, std::vector<std::int64_t> otherwise) {
    std::vector<std::int64_t> all = c.sizes(key);
    std::int64_t sum = 0;
    for (const std::int64_t n : all) sum = std::min(sum + n, std::int64_t{1} << 40);
    if (key.starts_with("num_") && sum > static_cast<std::int64_t>(weights))
      c.fail(key, " are ", sum, " blocks, and the file has ", weights, " weights");
    return all.empty() ? otherwise : all;
  };
  const auto down = listed("encoder_block_out_channels", {64, 64, 64, 64}),
             up = listed("decoder_block_out_channels", {64, 64, 64, 64}),
             downs = listed("num_encoder_blocks", {1, 3, 3, 3}), ups = listed("num_decoder_blocks", {3, 3, 3, 1});
  if (down.size() != downs.size() || up.size() != ups.size())
    c.fail("the lists of channels and of numbers of blocks are not equally long");
  if (std::max(down.size(), up.size()) > 16) c.fail("more than 16 levels, which are not supported");
  for (std::size_t k = 0; k < down.size(); ++k) {
    t.encoder.push_back(k == 0 ? convolution(in, down[0]) : convolution(down[k], down[k], 2, false));
    for (std::int64_t n = 0; n < downs[k]; ++n)
      t.encoder.push_back({.kind = Kind::Block, .in = down[k], .out = down[k]});
  }
  t.encoder.push_back(convolution(down.back(), latent));
  t.decoder = {convolution(latent, up[0]), {.kind = Kind::Activation}};
  for (std::size_t k = 0; k < up.size(); ++k) {
    const bool last = k + 1 == up.size();
    for (std::int64_t n = 0; n < ups[k]; ++n) t.decoder.push_back({.kind = Kind::Block, .in = up[k], .out = up[k]});
    if (!last) t.decoder.push_back({.kind = Kind::Repeat});
    t.decoder.push_back(convolution(up[k], last ? out : up[k], 1, last));
  }
  t.activation = c.text("act_fn", "relu");
  const auto& known = activation_names();
  if (std::ranges::find(known, t.activation) == known.end())
    c.fail("act_fn is ", in_quotes(t.activation), ", which is no known activation; the nearest is ",
           nearest_name(t.activation, known));
  t.repeat = c.size("upsampling_scaling_factor", 2);
  if (t.repeat > 8) c.fail("upsampling_scaling_factor is ", t.repeat, ", and at most 8 is supported");
  c.only("upsample_fn", "nearest");
  t.scaling_factor = c.number("scaling_factor", 1), t.shift_factor = c.number("shift_factor", 0);
  if (t.scaling_factor == 0) c.fail("scaling_factor is 0");
  // how latents become bytes, which they do not here; what diffusers writes beside the decoder's channels
  c.neutral({"latent_magnitude", "latent_shift", "force_upcast", "block_out_channels"});
  c.require_all_known("AutoencoderTiny");
  return t;
}

constexpr WeightName kTinyNames[] = {{"encoder.layers", "encoder.layers"}, {"decoder.layers", "decoder.layers"}};
constexpr WeightName kTaesdNames[] = {{"#", "#"}};

}  // namespace

bool is_taesd(const Weights& w) {
  return w.config_json().empty() && !w.tensors().empty() &&
         std::ranges::all_of(w.tensors(), [](const auto& t) { return layer_of(t.first).has_value(); }) &&
         std::ranges::any_of(w.tensors(), [](const auto& t) { return t.first.ends_with(".conv.0.weight"); });
}

namespace {

// A module below a path, which has a comma in no name of its own.
struct Half {
  std::string path;
  TinyAutoencoder layers;
  void visit(nn::Visitor& v) { v(path, layers); }
};

}  // namespace

LoadedModel load_autoencoder_tiny(const Weights& w, const ConfigFile& config, const LoadModelOptions& o,
                                  const AutoencoderSizes& sizes) {
  const TinyConfig t = tiny_config(config, w.tensors().size());
  LoadedModel m("AutoencoderTiny", WeightTable(w, {}, kTinyNames));
  m.architecture = m.type;
  const std::int64_t scale = scale_of(t.decoder, t.repeat);
  const AutoencoderShapes shapes = autoencoder_shapes(m, o, sizes, t.encoder.front().in, t.decoder.front().in, scale);
  const bool encodes = m.weights.has("encoder.layers.0.weight"), decodes = m.weights.has("decoder.layers.0.weight");
  if (encodes) {
    const Half& half = m.add(Half{"encoder.layers", TinyAutoencoder(t.encoder, t.activation, t.repeat)});
    const Tensor image = m.inputs["image"] = m.graph().input("image", shapes.image);
    m.give("encoded", (half.layers((image + 1.0) / 2.0) - t.shift_factor) * t.scaling_factor);
  }
  if (decodes || !encodes) {
    const Half& half = m.add(Half{"decoder.layers", TinyAutoencoder(t.decoder, t.activation, t.repeat)});
    const Tensor latent = m.inputs["latent"] = m.graph().input("latent", shapes.latent);
    m.give("decoded", half.layers(tanh((latent / t.scaling_factor + t.shift_factor) / 3.0) * 3.0) * 2.0 - 1.0);
  }
  m.weights.require_all_used("an AutoencoderTiny");
  m.retrieve(o);
  return m;
}
LoadedModel load_autoencoder_tiny(const Weights& w, const ConfigFile& config, const LoadModelOptions& o) {
  return load_autoencoder_tiny(w, config, o, {.height = o.height, .width = o.width});
}

LoadedModel load_taesd(const Weights& w, const LoadModelOptions& o) {
  const std::vector<TinyLayer> layers = taesd_layers(w);
  LoadedModel m("taesd", WeightTable(w, {}, kTaesdNames));
  m.architecture = m.type;
  const TinyAutoencoder& half = m.add(TinyAutoencoder(layers, "relu", 2));
  m.weights.require_all_used("a tiny autoencoder");
  const bool decodes = layers.front().kind == Kind::Bound;
  const auto first = std::ranges::find(layers, Kind::Convolution, &TinyLayer::kind);
  if (first == layers.end()) throw file_error("load_model", w.path(), "it has no convolution of a tiny autoencoder");
  const AutoencoderShapes shapes =
      autoencoder_shapes(m, o, {.height = o.height, .width = o.width}, first->in, first->in, scale_of(layers, 2));
  const char* name = decodes ? "latent" : "image";
  m.inputs[name] = m.graph().input(name, decodes ? shapes.latent : shapes.image);
  m.give(decodes ? "decoded" : "encoded", half(m.inputs[name]));
  m.retrieve(o);
  return m;
}

}  // namespace lc::diffusion
