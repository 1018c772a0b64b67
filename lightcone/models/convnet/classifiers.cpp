#include "lightcone/models/convnet/classifiers.h"

#include "lightcone/io/printable.h"
#include "lightcone/models/blocks/config.h"
#include "lightcone/models/convnet/torchvision.h"
#include "lightcone/models/convnet/transformers_residual.h"
#include "lightcone/models/files/pictures.h"
#include "lightcone/nn/linear.h"
#include "lightcone/ops/shape.h"

namespace lc {
namespace {

constexpr std::int64_t kPicture = 224;

// Gives the outputs of a network with one linear layer on the means of its features, or none.
void give_classified(LoadedModel& m, const Tensor& hidden, const nn::Linear<>* classifier) {
  const Tensor pooled = mean(hidden, {2, 3});
  m.give("hidden", hidden), m.give("pooled", pooled);
  if (classifier) m.give("logits", (*classifier)(pooled));
}

// A residual network with its classifier.
struct Residual {
  ResidualNet net;
  nn::Linear<> classifier;
  bool classifies;
  void visit(nn::Visitor& v) {
    net.visit(v);
    if (classifies) v("classifier", classifier);
  }
};

LoadedModel residual(const ResidualOptions& options, std::int64_t classes, LoadedModel m, const PictureSize& size,
                     const LoadModelOptions& o) {
  const ResidualNet net(options);
  const Residual& r = m.add(Residual{net, nn::Linear<>(net.width(), classes), classes > 0});
  m.weights.require_all_used(str_cat("a ", m.architecture));
  give_classified(m, r.net(picture_input(m, o, options.channels, size)).back(), classes > 0 ? &r.classifier : nullptr);
  m.retrieve(o);
  return m;
}

LoadedModel torchvision_residual(const Weights& w, ResidualOptions options, const PictureSize& size,
                                 std::vector<std::string> labels, const LoadModelOptions& o) {
  std::vector<WeightName> names = torchvision_resnet_names("", "");
  names.push_back({"fc", "classifier"});
  LoadedModel m("resnet", WeightTable(w, {}, names));
  m.architecture = "ResNet", m.labels = std::move(labels);
  const auto classes = std::ssize(m.labels);
  return residual(options, classes, std::move(m), size, o);
}

constexpr WeightName kResidualNames[] = {
    {"embedder.embedder", "embedder"}, {"encoder.stages", "stages"}, {"classifier.1", "classifier"}};
constexpr std::string_view kResidualPrefixes[] = {"resnet.", "regnet."};

// Throws Error if config.json says something else than the weights.
void require_same(const ConfigFile& file, std::string_view key, const std::vector<std::int64_t>& weights) {
  const std::vector<std::int64_t> said = file.sizes(key);
  if (!said.empty() && said != weights) file.fail(key, " is not what the shapes of the weights say");
}

// What a file of torchvision's names with a config.json says.
LoadedModel load_named(const Weights& w, const ConfigFile& file, const LoadModelOptions& o) {
  ResidualOptions r = torchvision_resnet(w, "");
  std::vector<std::int64_t> widths, depths;
  for (const ResidualStage& s : r.stages)
    widths.push_back(r.bottleneck ? s.inner : s.width), depths.push_back(s.layers);
  require_same(file, "widths", widths), require_same(file, "blocks_per_stage", depths);
  require_same(file, "num_channels", {r.channels});
  if (file.has("depth") && (file.size("depth") >= 50) != r.bottleneck)
    file.fail("depth is ", file.size("depth"), ", and the layers have ", r.bottleneck ? 3 : 2, " convolutions");
  r.eps = file.number("bn_eps", 1e-5), r.pool_ceil = file.flag("cai_maxpool", false);
  const PictureSize size = picture_size(file, o, trained_size(file, kPicture));
  file.require_all_known("a residual network of torchvision");
  return torchvision_residual(w, r, size, file.labels(), o);
}

std::vector<std::string> numbered(std::int64_t count) {
  std::vector<std::string> all;
  for (std::int64_t k = 0; k < count; ++k) all.push_back(str_cat("LABEL_", k));
  return all;
}

// ---- VGG ------------------------------------------------------------------------------------------

class Vgg {
 public:
  explicit Vgg(const VggLayout& v) : v_(v) {
    for (const VggLayout::Layer& l : v.layers)
      features_.push_back(ConvNorm({.in = l.in,
                                    .out = l.out,
                                    .kernel = {3},
                                    .activation = "relu",
                                    .norm = v.norms,
                                    .bias = true,
                                    .names = {str_cat("features.", l.number), str_cat("features.", l.number + 1)}}));
    std::int64_t in = v.layers.back().out * v.grid * v.grid;
    for (const std::int64_t width : v.dense) dense_.emplace_back(in, width), in = width;
  }
  void visit(nn::Visitor& v) {
    for (ConvNorm& f : features_) f.visit(v);
    for (std::size_t k = 0; k < dense_.size(); ++k) v(str_cat("classifier.", 3 * k), dense_[k]);
  }
  Tensor features(Tensor x) const {
    for (std::size_t k = 0; k < features_.size(); ++k) {
      x = features_[k](x);
      if (v_.layers[k].pooled) x = max_pool(x, 2);
    }
    return x;
  }
  Tensor logits(const Tensor& features) const {
    const auto grid = static_cast<int>(v_.grid);
    Tensor x = flatten(adaptive_avg_pool(features, {grid, grid}), 1);
    for (std::size_t k = 0; k < dense_.size(); ++k) x = k + 1 < dense_.size() ? relu(dense_[k](x)) : dense_[k](x);
    return x;
  }

