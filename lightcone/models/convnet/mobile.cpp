// Networks of inverted residuals: torchvision's MobileNetV3 and EfficientNet with a list of blocks, and transformers'
// EfficientNet.
#include <algorithm>
#include <cmath>

#include "lightcone/io/printable.h"
#include "lightcone/models/blocks/activation.h"
#include "lightcone/models/blocks/config.h"
#include "lightcone/models/convnet/classifiers.h"
#include "lightcone/models/convnet/inverted_residual.h"
#include "lightcone/models/files/pictures.h"
#include "lightcone/nn/linear.h"

namespace lc {
namespace {

// Everything about a network but its weights.
struct Layout {
  ConvNormOptions stem, top;
  std::string stem_name, top_name, block_name;  // before the number of a block, '.' at its end
  std::size_t first_block = 0;                  // its number
  std::vector<InvertedResidualOptions> blocks = {};
  std::vector<std::pair<std::string, std::int64_t>> dense = {};  // names and widths of the linear layers
  std::string dense_activation = "linear";                       // between them
  std::optional<std::pair<int, int>> stem_padding = {};          // before and after, of both axes
};

class MobileNet {
 public:
  explicit MobileNet(const Layout& l) : l_(l), stem_(l.stem), top_(l.top) {
    for (const InvertedResidualOptions& b : l.blocks) blocks_.emplace_back(b);
    std::int64_t in = l.top.out;
    for (const auto& [name, width] : l.dense) dense_.emplace_back(in, width), in = width;
  }
  void visit(nn::Visitor& v) {
    v(l_.stem_name, stem_);
    for (std::size_t k = 0; k < blocks_.size(); ++k) v(str_cat(l_.block_name, l_.first_block + k), blocks_[k]);
    v(l_.top_name, top_);
    for (std::size_t k = 0; k < dense_.size(); ++k) v(l_.dense[k].first, dense_[k]);
  }
  std::map<std::string, Tensor> operator()(const Tensor& pictures) const {
    Tensor x = pictures;
    if (l_.stem_padding) {
      const auto [before, after] = *l_.stem_padding;
      x = x.pad(2, before, after).pad(3, before, after);
    }
    x = stem_(x);
    for (const InvertedResidual& b : blocks_) x = b(x);
    x = top_(x);
    Tensor y = mean(x, {2, 3});
    std::map<std::string, Tensor> out{{"hidden", x}, {"pooled", y}};
    for (std::size_t k = 0; k < dense_.size(); ++k)
      y = k + 1 < dense_.size() ? activate(l_.dense_activation, dense_[k](y)) : dense_[k](y);
    if (!dense_.empty()) out["logits"] = y;
    return out;
  }

