// Networks of torchvision by name, and the preprocessing of their pictures.
//
//   Graph g;
//   nn::Model<VisionModel> net(g, vision_model("resnet50"));
//   net(g.input("pictures", {1, 3, 224, 224})).retrieve("logits");
//   Program program = compile(g, generic() | cpu());
//   load(program, Weights::open("resnet50.safetensors"));   // or initial values: net.initialise(program, seed)
#pragma once

#include <string_view>
#include <variant>
#include <vector>

#include "lightcone/io/data/array.h"
#include "lightcone/models/resnet/resnet.h"
#include "lightcone/models/vgg/vgg.h"

namespace lc {

// Any of the networks as a module: pictures [n, 3, height, width] -> logits [n, num_classes].
class VisionModel {
 public:
  VisionModel(VGG net) : net_(std::move(net)) {}
  VisionModel(ResNet net) : net_(std::move(net)) {}
  void visit(nn::Visitor& v) {
    std::visit([&](auto& net) { net.visit(v); }, net_);
  }
  template <class Mode>
  Tensor operator()(const Tensor& pictures, Mode& mode) const {
    return std::visit([&](const auto& net) { return net(pictures, mode); }, net_);
  }

 private:
  std::variant<VGG, ResNet> net_;
};

// Options of vision_model().
struct VisionOptions {
  std::int64_t num_classes = 1000;
  int width_divisor = 1;  // divides all widths but those of pictures and classes, for small networks
};
// The names for vision_model(): vgg11, vgg11_bn, ..., vgg19_bn, resnet18, ..., resnet152, resnext50_32x4d, ...,
// wide_resnet101_2.
const std::vector<std::string_view>& vision_model_names();
// Returns the network with this name. Throws Error for an unknown name.
VisionModel vision_model(std::string_view name, const VisionOptions& o = {});

// Options of picture_for_classification(), with ImageNet's defaults.
struct PictureOptions {
  std::int64_t resize_size = 256;  // extent of the shorter side after resizing
  std::int64_t crop_size = 224;    // extent of both sides of the central crop
  std::vector<float> mean = {0.485f, 0.456f, 0.406f}, std = {0.229f, 0.224f, 0.225f};  // per channel
};
// Preprocesses a picture u8 [3, height, width] of read_image() for the networks: f32 [3, crop_size, crop_size]
// (torchvision's preset ImageClassification, returned by `weights.transforms()`). Throws Error for another array, and
// for a picture that is more than a hundred times as long as wide.
Array picture_for_classification(const Array& picture, const PictureOptions& o = {});

}  // namespace lc
