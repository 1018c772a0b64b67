#include "lightcone/models/wav2vec2/wav2vec2.h"

#include "lightcone/models/blocks/activation.h"
#include "lightcone/models/wav2vec2/wav2vec2_config.h"
#include "lightcone/nn/conv.h"
#include "lightcone/ops/creation.h"
#include "lightcone/ops/shape.h"

namespace lc {
namespace {

constexpr std::int64_t kMostSamples = 60 * 16'000;

// A convolution that makes frames, and its norm: over time for each channel, or over the channels of each frame.
class FeatureLayer {
 public:
  FeatureLayer(const SpeechConfig& c, std::size_t k)
      : conv_(k == 0 ? 1 : c.features[k - 1].width, c.features[k].width, c.features[k].kernel,
              {.stride = {static_cast<int>(c.features[k].stride)}}, c.feature_bias),
        norm_(c.features[k].width),
        width_(c.features[k].width),
        over_time_(!c.norm_each && k == 0),
        has_norm_(c.norm_each || k == 0),
        activation_(c.feature_activation) {}
  void visit(nn::Visitor& v) {
    v("conv", conv_);
    if (has_norm_) v("norm", norm_);
  }
  Tensor operator()(const Tensor& x) const {  // [batch, channels, time]
    Tensor y = conv_(x);
    if (over_time_) y = group_norm(y, static_cast<int>(width_), norm_.weight, norm_.bias);
    else if (has_norm_) y = norm_(y.permute({0, 2, 1})).permute({0, 2, 1});
    return activate(activation_, y);
  }

 private:
  nn::Conv1d<> conv_;
  nn::LayerNorm<> norm_;
  std::int64_t width_;
  bool over_time_, has_norm_;
  std::string activation_;
};

// Positions by a convolution whose weight is a direction and a length for each place of its window (T. Salimans and
// D. Kingma, "Weight normalization", 2016). Parameters: scale, direction, bias.
class ConvPositions {
 public:
  explicit ConvPositions(const SpeechConfig& c)
      : width_(c.block.width),
        kernel_(c.position_kernel),
        groups_(c.position_groups),
        activation_(c.feature_activation) {}
  void visit(nn::Visitor& v) {
    v.parameter("scale", scale_, {1, 1, kernel_}, nn::constant_init(1));
    v.parameter("direction", direction_, {width_, width_ / groups_, kernel_}, nn::constant_init(1));
    v.parameter("bias", bias_, {width_}, nn::constant_init(0));
  }
  Tensor operator()(const Tensor& x) const {  // [batch, frames, width]
    const Tensor weight = direction_ * (scale_ / sqrt(sum(direction_ * direction_, {0, 1}, true)));
    Tensor y = conv(x.permute({0, 2, 1}), weight, bias_,
                    {.padding = {static_cast<int>(kernel_ / 2)}, .groups = static_cast<int>(groups_)});
    if (kernel_ % 2 == 0) y = narrow(y, 2, 0, x.extent(1));
    return activate(activation_, y).permute({0, 2, 1});
  }

 private:
  std::int64_t width_, kernel_, groups_;
  std::string activation_;
  Tensor scale_, direction_, bias_;
};

// The small network of MMS after a layer.
class SpeechAdapter {
 public:
  explicit SpeechAdapter(const SpeechConfig& c)
      : norm_(c.block.width), down_(c.block.width, c.adapter), up_(c.adapter, c.block.width) {}
  void visit(nn::Visitor& v) { v("norm", norm_)("linear_1", down_)("linear_2", up_); }
  Tensor operator()(const Tensor& x) const { return x + up_(relu(down_(norm_(x)))); }

 private:
  nn::LayerNorm<> norm_;
  nn::Linear<> down_, up_;
};

class SpeechEncoder {
 public:
  explicit SpeechEncoder(const SpeechConfig& c)
      : c_(c),
        projection_norm_(c.features.back().width, {.eps = c.block.eps}),
        norm_(c.block.width, {.eps = c.block.eps}),
        projection_(c.features.back().width, c.block.width),
        head_(c.head == SpeechHead::Sequence ? c.projector : c.block.width,
              c.head == SpeechHead::Ctc ? c.vocab : std::ssize(c.labels)),
        projector_(c.block.width, c.projector),
        positions_(c),
        layers_(static_cast<std::size_t>(c.layers), TransformerBlock(c.block)) {
    for (std::size_t k = 0; k < c.features.size(); ++k) features_.emplace_back(c, k);
    if (c.adapter > 0) adapters_.assign(layers_.size(), SpeechAdapter(c));
  }
  void visit(nn::Visitor& v) {
    v("features", features_);
    if (c_.projection_norm) v("projection_norm", projection_norm_);
    v("projection", projection_)("positions", positions_)("norm", norm_)("layers", layers_)("adapters", adapters_);
    if (c_.head == SpeechHead::Sequence) v("projector", projector_);
    if (c_.head != SpeechHead::None) v("head", head_);
  }
  std::map<std::string, Tensor> operator()(const Tensor& sound, const Tensor& mask) const {
    Tensor x = sound.unsqueeze(1);
    for (const FeatureLayer& f : features_) x = f(x);
    x = x.permute({0, 2, 1});
    const Tensor shown = frames_shown(mask, x.extent(1)).unsqueeze(2);  // [batch, frames, 1]
    x = projection_(c_.projection_norm ? projection_norm_(x) : x);
    x = where(shown, x, full_like(x, 0));
    x = x + positions_(x);
    if (!c_.block.norm_first) x = norm_(x);
    const AttentionOptions seen{.attn_mask = shown.permute({0, 2, 1}).unsqueeze(1)};
    for (std::size_t k = 0; k < layers_.size(); ++k) {
      x = layers_[k](x, seen);
      if (!adapters_.empty()) x = adapters_[k](x);
    }
    if (c_.block.norm_first) x = norm_(x);
    std::map<std::string, Tensor> out{{"hidden", x}};
    if (c_.head == SpeechHead::Sequence) out["logits"] = head_(mean_shown(projector_(x), shown));
    else if (c_.head != SpeechHead::None) out["logits"] = head_(x);
    return out;
  }