 private:
  Layout l_;
  ConvNorm stem_, top_;
  std::vector<InvertedResidual> blocks_;
  std::vector<nn::Linear<>> dense_;
};

const ConvNormNames kSequential{"0", "1"};

// A block of torchvision: its parts are numbered, and those that it lacks have no number.
InvertedResidualOptions numbered_block(const ConfigFile& file, std::int64_t in, bool mobile, double eps) {
  InvertedResidualOptions b{.in = in, .inner = file.size("exp"), .out = file.size("out"), .eps = eps};
  constexpr std::int64_t kLargestKernel = 31;
  const std::int64_t kernel = file.size("kernel"), stride = file.size("stride", 1);
  if (kernel > kLargestKernel || kernel % 2 == 0 || stride > kernel)
    file.fail("a kernel of ", kernel, " with a stride of ", stride, " is not supported");
  b.kernel = static_cast<int>(kernel), b.stride = static_cast<int>(stride);
  const std::int64_t squeezed = file.id("se_channels", 0);
  if (file.flag("se", squeezed > 0)) b.squeezed = squeezed;
  b.activation = !mobile ? "silu" : file.flag("hswish", false) ? "hardswish" : "relu";
  b.squeeze_activation = mobile ? "relu" : "silu", b.gate = mobile ? "hardsigmoid" : "sigmoid";
  b.expands = b.inner != in, b.shortcut = stride == 1 && in == b.out;
  int part = 0;
  const auto next = [&] { return str_cat("block.", part++); };
  if (b.expands) b.names.expand = next();
  b.names.depthwise = next();
  if (b.squeezed > 0) b.names.squeeze = next();
  b.names.project = next();
  b.names.expand_parts = b.names.depthwise_parts = b.names.project_parts = kSequential;
  file.require_all_known("a block");
  return b;
}

Layout read_numbered(const ConfigFile& file, std::int64_t labels) {
  const bool mobile = file.text("model_type") == "mobilenet_v3";
  const std::string activation = mobile ? "hardswish" : "silu";
  const double eps = file.number("bn_eps", 1e-3);
  Layout l;
  l.stem = {.in = file.size("num_channels", 3),
            .out = file.size("stem_width"),
            .kernel = {3},
            .stride = 2,
            .eps = eps,
            .activation = activation,
            .names = kSequential};
  std::int64_t in = l.stem.out;
  for (const ConfigFile& each : file.sections("blocks"))
    l.blocks.push_back(numbered_block(each, in, mobile, eps)), in = l.blocks.back().out;
  l.top = {.in = in, .out = file.size("head_conv_width"), .eps = eps, .activation = activation, .names = kSequential};
  l.stem_name = "features.0", l.block_name = "features.", l.first_block = 1,
  l.top_name = str_cat("features.", l.blocks.size() + 1);
  if (mobile) l.dense = {{"classifier.0", file.size("classifier_hidden")}, {"classifier.3", labels}};
  else l.dense = {{"classifier.1", labels}};
  l.dense_activation = activation;
  file.neutral({"variant"});  // the blocks say what it is
  return l;
}

// ---- transformers' EfficientNet -------------------------------------------------------------------

// Widths are multiples of depth_divisor, at least nine tenths of what the coefficient asks for.
std::int64_t scaled_width(double width, double coefficient, std::int64_t divisor) {
  const double wide = width * coefficient, step = static_cast<double>(divisor);
  double n = std::max(step, std::floor((wide + step / 2) / step) * step);
  if (n < 0.9 * wide) n += step;
  return static_cast<std::int64_t>(n);
}

// TensorFlow's padding of a convolution of stride 2 on an even extent.
std::pair<int, int> even_padding(int kernel) { return {kernel / 2 - 1, kernel / 2}; }

Layout read_transformers(const ConfigFile& file, const Weights& w, std::int64_t labels) {
  const auto list = [&](const char* key, std::vector<std::int64_t> otherwise) {
    const std::vector<std::int64_t> given = file.sizes(key);
    return given.empty() ? otherwise : given;
  };
  const double wide = file.number("width_coefficient", 2), deep = file.number("depth_coefficient", 3.1);
  const std::int64_t divisor = file.size("depth_divisor", 8);
  constexpr double kMost = 1000;
  for (const double c : {wide, deep})
    if (!(c > 0 && c <= kMost)) file.fail("width_coefficient and depth_coefficient are above 0 and at most ", kMost);
  const auto kernels = list("kernel_sizes", {3, 3, 5, 3, 5, 5, 3}),
             ins = list("in_channels", {32, 16, 24, 40, 80, 112, 192}),
             outs = list("out_channels", {16, 24, 40, 80, 112, 192, 320}),
             strides = list("strides", {1, 2, 2, 2, 1, 2, 1}),
             repeats = list("num_block_repeats", {1, 2, 2, 3, 3, 4, 1}),
             expand = list("expand_ratios", {1, 6, 6, 6, 6, 6, 6});
  const std::vector<double> unpadded = file.numbers("depthwise_padding");
  for (const auto* each : {&ins, &outs, &strides, &repeats, &expand})
    if (each->size() != kernels.size())
      file.fail("the lists of stages have ", each->size(), " and ", kernels.size(), " numbers");
  const double squeeze = std::clamp(file.number("squeeze_expansion_ratio", 0.25), 0.0, kMost),
               eps = file.number("batch_norm_eps", 1e-3);
  const std::string activation = known_activation(file, "hidden_act", "swish");
  file.only("pooling_type", "mean");
  Layout l;
  const ConvNormNames stem{"convolution", "batchnorm"};
  l.stem = {.in = file.size("num_channels", 3),
            .out = scaled_width(32, wide, divisor),
            .kernel = {3},
            .stride = 2,
            .padding = 0,
            .eps = eps,
            .activation = activation,
            .names = stem};
  l.stem_padding = std::pair{0, 1};
  l.stem_name = "embeddings", l.block_name = "encoder.blocks.", l.top_name = "encoder";
  std::int64_t in = l.stem.out, number = 0;
  for (std::size_t s = 0; s < kernels.size(); ++s) {
    const std::int64_t out = scaled_width(static_cast<double>(outs[s]), wide, divisor);
    if (scaled_width(static_cast<double>(ins[s]), wide, divisor) != in)
      file.fail("in_channels of stage ", s, " are not what the stage before gives");
    const auto layers = static_cast<std::int64_t>(std::ceil(deep * static_cast<double>(repeats[s])));
    const std::vector<std::int64_t> all{layers, std::ssize(l.blocks)};
    require_fewer_layers(file, all, w);
    for (std::int64_t k = 0; k < layers; ++k, ++number, in = out) {
      InvertedResidualOptions b{.in = in,
                                .inner = in * expand[s],
                                .out = out,
                                .kernel = static_cast<int>(kernels[s]),
                                .stride = static_cast<int>(k == 0 ? strides[s] : 1),
                                .eps = eps};
      b.squeezed = std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(in) * squeeze));
      b.activation = b.squeeze_activation = activation;
      b.expands = expand[s] != 1, b.shortcut = k > 0;
      if (b.stride == 2) b.padding = even_padding(b.kernel);
      b.names = {"expansion",
                 "depthwise_conv",
                 "squeeze_excite",
                 "projection",
                 {"expand_conv", "expand_bn"},
                 {"depthwise_conv", "depthwise_norm"},
                 {"project_conv", "project_bn"},
                 "reduce",
                 "expand"};
      for (const double n : unpadded)
        if (static_cast<double>(number) == n && b.stride == 2) b.padding = std::pair{b.kernel / 2, b.kernel / 2};
      l.blocks.push_back(b);
    }
  }
  l.top = {.in = in,
           .out = file.size("hidden_dim", scaled_width(1280, wide, divisor)),
           .eps = eps,
           .activation = activation,
           .names = {"top_conv", "top_bn"}};
  if (labels > 0) l.dense = {{"classifier", labels}};
  file.neutral({"batch_norm_momentum", "drop_connect_rate", "dropout_rate", "num_hidden_layers"});
  return l;
}