 private:
  VggLayout v_;
  std::vector<ConvNorm> features_;
  std::vector<nn::Linear<>> dense_;
};

constexpr WeightName kSequentialNames[] = {{"features", "features"}, {"classifier", "classifier"}};

LoadedModel vgg(const Weights& w, const VggLayout& v, const PictureSize& size, std::vector<std::string> labels,
                const LoadModelOptions& o) {
  LoadedModel m("vgg", WeightTable(w, {}, kSequentialNames));
  m.architecture = "VGG", m.labels = std::move(labels);
  const Vgg& net = m.add(Vgg(v));
  m.weights.require_all_used("a VGG");
  const Tensor hidden = net.features(picture_input(m, o, v.layers.front().in, size));
  m.give("hidden", hidden), m.give("pooled", mean(hidden, {2, 3})), m.give("logits", net.logits(hidden));
  m.retrieve(o);
  return m;
}

}  // namespace

LoadedModel load_residual(const Weights& w, const ConfigFile& config, const LoadModelOptions& o) {
  if (w.find("conv1.weight")) return load_named(w, config, o);
  const ResidualOptions options = read_residual(config, w);
  const bool classifies = w.find("classifier.1.weight") != nullptr;
  const PictureSize size = picture_size(config, o, trained_size(config, kPicture));
  const std::vector<std::string> labels = classifies ? config.labels() : std::vector<std::string>{};
  config.require_all_known(config.text("model_type"));
  LoadedModel m(config.text("model_type"), WeightTable(w, kResidualPrefixes, kResidualNames));
  m.architecture = str_cat(m.type == "resnet" ? "ResNet" : "RegNet", classifies ? "ForImageClassification" : "Model");
  m.labels = labels;
  return residual(options, std::ssize(labels), std::move(m), size, o);
}

LoadedModel load_vgg(const Weights& w, const ConfigFile& config, const LoadModelOptions& o) {
  const VggLayout v = torchvision_vgg(w);
  // widths and numbers of convolutions between two pools, as some programs write them down
  std::vector<std::int64_t> convolutions{0}, widths{0};
  for (const VggLayout::Layer& l : v.layers) {
    ++convolutions.back(), widths.back() = l.out;
    if (l.pooled && &l != &v.layers.back()) convolutions.push_back(0), widths.push_back(0);
  }
  require_same(config, "stage_convs", convolutions), require_same(config, "stage_widths", widths);
  require_same(config, "fc_hidden", {v.dense.begin(), v.dense.end() - 1});
  require_same(config, "adaptive_pool", {v.grid}), require_same(config, "num_channels", {v.layers.front().in});
  require_same(config, "depth", {std::ssize(v.layers) + std::ssize(v.dense)});
  if (config.flag("batch_norm", v.norms) != v.norms) config.fail("batch_norm is not what the weights say");
  const PictureSize size = picture_size(config, o, trained_size(config, kPicture));
  config.require_all_known("vgg");
  return vgg(w, v, size, config.labels(), o);
}

bool is_torchvision(const Weights& w) {
  return (w.find("conv1.weight") && w.find("layer1.0.conv1.weight") && w.find("fc.weight")) ||
         (w.find("features.0.weight") && w.find("classifier.6.weight"));
}

LoadedModel load_torchvision(const Weights& w, const LoadModelOptions& o) {
  const PictureSize size = picture_size(w.path(), o, {kPicture, kPicture});
  const auto classes = [&](const char* name) {
    const StoredTensor& t = w.at(name);
    constexpr std::int64_t kMost = 1 << 16;
    if (t.shape.size() != 2 || t.shape[0] < 1 || t.shape[0] > kMost)
      throw file_error("load_model", w.path(), in_quotes(name), " is no layer of classes");
    return numbered(t.shape[0]);
  };
  if (w.find("conv1.weight")) return torchvision_residual(w, torchvision_resnet(w, ""), size, classes("fc.weight"), o);
  return vgg(w, torchvision_vgg(w), size, classes("classifier.6.weight"), o);
}

}  // namespace lc
