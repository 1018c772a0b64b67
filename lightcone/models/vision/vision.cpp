#include "lightcone/models/vision/vision.h"

#include <algorithm>
#include <utility>

#include "lightcone/io/data/transforms.h"
#include "lightcone/runtime/names.h"

namespace lc {
namespace {

constexpr std::pair<std::string_view, VGGOptions> kVggs[] = {
    {"vgg11", {.depth = 11}}, {"vgg11_bn", {.depth = 11, .batch_norm = true}},
    {"vgg13", {.depth = 13}}, {"vgg13_bn", {.depth = 13, .batch_norm = true}},
    {"vgg16", {.depth = 16}}, {"vgg16_bn", {.depth = 16, .batch_norm = true}},
    {"vgg19", {.depth = 19}}, {"vgg19_bn", {.depth = 19, .batch_norm = true}},
};
constexpr std::pair<std::string_view, ResNetOptions> kResNets[] = {
    {"resnet18", {.depth = 18}},
    {"resnet34", {.depth = 34}},
    {"resnet50", {.depth = 50}},
    {"resnet101", {.depth = 101}},
    {"resnet152", {.depth = 152}},
    {"resnext50_32x4d", {.depth = 50, .groups = 32, .width_per_group = 4}},
    {"resnext101_32x8d", {.depth = 101, .groups = 32, .width_per_group = 8}},
    {"resnext101_64x4d", {.depth = 101, .groups = 64, .width_per_group = 4}},
    {"wide_resnet50_2", {.depth = 50, .width_per_group = 128}},
    {"wide_resnet101_2", {.depth = 101, .width_per_group = 128}},
};

constexpr std::int64_t kNarrowest = 100;  // maximum ratio of the sides

template <class Options>
Options with(Options named, const VisionOptions& o) {
  named.num_classes = o.num_classes;
  named.width_divisor = o.width_divisor;
  return named;
}

}  // namespace

const std::vector<std::string_view>& vision_model_names() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all;
    for (const auto& [name, o] : kVggs) all.push_back(name);
    for (const auto& [name, o] : kResNets) all.push_back(name);
    return all;
  }();
  return names;
}

VisionModel vision_model(std::string_view name, const VisionOptions& o) {
  for (const auto& [known, options] : kVggs)
    if (known == name) return VGG(with(options, o));
  for (const auto& [known, options] : kResNets)
    if (known == name) return ResNet(with(options, o));
  throw Error("vision_model", str_cat("there is no '", name, "'; ", names_near(name, vision_model_names())));
}

Array picture_for_classification(const Array& picture, const PictureOptions& o) {
  if (picture.dtype != DType::U8 || picture.shape.size() != 3 || picture.shape[0] != 3 || picture.bytes.empty())
    throw Error("picture_for_classification",
                str_cat("needs a picture u8 [3, height, width], as read_image() gives it, not ", name(picture.dtype),
                        " with ", picture.shape.size(), " axes"));
  const std::int64_t height = picture.shape[1], width = picture.shape[2], shorter = std::min(height, width);
  if (shorter * kNarrowest < std::max(height, width))  // its resized form would fill the memory
    throw Error("picture_for_classification",
                str_cat("a picture of ", height, " x ", width, " is too narrow to be resized"));
  Transforms list({Resize{o.resize_size * height / shorter, o.resize_size * width / shorter},
                   CenterCrop{o.crop_size, o.crop_size}, ToFloat{}, Normalize{o.mean, o.std}},
                  picture.dtype, picture.shape);
  Array out = Array::zeros(list.dtype(), list.shape());
  list.apply(picture.bytes.data(), out.bytes.data(), {0, 0, 0});
  return out;
}

}  // namespace lc