constexpr WeightName kMobileNames[] = {
    {"features", "features"}, {"classifier", "classifier"}, {"embeddings", "embeddings"}, {"encoder", "encoder"}};
constexpr std::string_view kMobilePrefixes[] = {"efficientnet."};

}  // namespace

LoadedModel load_inverted_residual(const Weights& w, const ConfigFile& config, const LoadModelOptions& o) {
  const bool numbered = config.text("model_type") == "mobilenet_v3" || config.has("blocks");
  const bool classifies = numbered || w.find("classifier.weight");
  const std::vector<std::string> labels = classifies ? config.labels() : std::vector<std::string>{};
  const Layout l =
      numbered ? read_numbered(config, std::ssize(labels)) : read_transformers(config, w, std::ssize(labels));
  const PictureSize size = picture_size(config, o, trained_size(config, numbered ? 224 : 600));
  config.require_all_known(config.text("model_type"));
  LoadedModel m(config.text("model_type"), WeightTable(w, kMobilePrefixes, kMobileNames));
  m.architecture = numbered ? m.type : str_cat("EfficientNet", classifies ? "ForImageClassification" : "Model");
  m.labels = labels;
  const MobileNet& net = m.add(MobileNet(l));
  m.weights.require_all_used(str_cat("a ", m.architecture));
  for (const auto& [name, value] : net(picture_input(m, o, l.stem.in, size))) m.give(name, value);
  m.retrieve(o);
  return m;
}

}  // namespace lc
