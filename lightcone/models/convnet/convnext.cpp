#include "lightcone/models/convnet/convnext.h"

#include "lightcone/models/blocks/activation.h"
#include "lightcone/models/blocks/config.h"
#include "lightcone/models/files/pictures.h"
#include "lightcone/nn/conv.h"
#include "lightcone/nn/linear.h"
#include "lightcone/nn/norm.h"
#include "lightcone/ops/shape.h"

namespace lc {
namespace {

constexpr double kNormEps = 1e-6;

struct ConvNextConfig {
  std::vector<std::int64_t> depths, widths;
  std::int64_t patch = 4, channels = 3;
  std::string activation = "gelu";
  double eps = 1e-12, inner_eps = kNormEps;  // the last norm has the first, and the norms within the second
  bool second = false, layer_scale = true;
  bool dino = false;         // DINOv3's: one epsilon everywhere, and hidden states as of a transformer
  std::int64_t classes = 0;  // 0: no classifier
};

// Normalises the channels of [batch, channels, height, width].
Tensor over_channels(const nn::LayerNorm<>& norm, const Tensor& x) {
  return norm(x.permute({0, 2, 3, 1})).permute({0, 3, 1, 2});
}

class Layer {
 public:
  Layer(const ConvNextConfig& c, std::int64_t width)
      : c_(c),
        width_(width),
        depthwise_(width, width, 7, {.padding = {3}, .groups = static_cast<int>(width)}),
        norm_(width, {.eps = c.inner_eps}),
        up_(width, 4 * width),
        down_(4 * width, width) {}
  void visit(nn::Visitor& v) {
    v("dwconv", depthwise_)("layernorm", norm_)("pwconv1", up_)("pwconv2", down_);
    if (c_.layer_scale) v.parameter("layer_scale_parameter", scale_, {width_}, nn::constant_init(1));
    if (!c_.second) return;
    v.parameter("grn.weight", response_weight_, {1, 1, 1, 4 * width_}, nn::constant_init(0));
    v.parameter("grn.bias", response_bias_, {1, 1, 1, 4 * width_}, nn::constant_init(0));
  }
  Tensor operator()(const Tensor& x) const {
    Tensor y = activate(c_.activation, up_(norm_(depthwise_(x).permute({0, 2, 3, 1}))));
    if (c_.second) y = responses(y);
    y = down_(y);
    if (c_.layer_scale) y = y * scale_;
    return x + y.permute({0, 3, 1, 2});
  }

 private:
  // Global response normalisation of V2: channels compete by their norms over the picture.
  Tensor responses(const Tensor& x) const {
    const Tensor norms = sqrt(sum(x * x, {1, 2}, true));
    return response_weight_ * (x * (norms / (mean(norms, {3}, true) + kNormEps))) + response_bias_ + x;
  }

  ConvNextConfig c_;
  std::int64_t width_;
  nn::Conv2d<> depthwise_;
  nn::LayerNorm<> norm_;
  nn::Linear<> up_, down_;
  Tensor scale_, response_weight_, response_bias_;
};

struct Stage {
  std::optional<std::pair<nn::LayerNorm<>, nn::Conv2d<>>> downsampling = {};
  std::vector<Layer> layers = {};
  void visit(nn::Visitor& v) {
    if (downsampling) v("downsampling_layer.0", downsampling->first)("downsampling_layer.1", downsampling->second);
    v("layers", layers);
  }
  Tensor operator()(Tensor x) const {
    if (downsampling) x = downsampling->second(over_channels(downsampling->first, x));
    for (const Layer& layer : layers) x = layer(x);
    return x;
  }
};

class ConvNext {
 public:
  explicit ConvNext(const ConvNextConfig& c)
      : c_(c),
        patches_(c.channels, c.widths[0], c.patch, {.stride = {static_cast<int>(c.patch)}}),
        patch_norm_(c.widths[0], {.eps = c.inner_eps}),
        norm_(c.widths.back(), {.eps = c.eps}),
        classifier_(c.widths.back(), c.classes) {
    for (std::size_t k = 0; k < c.depths.size(); ++k) {
      Stage& s = stages_.emplace_back();
      if (k > 0)
        s.downsampling.emplace(nn::LayerNorm<>(c.widths[k - 1], {.eps = c.inner_eps}),
                               nn::Conv2d<>(c.widths[k - 1], c.widths[k], 2, {.stride = {2}}));
      s.layers.assign(static_cast<std::size_t>(c.depths[k]), Layer(c, c.widths[k]));
    }
  }
  void visit(nn::Visitor& v) {
    v("embeddings.patch_embeddings", patches_)("embeddings.layernorm", patch_norm_)("encoder.stages", stages_);
    v("layernorm", norm_);
    if (c_.classes > 0) v("classifier", classifier_);
  }
  std::map<std::string, Tensor> operator()(const Tensor& pictures) const {
    Tensor x = over_channels(patch_norm_, patches_(pictures));
    for (const Stage& s : stages_) x = s(x);
    if (c_.dino) {
      const Tensor places = x.reshape({x.extent(0), x.extent(1), x.extent(2) * x.extent(3)}).permute({0, 2, 1});
      const Tensor hidden = norm_(cat({mean(places, {1}, true), places}, 1));
      return {{"hidden", hidden}, {"pooled", select(hidden, 1, 0)}};
    }
    const Tensor pooled = norm_(mean(x, {2, 3}));
    std::map<std::string, Tensor> out{{"hidden", x}, {"pooled", pooled}};
    if (c_.classes > 0) out["logits"] = classifier_(pooled);
    return out;
  }