 private:
  // Which frames are made of sound: as many as the convolutions make of the samples that the mask shows.
  Tensor frames_shown(const Tensor& mask, const Dim& frames) const {
    Tensor n = sum(to(ne(mask, 0), DType::I64), {1}, true);
    for (const SpeechConfig::Conv& f : c_.features) n = floor_divide(n - f.kernel, f.stride) + 1;
    return lt(arange(mask.graph(), frames).unsqueeze(0), n);
  }
  static Tensor mean_shown(const Tensor& x, const Tensor& shown) {
    const Tensor weight = to(shown, DType::F32);
    return sum(x * weight, {1}) / sum(weight, {1});
  }

  SpeechConfig c_;
  std::vector<FeatureLayer> features_;
  nn::LayerNorm<> projection_norm_, norm_;
  nn::Linear<> projection_, head_, projector_;
  ConvPositions positions_;
  std::vector<TransformerBlock> layers_;
  std::vector<SpeechAdapter> adapters_;
};

constexpr WeightName kNames[] = {
    {"masked_spec_embed", ""},
    {"feature_extractor.conv_layers.#.conv", "features.#.conv"},
    {"feature_extractor.conv_layers.#.layer_norm", "features.#.norm"},
    {"feature_projection.layer_norm", "projection_norm"},
    {"feature_projection.projection", "projection"},
    {"encoder.pos_conv_embed.conv.bias", "positions.bias"},
    {"encoder.pos_conv_embed.conv.weight_g", "positions.scale"},
    {"encoder.pos_conv_embed.conv.weight_v", "positions.direction"},
    {"encoder.pos_conv_embed.conv.parametrizations.weight.original0", "positions.scale"},
    {"encoder.pos_conv_embed.conv.parametrizations.weight.original1", "positions.direction"},
    {"encoder.layer_norm", "norm"},
    {"encoder.layers.#.attention.q_proj", "layers.#.query"},
    {"encoder.layers.#.attention.k_proj", "layers.#.key"},
    {"encoder.layers.#.attention.v_proj", "layers.#.value"},
    {"encoder.layers.#.attention.out_proj", "layers.#.output"},
    {"encoder.layers.#.layer_norm", "layers.#.attention_norm"},
    {"encoder.layers.#.final_layer_norm", "layers.#.feed_forward_norm"},
    {"encoder.layers.#.feed_forward.intermediate_dense", "layers.#.up"},
    {"encoder.layers.#.feed_forward.output_dense", "layers.#.down"},
    {"encoder.layers.#.adapter_layer", "adapters.#"},
    {"lm_head", "head", true},
    {"classifier", "head", true},
    {"projector", "projector", true},
    // pretraining compares frames with these
    {"quantizer", "quantizer", true},
    {"project_q", "project_q", true},
    {"project_hid", "project_hid", true},
};
constexpr std::string_view kPrefixes[] = {"wav2vec2.", "hubert."};

}  // namespace

LoadedModel load_wav2vec2(const Weights& w, const ConfigFile& config, const LoadModelOptions& o) {
  const SpeechConfig c = read_speech(config, w);
  LoadedModel m(config.text("model_type"), WeightTable(w, kPrefixes, kNames));
  m.architecture = c.architecture, m.labels = c.labels;
  const SpeechEncoder& net = m.add(SpeechEncoder(c));
  m.weights.require_all_used(str_cat("a ", c.architecture));
  const std::int64_t least = c.least_samples(), most = std::max(least, kMostSamples);
  m.limits = {{"batch", o.batch}, {"samples", most}};
  const Shape shape{Dim::symbol("batch", 1, o.batch), Dim::symbol("samples", least, most)};
  const Tensor sound = m.inputs["input_values"] = m.graph().input("input_values", shape),
               mask = m.inputs["attention_mask"] = m.graph().input("attention_mask", shape, DType::I64);
  for (const auto& [name, value] : net(sound, mask)) m.give(name, value);
  m.retrieve(o);
  return m;
}

}  // namespace lc
