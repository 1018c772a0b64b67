// torchvision's networks by their names there, and the pictures they were trained on.
//
//   Graph g;
//   nn::Model<VisionModel> net(g, vision_model("resnet50"));
//   net(g.input("pictures", {1, 3, 224, 224})).retrieve("logits");
//   Program program = compile(g, generic() | cpu());
//   load(program, Weights::open("resnet50.safetensors"));   // or first values: net.initialise(program, seed)
#pragma once

#include <string_view>
#include <variant>
#include <vector>

#include "lightcone/io/data/array.h"
#include "lightcone/models/resnet/resnet.h"
#include "lightcone/models/vgg/vgg.h"

namespace lc {

// Any of the networks as a module: pictures [n, 3, height, width] to logits [n, num_classes].
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

struct VisionOptions {
  std::int64_t num_classes = 1000;
  int width_divisor = 1;  // a small one: all widths but those of pictures and classes are divided by it
};
// vgg11, vgg11_bn, ..., vgg19_bn, resnet18, ..., resnet152, resnext50_32x4d, ..., wide_resnet101_2.
const std::vector<std::string_view>& vision_model_names();
// Error for a name that is none of them.
VisionModel vision_model(std::string_view name, const VisionOptions& o = {});

struct PictureOptions {
  std::int64_t resize_size = 256;  // of the shorter side, before
  std::int64_t crop_size = 224;    // of both sides of the centre are kept
  std::vector<float> mean = {0.485f, 0.456f, 0.406f}, std = {0.229f, 0.224f, 0.225f};  // of the channels: ImageNet's
};
// A picture u8 [3, height, width], as read_image() gives it, as the networks want it: f32 [3, crop_size, crop_size]
// (torchvision's preset ImageClassification, which is what `weights.transforms()` returns). Error for another array,
// and for a picture that is more than a hundred times as long as wide.
Array picture_for_classification(const Array& picture, const PictureOptions& o = {});

}  // namespace lc