 private:
  ConvNextConfig c_;
  nn::Conv2d<> patches_;
  nn::LayerNorm<> patch_norm_;
  std::vector<Stage> stages_;
  nn::LayerNorm<> norm_;
  nn::Linear<> classifier_;
};

ConvNextConfig read_convnext(const ConfigFile& file, const Weights& w) {
  ConvNextConfig c;
  const std::string type = file.text("model_type");
  c.second = type == "convnextv2", c.dino = type == "dinov3_convnext";
  c.depths = file.sizes("depths"), c.widths = file.sizes("hidden_sizes");
  if (c.depths.empty()) c.depths = {3, 3, 9, 3};
  if (c.widths.empty()) c.widths = {96, 192, 384, 768};
  if (c.depths.size() != c.widths.size())
    file.fail("there are ", c.depths.size(), " depths and ", c.widths.size(), " hidden_sizes");
  require_fewer_layers(file, c.depths, w);
  c.patch = file.size("patch_size", 4), c.channels = file.size("num_channels", 3);
  c.activation = known_activation(file, "hidden_act", "gelu");
  c.eps = file.number("layer_norm_eps", c.dino ? 1e-6 : 1e-12);
  if (c.dino) c.inner_eps = c.eps;
  c.layer_scale = !c.second && (file.number("layer_scale_init_value", 1e-6) > 0 || c.dino);
  if (!c.dino && w.find("classifier.weight")) c.classes = std::ssize(file.labels());
  file.neutral({"num_stages", "drop_path_rate", "out_features", "out_indices", "stage_names", "image_size"});
  file.require_all_known(file.text("model_type"));
  return c;
}

constexpr WeightName kConvNextNames[] = {
    {"embeddings", "embeddings"}, {"encoder", "encoder"}, {"layernorm", "layernorm"}, {"classifier", "classifier"}};
constexpr WeightName kDinoNames[] = {
    {"stages.0.downsample_layers.0", "embeddings.patch_embeddings"},
    {"stages.0.downsample_layers.1", "embeddings.layernorm"},
    {"stages.#.downsample_layers", "encoder.stages.#.downsampling_layer"},
    {"stages.#.layers.#.depthwise_conv", "encoder.stages.#.layers.#.dwconv"},
    {"stages.#.layers.#.layer_norm", "encoder.stages.#.layers.#.layernorm"},
    {"stages.#.layers.#.pointwise_conv1", "encoder.stages.#.layers.#.pwconv1"},
    {"stages.#.layers.#.pointwise_conv2", "encoder.stages.#.layers.#.pwconv2"},
    {"stages.#.layers.#.weight",  // the file's "gamma", which WeightTable reads as a weight
     "encoder.stages.#.layers.#.layer_scale_parameter"},
    {"layer_norm", "layernorm"},
};
constexpr std::string_view kDinoPrefixes[] = {"model."};
constexpr std::string_view kConvNextPrefixes[] = {"convnext.", "convnextv2."};

}  // namespace

LoadedModel load_convnext(const Weights& w, const ConfigFile& config, const LoadModelOptions& o) {
  const ConvNextConfig c = read_convnext(config, w);
  const PictureSize size = picture_size(config, o, trained_size(config, 224));
  LoadedModel m(config.text("model_type"),
                c.dino ? WeightTable(w, kDinoPrefixes, kDinoNames) : WeightTable(w, kConvNextPrefixes, kConvNextNames));
  m.architecture = str_cat(c.dino     ? "DINOv3ConvNext"
                           : c.second ? "ConvNextV2"
                                      : "ConvNext",
                           c.classes > 0 ? "ForImageClassification" : "Model");
  if (c.classes > 0) m.labels = config.labels();
  const ConvNext& net = m.add(ConvNext(c));
  m.weights.require_all_used(str_cat("a ", m.architecture));
  for (const auto& [name, value] : net(picture_input(m, o, c.channels, size))) m.give(name, value);
  m.retrieve(o);
  return m;
}

}  // namespace lc
