#include "lightcone/models/convnet/torchvision.h"

#include <cmath>
#include <deque>

#include "lightcone/io/printable.h"

namespace lc {
namespace {

constexpr std::int64_t kMostLayers = 4096;  // a stage of ResNet-152 has 36

[[noreturn]] void refuse(const Weights& w, const std::string& what) { throw file_error("load_model", w.path(), what); }

// The shape of a weight of `rank` axes without an extent of 0.
const std::vector<std::int64_t>& shape_of(const Weights& w, const std::string& name, std::size_t rank) {
  const StoredTensor* t = w.find(name);
  if (!t)
    refuse(w, str_cat("there is no weight ", in_quotes(name), ", by whose shape a network of torchvision is read"));
  bool empty = t->shape.size() != rank;
  for (const std::int64_t n : t->shape) empty = empty || n < 1;
  if (empty) refuse(w, str_cat(in_quotes(name), " has not the ", rank, " axes of torchvision's"));
  return t->shape;
}

ResidualStage stage_of(const Weights& w, const std::string& name, bool bottleneck) {
  ResidualStage s;
  const auto has = [&](std::int64_t k) { return w.find(str_cat(name, k, ".conv1.weight")) != nullptr; };
  while (s.layers < kMostLayers && has(s.layers)) ++s.layers;
  if (s.layers == 0) refuse(w, str_cat("there is no weight ", in_quotes(name + "0.conv1.weight")));
  const auto& second = shape_of(w, name + "0.conv2.weight", 4);
  s.inner = second[0];
  s.groups = static_cast<int>(s.inner % second[1] == 0 ? s.inner / second[1] : 1);
  s.width = bottleneck ? shape_of(w, name + "0.conv3.weight", 4)[0] : s.inner;
  return s;
}

}  // namespace

ResidualOptions torchvision_resnet(const Weights& w, const std::string& prefix) {
  ResidualOptions o;
  const auto& stem = shape_of(w, prefix + "conv1.weight", 4);
  o.stem = stem[0], o.channels = stem[1], o.stem_kernel = static_cast<int>(std::min<std::int64_t>(stem[2], 63));
  o.bottleneck = w.find(prefix + "layer1.0.conv3.weight") != nullptr;
  for (int k = 1; k <= 4; ++k) {
    o.stages.push_back(stage_of(w, str_cat(prefix, "layer", k, "."), o.bottleneck));
    o.stages.back().stride = k == 1 ? 1 : 2;
  }
  return o;
}

std::vector<WeightName> torchvision_resnet_names(const std::string& theirs, const std::string& ours) {
  static std::deque<std::string> kept;  // rows are views
  std::vector<WeightName> rows;
  const auto row = [&](const std::string& from, const std::string& to) {
    const std::string& a = kept.emplace_back(theirs + from);
    const std::string& b = kept.emplace_back(ours + to);
    rows.push_back({a, b});
  };
  row("conv1", "embedder.convolution"), row("bn1", "embedder.normalization");
  for (int s = 0; s < 4; ++s) {
    const std::string from = str_cat("layer", s + 1, ".#."), to = str_cat("stages.", s, ".layers.#.");
    for (int k = 0; k < 3; ++k) {
      row(str_cat(from, "conv", k + 1), str_cat(to, "layer.", k, ".convolution"));
      row(str_cat(from, "bn", k + 1), str_cat(to, "layer.", k, ".normalization"));
    }
    row(from + "downsample.0", to + "shortcut.convolution"), row(from + "downsample.1", to + "shortcut.normalization");
  }
  return rows;
}

VggLayout torchvision_vgg(const Weights& w) {
  VggLayout v;
  for (std::int64_t k = 0; k < kMostLayers; ++k) {
    const StoredTensor* t = w.find(str_cat("features.", k, ".weight"));
    if (!t) continue;
    if (t->shape.size() == 1) {
      v.norms = true;
      continue;
    }
    const auto& s = shape_of(w, str_cat("features.", k, ".weight"), 4);
    v.layers.push_back({k, s[1], s[0]});
  }
  if (v.layers.empty()) refuse(w, "there are no features");
  // A convolution, a norm and a ReLU count one number each, and so does a pool.
  const std::int64_t step = v.norms ? 3 : 2;
  for (std::size_t k = 0; k + 1 < v.layers.size(); ++k) {
    const std::int64_t gap = v.layers[k + 1].number - v.layers[k].number;
    if (gap != step && gap != step + 1)
      refuse(w, str_cat("features.", v.layers[k].number, " and the next are no VGG's"));
    v.layers[k].pooled = gap > step;
  }
  v.layers.back().pooled = true;
  for (const int k : {0, 3, 6}) v.dense.push_back(shape_of(w, str_cat("classifier.", k, ".weight"), 2)[0]);
  const std::int64_t in = shape_of(w, "classifier.0.weight", 2)[1], width = v.layers.back().out;
  v.grid = std::llround(std::sqrt(static_cast<double>(in) / static_cast<double>(width)));
  if (v.grid * v.grid * width != in) refuse(w, str_cat("classifier.0 takes ", in, " numbers, no square of features"));
  return v;
}

}  // namespace lc
