#include "lightcone/models/yolo/layers.h"

#include "lightcone/io/printable.h"
#include "lightcone/models/blocks/patch_embedding.h"
#include "lightcone/ops/functional/functional.h"
#include "lightcone/ops/shape.h"

namespace lc {
namespace {

bool is_head(const std::string& type) { return type == "Detect" || type == "DDetect"; }

}  // namespace

std::vector<YoloLayerSpec> yolo_layers(const YoloSource& s) {
  std::vector<YoloLayerSpec> all;
  for (std::int64_t k = 0; !s.type(str_cat(k)).empty(); ++k)
    all.push_back({.type = s.type(str_cat(k)), .from = s.wholes(str_cat(k), "f", {-1})});
  return all;
}

std::vector<YoloLayerSpec> yolo_v8_layers() {
  const YoloLayerSpec halve{"Conv", {-1}, 2}, csp{"C2f", {-1}}, up{"Upsample", {-1}};
  const auto fused = [](int with) { return YoloLayerSpec{"Concat", {-1, with}}; };
  YoloLayerSpec neck = csp;  // its bottlenecks have no shortcuts
  neck.shortcut = false;
  return {halve,
          halve,
          csp,
          halve,
          csp,
          halve,
          csp,
          halve,
          csp,
          {"SPPF", {-1}},  // down
          up,
          fused(6),
          neck,
          up,
          fused(4),
          neck,  // up
          halve,
          fused(12),
          neck,
          halve,
          fused(9),
          neck,  // down again
          {"Detect", {15, 18, 21}}};
}

YoloNet::YoloNet(const YoloSource& s, std::vector<YoloLayerSpec> layers) {
  if (layers.empty() || !is_head(layers.back().type))
    s.refuse(layers.empty() ? std::string("there are no layers")
                            : str_cat("the last layer is a ", in_quotes(layers.back().type),
                                      ", and detectors end with Detect: other tasks are not supported"));
  if (constexpr std::size_t kMostLayers = 1024; layers.size() > kMostLayers)
    s.refuse(str_cat(layers.size(), " layers, more than the ", kMostLayers, " that are supported"));
  channels_ = s.shape("0.conv.weight", 4)[1];
  std::vector<std::int64_t> out;  // channels of each layer
  for (std::size_t k = 0; k < layers.size(); ++k) {
    YoloLayerSpec& l = layers[k];
    std::vector<std::int64_t> in;
    for (int& from : l.from) {
      if (from < 0) from += static_cast<int>(k);  // -1 is the one before
      if (from >= static_cast<int>(k) || from < (k == 0 ? -1 : 0))
        s.refuse(str_cat("layer ", k, " reads layer ", from, ", which is not before it"));
      in.push_back(from < 0 ? channels_ : out[static_cast<std::size_t>(from)]);
    }
    if (in.empty()) s.refuse(str_cat("layer ", k, " reads nothing"));
    if (k + 1 == layers.size()) {
      heads_from_ = l.from;
      head_ = std::make_shared<YoloHead>(s, str_cat(k), in);
      return;
    }
    Layer made{l, nullptr};
    const std::string path = str_cat(k);
    if (l.type == "Concat") {
      if (s.wholes(path, "d", {1}) != std::vector<int>{1}) s.refuse(str_cat("layer ", k, " joins another axis than 1"));
      out.push_back(0);
      for (const std::int64_t n : in) out.back() += n;
    } else if (in.size() != 1) {
      s.refuse(str_cat("layer ", k, ", a ", in_quotes(l.type), ", reads ", in.size(), " layers"));
    } else if (l.type == "Upsample") {
      constexpr int kMost = 16;
      made.scale = static_cast<int>(s.number(path, "scale_factor", 2));
      if (made.scale < 1 || made.scale > kMost || made.scale != s.number(path, "scale_factor", 2) ||
          s.text(path, "mode", "nearest") != "nearest")
        s.refuse(str_cat("layer ", k, " is an upsampling of another kind than nearest by a whole factor"));
      out.push_back(in[0]);
    } else if (l.type == "Identity") {
      out.push_back(in[0]);
    } else {
      made.part = yolo_part(s, path, in[0], {.type = l.type, .stride = l.stride, .shortcut = l.shortcut});
      out.push_back(made.part->out);
    }
    layers_.push_back(std::move(made));
  }
}

void YoloNet::visit(nn::Visitor& v) {
  for (std::size_t k = 0; k < layers_.size(); ++k)
    if (layers_[k].part) v(str_cat("model.", k), *layers_[k].part);
  v(str_cat("model.", layers_.size()), *head_);
}

Tensor YoloNet::run(const Layer& l, const std::vector<Tensor>& in) const {
  if (l.part) return (*l.part)(in[0]);
  for (const Tensor& x : in)
    if (!(x.extent(2) == in[0].extent(2) && x.extent(3) == in[0].extent(3)))
      throw Error("YoloNet",
                  str_cat("maps of ", str(in[0].shape()), " and ", str(x.shape()), " do not fit: the height and ",
                          "width of a picture are multiples of the largest stride, 32 for most models"));
  if (l.spec.type == "Concat") return cat(in, 1);
  if (l.scale == 1) return in[0];
  constexpr std::int64_t kLargestMap = 1 << 16;  // along one side
  if (number_of(in[0], 2, "YoloNet") * l.scale > kLargestMap || number_of(in[0], 3, "YoloNet") * l.scale > kLargestMap)
    throw Error("YoloNet", str_cat("a map of ", str(in[0].shape()), " cannot be made ", l.scale, " times as large"));
  const auto scale = static_cast<double>(l.scale);
  return interpolate(in[0], InterpolateOptions{.scale_factor = {scale, scale}, .mode = "nearest"});
}

YoloOutput YoloNet::operator()(const Tensor& pictures) const {
  const OpScope scope("YoloNet", nn::At::current());
  std::vector<Tensor> results;
  const auto inputs = [&](const std::vector<int>& from) {
    std::vector<Tensor> all;
    for (const int k : from) all.push_back(k < 0 ? pictures : results[static_cast<std::size_t>(k)]);
    return all;
  };
  for (const Layer& l : layers_) results.push_back(run(l, inputs(l.spec.from)));
  return (*head_)(inputs(heads_from_), pictures);
}

}  // namespace lc
