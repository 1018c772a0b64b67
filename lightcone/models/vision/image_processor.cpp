#include "lightcone/models/vision/image_processor.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "lightcone/io/printable.h"
#include "lightcone/ops/ops.h"
#include "lightcone/ops/shape.h"
#include "lightcone/ops/vision/pictures.h"
#include "lightcone/ops/vision/resize.h"
#include "lightcone/runtime/default_compiler.h"
#include "lightcone/runtime/program.h"

namespace lc {
namespace {

using Config = ImageProcessorConfig;
constexpr std::int64_t kThinnest = 100;  // maximum ratio of the sides: a resized one would fill the memory

// What the classes of transformers do where the file says nothing.
struct Preset {
  std::string_view name;  // before "ImageProcessor" and "FeatureExtractor"
  int filter;             // Pillow's number
  std::int64_t size;
  bool shortest, crops;
};
constexpr Preset kPresets[] = {
    {"ViT", 2, 224, false, false},       {"CLIP", 3, 224, true, true},
    {"Siglip", 3, 224, false, false},    {"DeiT", 3, 256, false, true},
    {"Bit", 3, 224, true, true},         {"ConvNext", 3, 384, true, false},
    {"Segformer", 2, 512, false, false}, {"EfficientNet", 3, 346, false, false},
    {"MobileNetV2", 2, 256, true, true}, {"MobileNetV1", 2, 256, true, true},
    {"Detr", 2, 800, true, false},
};
const Preset* kind_of(const ConfigFile& file) {
  std::string name = file.text("image_processor_type");
  if (name.empty()) name = file.text("feature_extractor_type");
  for (const std::string_view end : {"Fast", "ImageProcessor", "FeatureExtractor"})
    if (name.ends_with(end)) name.resize(name.size() - end.size());
  for (const Preset& k : kPresets)
    if (k.name == name) return &k;
  if (!name.empty()) file.fail("pictures are prepared by ", in_quotes(name), ", which is not known");
  return nullptr;
}

Config::Filter filter_of(const ConfigFile& file, const Preset* kind) {
  if (!file.has("resample") && !kind) file.fail("there is no resample, which says how a picture is resized");
  switch (file.id("resample", kind ? kind->filter : 0)) {
    case 0: return Config::Filter::Nearest;
    case 2: return Config::Filter::Bilinear;
    case 3: return Config::Filter::Bicubic;
    default:
      file.fail("resample is ", file.id("resample", 0), "; 0 (nearest), 2 (bilinear) and 3 (bicubic) are supported");
  }
}

// "size": a number, or an object of a height and a width, or of the extents of sides.
void read_size(const ConfigFile& file, const Preset* kind, Config& c) {
  const bool shortest = kind && kind->shortest;
  c.resize = shortest ? Config::Resize::Shortest : Config::Resize::Stretch;
  if (!file.has("size")) {
    if (!kind) file.fail("there is no size");
    c.size = {kind->size, kind->size};
    if (kind->name == "Detr") c.longest = 1333;
    return;
  }
  if (!file.is_object("size")) {
    const PictureSize s = size_of_key(file, "size", 0);
    c.size = s;
    c.longest = file.has("max_size") ? file.size("max_size") : 0;
    return;
  }
  const ConfigFile size = file.section("size");
  if (size.has("shortest_edge")) {
    c.resize = Config::Resize::Shortest;
    c.size.height = c.size.width = size.size("shortest_edge");
    c.longest = size.has("longest_edge") ? size.size("longest_edge") : 0;
  } else {
    c.resize = Config::Resize::Stretch;
    c.size = {size.size("height"), size.size("width")};
  }
  size.require_all_known("the size of pictures");
}

PictureSize read_crop(const ConfigFile& file, const PictureSize& otherwise) {
  if (!file.has("crop_size")) return otherwise;
  if (!file.is_object("crop_size")) return size_of_key(file, "crop_size", 0);
  const ConfigFile crop = file.section("crop_size");
  const PictureSize s{crop.size("height"), crop.size("width")};
  crop.require_all_known("the size of a crop");
  return s;
}

// ConvNeXt's: small sizes are crops of a picture that is a little larger, others are stretched.
void read_crop_pct(const ConfigFile& file, Config& c) {
  constexpr std::int64_t kStretched = 384;
  const double part = file.number("crop_pct", 224.0 / 256);
  if (!(part > 0 && part <= 1)) file.fail("crop_pct is ", part, ", and not above 0 and at most 1");
  if (c.size.height >= kStretched) {
    c.resize = Config::Resize::Stretch;
    return;
  }
  c.crop = c.size;
  c.size.height = c.size.width = static_cast<std::int64_t>(static_cast<double>(c.size.height) / part);
}

}  // namespace

ImageProcessor ImageProcessor::of(const ConfigFile& file) {
  const Preset* kind = kind_of(file);
  Config c;
  if (file.flag("do_resize", true)) {
    c.filter = filter_of(file, kind);
    read_size(file, kind, c);
  }
  if (file.has("crop_pct") || (kind && kind->name == "ConvNext")) {
    if (c.resize == Config::Resize::Shortest) read_crop_pct(file, c);
  } else if (file.flag("do_center_crop", kind && kind->crops)) {
    c.crop = read_crop(file, {224, 224});
  }
  if (file.flag("do_rescale", true)) c.rescale = file.number("rescale_factor", 1.0 / 255);
  if (file.flag("do_normalize", true)) {
    c.mean = file.numbers("image_mean"), c.std = file.numbers("image_std");
    if (c.mean.empty() || c.std.empty()) file.fail("there is no image_mean or no image_std");
    c.mean.resize(3, c.mean[0]), c.std.resize(3, c.std[0]);
    for (const double s : c.std)
      if (!(s > 0)) file.fail("image_std has ", s, ", which is not above 0");
  }
  c.twice = kind && kind->name == "EfficientNet" && !c.std.empty() && file.flag("include_top", true);
  file.lacks({"rescale_offset", "size_divisor", "do_flip_channel_order", "do_thumbnail", "do_align_long_axis"});
  // these concern batches, masks of training, or the classes that read the file
  file.neutral({"do_pad",           "pad_size",          "do_convert_rgb",    "do_convert_annotations",
                "do_reduce_labels", "reduce_labels",     "processor_class",   "format",
                "data_format",      "input_data_format", "default_to_square", "size",
                "crop_size",        "resample",          "crop_pct",          "image_mean",
                "image_std",        "rescale_factor",    "do_center_crop",    "max_size",
                "device",           "disable_grouping",  "return_tensors",    "include_top"});
  file.require_all_known("preprocessor_config.json");
  for (const std::int64_t n : {c.size.height, c.size.width, c.crop.height, c.crop.width, c.longest})
    if (constexpr std::int64_t kMost = 16'384; n > kMost) file.fail("pictures of ", n, " pixels are not supported");
  return ImageProcessor(c);
}

ImageProcessor ImageProcessor::load(const std::string& path, const ReadOptions& o) {
  std::error_code none;
  const bool folder = std::filesystem::is_directory(path, none);
  return of(ConfigFile(folder ? (std::filesystem::path(path) / "preprocessor_config.json").string() : path, o));
}

PictureSize ImageProcessor::resized(const PictureSize& p) const {
  if (c_.resize == Config::Resize::None) return p;
  if (c_.resize == Config::Resize::Stretch) return c_.size;
  const bool tall = p.height > p.width;
  const double shorter = static_cast<double>(std::min(p.height, p.width)),
               longer = static_cast<double>(std::max(p.height, p.width));
  std::int64_t side = c_.size.height;
  double exact = static_cast<double>(side);
  if (c_.longest > 0 && longer / shorter * exact > static_cast<double>(c_.longest)) {
    exact = static_cast<double>(c_.longest) * shorter / longer;
    side = std::max<std::int64_t>(1, std::llrint(exact));
  }
  const auto other = std::max<std::int64_t>(1, static_cast<std::int64_t>(exact * longer / shorter));
  return tall ? PictureSize{other, side} : PictureSize{side, other};
}

PictureSize ImageProcessor::size_of(const PictureSize& picture) const {
  return c_.crop.height > 0 ? c_.crop : resized(picture);
}

namespace {

// One axis as Pillow does, rounded to bytes.
Tensor resized_axis(const Tensor& x, int axis, std::int64_t to, Config::Filter filter) {
  if (x.extent(axis) == Dim(to)) return x;
  ResizeOptions o{.sizes = {to}, .axes = {axis}};
  if (filter == Config::Filter::Nearest) {
    o.nearest_mode = "round_prefer_ceil";
    return resize(x, o);
  }
  o.mode = filter == Config::Filter::Bicubic ? "cubic" : "linear";
  o.cubic_coeff_a = -0.5, o.antialias = true, o.exclude_outside = true;
  return clamp(floor(resize(x, o) + 0.5), 0, 255);
}

// The middle of an axis; the pixel more of an odd rest is after it, as in transformers.
Tensor cropped_axis(const Tensor& x, int axis, std::int64_t to) {
  const std::int64_t n = *x.extent(axis).constant(), rest = n - to;
  if (rest >= 0) return narrow(x, axis, rest / 2, to);
  const std::int64_t before = (-rest + 1) / 2;
  return x.pad(axis, before, -rest - before);
}

}  // namespace

Tensor ImageProcessor::operator()(const Tensor& picture) const {
  const OpScope scope("ImageProcessor", Tensor::At::current());
  const auto extent = [&](int axis) { return picture.rank() == 3 ? picture.extent(axis).constant().value_or(0) : 0; };
  const std::int64_t h = extent(1), w = extent(2);
  if (h < 1 || w < 1 || picture.extent(0) != Dim(3))
    throw Error("ImageProcessor", str_cat("needs a picture u8 [3, height, width], not ", str(picture.shape())));
  Tensor x = unsqueeze(to(picture, DType::F32), 0);
  const PictureSize size = resized({h, w});
  if (constexpr std::int64_t kMostPixels = 1 << 28; size.height * size.width > kMostPixels)
    throw Error("ImageProcessor", str_cat("a picture of ", h, " x ", w, " becomes one of ", size.height, " x ",
                                          size.width, ", which is more than is supported"));
  x = resized_axis(resized_axis(x, 3, size.width, c_.filter), 2, size.height, c_.filter);
  if (c_.crop.height > 0) x = cropped_axis(cropped_axis(x, 2, c_.crop.height), 3, c_.crop.width);
  if (c_.rescale != 1) x = x * c_.rescale;
  if (!c_.mean.empty()) x = normalize_picture(x, c_.mean, c_.std);
  if (c_.twice) x = normalize_picture(x, {0, 0, 0}, c_.std);
  return x;
}

Array ImageProcessor::apply(const Array& picture) const {
  if (picture.dtype != DType::U8 || picture.shape.size() != 3 || picture.shape[0] != 3 || picture.bytes.empty())
    throw Error("ImageProcessor", str_cat("needs a picture u8 [3, height, width], as read_image() gives it, not ",
                                          name(picture.dtype), " with ", picture.shape.size(), " axes"));
  const std::int64_t h = picture.shape[1], w = picture.shape[2];
  if (std::min(h, w) * kThinnest < std::max(h, w))
    throw Error("ImageProcessor", str_cat("a picture of ", h, " x ", w, " is too narrow to be resized"));
  Graph g;
  g.output("pixel_values", (*this)(g.input("picture", {3, h, w}, DType::U8)));
  const Program program = compile(g, default_compiler());
  Context run(program);
  run.set("picture", picture).run();
  Array out = Array::zeros(DType::F32, run.shape("pixel_values"));
  std::ranges::copy(run.bytes("pixel_values"), out.bytes.begin());
  return out;
}

}  // namespace lc
