// Resizing and sampling of images, and columns of their windows.
#include <algorithm>
#include <cmath>
#include <optional>

#include "lightcone/onnx/read/windows.h"
#include "lightcone/ops/functional/functional.h"
#include "lightcone/ops/vision/resize.h"

namespace lc::onnx {
namespace {

// ---- resizing --------------------------------------------------------------------------------------

// The whole number of times that `to` is `from`, or nullopt.
std::optional<std::int64_t> times_of(const Dim& to, const Dim& from) {
  const auto a = to.constant(), b = from.constant();
  if (a && b) return *b > 0 && *a > 0 && *a % *b == 0 ? std::optional(*a / *b) : std::nullopt;
  for (std::int64_t k = 1; k <= 64; ++k)
    if (to == from * Dim(k)) return k;
  return std::nullopt;
}

// Each element several times.
Tensor repeated(const Tensor& x, int axis, std::int64_t times) {
  Shape one = x.shape(), many, whole = one;
  const auto at = one.begin() + axis + 1;
  one.insert(at, 1);
  many = one;
  many[static_cast<std::size_t>(axis) + 1] = times;
  whole[static_cast<std::size_t>(axis)] = whole[static_cast<std::size_t>(axis)] * Dim(times);
  return x.reshape(one).expand(many).reshape(whole);
}

// True if "nearest" with whole scales takes each element as often as the scale says.
bool repeats(const ResizeOptions& o) {
  const std::string_view by = o.coordinate_transformation_mode;
  if (o.mode != "nearest") return false;
  if (by == "asymmetric" || by == "tf_half_pixel_for_nn") return o.nearest_mode == "floor";
  return (by == "half_pixel" || by == "half_pixel_symmetric") && o.nearest_mode.starts_with("round_");
}

// Resizes the axes that are repeated as views, whose extents may be symbols, and the others with resize().
Tensor resized(const Tensor& x, ResizeOptions o) {
  if (o.axes.empty()) o.axes = all_axes(x.rank());
  if (!repeats(o) || o.keep_aspect_ratio_policy != "stretch") return resize(x, o);
  const std::size_t given = o.scales.empty() ? o.sizes.size() : o.scales.size();
  if (given != o.axes.size()) return resize(x, o);  // which says what is wrong
  Tensor t = x;
  ResizeOptions rest = o;
  rest.axes.clear(), rest.scales.clear(), rest.sizes.clear();
  for (std::size_t k = 0; k < o.axes.size(); ++k) {
    const int axis = o.axes[k];
    std::optional<std::int64_t> times;
    if (o.scales.empty()) times = times_of(o.sizes[k], x.extent(axis));
    else if (o.scales[k] >= 1 && o.scales[k] < 0x1p31 && o.scales[k] == std::floor(o.scales[k]))
      times = static_cast<std::int64_t>(o.scales[k]);
    if (times) {
      if (*times > 1) t = repeated(t, axis, *times);
      continue;
    }
    rest.axes.push_back(axis);
    if (o.scales.empty()) rest.sizes.push_back(o.sizes[k]);
    else rest.scales.push_back(o.scales[k]);
  }
  return rest.axes.empty() ? t : resize(t, rest);
}

// Up to operator set 10 positions are x / scale; of two elements the lower one is taken, if the axis shrinks the upper.
Tensor resized_as_before_11(Call& c, const Tensor& x, const std::vector<double>& scales, std::string_view mode) {
  if (scales.size() != static_cast<std::size_t>(x.rank()))
    c.refuse(str_cat("has ", scales.size(), " scales for ", str(x.shape())));
  if (mode == "bilinear" || mode == "trilinear") mode = "linear";
  Tensor t = x;
  for (std::size_t k = 0; k < scales.size(); ++k)
    t = resized(t, {.scales = {scales[k]},
                    .axes = {static_cast<int>(k)},
                    .mode = mode,
                    .coordinate_transformation_mode = "asymmetric",
                    .nearest_mode = scales[k] < 1 ? "ceil" : "floor"});
  return t;
}

Values upsample(Call& c) {
  const Tensor x = c.x();
  const std::string_view mode = c.text("mode", "nearest");
  if (c.opset >= 9) return {resized_as_before_11(c, x, c.numbers(1), mode)};
  if (c.opset >= 7) return {resized_as_before_11(c, x, c.numbers("scales"), mode)};
  return {resized_as_before_11(c, x, {1, 1, c.number("height_scale", 1), c.number("width_scale", 1)}, mode)};
}

bool is_given(const Call& c, std::size_t k) {  // an operand without elements counts as absent
  const Tensor t = c.optional(k);
  return t.defined() && !(product(t.shape()) == Dim(0));
}
Values resize_(Call& c) {
  const Tensor x = c.x();
  ResizeOptions o;
  o.mode = c.text("mode", "nearest");
  if (c.opset < 11) return {resized_as_before_11(c, x, c.numbers(1), o.mode)};
  o.coordinate_transformation_mode = c.text("coordinate_transformation_mode", "half_pixel");
  o.nearest_mode = c.text("nearest_mode", "round_prefer_floor");
  o.cubic_coeff_a = c.number("cubic_coeff_a", -0.75);
  o.exclude_outside = c.flag("exclude_outside");
  o.antialias = c.flag("antialias") && o.mode != "nearest";
  o.extrapolation_value = c.number("extrapolation_value", 0);
  o.keep_aspect_ratio_policy = c.text("keep_aspect_ratio_policy", "stretch");
  for (const std::int64_t a : c.integers("axes", {})) o.axes.push_back(c.wrap(a, x.rank()));
  if (o.coordinate_transformation_mode == "tf_crop_and_resize") o.roi = c.numbers(1);
  if (is_given(c, 2)) {
    o.scales = c.numbers(2);
    o.keep_aspect_ratio_policy = "stretch";
  } else if (is_given(c, 3)) {
    const std::vector<Dim> sizes = c.dims(3);
    o.sizes.assign(sizes.begin(), sizes.end());
  } else {
    c.refuse("has neither scales nor sizes");
  }
  return {resized(x, o)};
}

// ---- sampling --------------------------------------------------------------------------------------

Values grid_sample_(Call& c) {
  Tensor x = c.x(0), grid = c.x(1);
  std::string_view mode = c.text("mode", c.opset < 20 ? "bilinear" : "linear");
  if (mode == "linear") mode = "bilinear";
  if (mode == "cubic") mode = "bicubic";
  const std::string_view outside = c.text("padding_mode", "zeros");
  const bool align = c.flag("align_corners");
  c.importer.same_extent(x.extent(0), grid.extent(0));
  const DType type = x.dtype();
  if (!is_float(type)) x = x.to(size_of(type) > 2 ? DType::F64 : DType::F32);
  grid = grid.to(x.dtype());
  const bool line = x.rank() == 3 && grid.rank() == 3;  // as an image of one row
  if (line) {
    x = x.unsqueeze(2), grid = grid.unsqueeze(1);
    grid = concat({grid, zeros_like(grid)}, 3);
  }
  const Tensor y = grid_sample(x, grid, mode, outside, align).to(type);
  return {line ? y.squeeze(2) : y};
}

Values affine_grid_(Call& c) {
  const std::vector<Dim> size = c.dims(1);
  const bool align = c.flag("align_corners");
  if (size.empty()) c.refuse("has an empty size");
  c.importer.same_extent(c.x(0).extent(0), size[0]);
  return {affine_grid(c.x(0), Shape(size.begin(), size.end()), align)};
}

// ---- columns ---------------------------------------------------------------------------------------

// Adds the elements of windows [n, c k..., windows] at their places in images [n, c, image...].
Values col2im(Call& c) {
  Tensor x = c.x(0);
  const Integers image = c.integers(1), block = c.integers(2);
  const int n = static_cast<int>(image.size());
  if (n < 1 || block.size() != image.size() || x.rank() != 3) c.refuse("its shapes do not fit together");
  const std::vector<int> stride = numbers_of_axes(c, "strides", n, 1, 1),
                         dilation = numbers_of_axes(c, "dilations", n, 1, 1);
  const Integers pads = pads_of(c, n);
  Dim area = 1, pixels = 1, windows = 1, at = 0, inside = 1;
  Shape parts{x.extent(0), 0}, to{x.extent(0), 0};
  for (std::size_t k = 0; k < image.size(); ++k) {
    if (image[k] < 1 || block[k] < 1) c.refuse("has an extent below 1");
    parts.push_back(block[k]), to.push_back(image[k]);
    area = area * Dim(block[k]), pixels = pixels * Dim(image[k]);
  }
  for (std::size_t k = 0; k < image.size(); ++k) {
    const Dim reach = Dim(block[k] - 1) * Dim(dilation[k]) + 1;
    const Dim count = (Dim(image[k]) + pads[k] + pads[image.size() + k] - reach) / Dim(stride[k]) + 1;
    if (count.bounds().hi < 1) c.refuse("a window does not fit into its image");
    const Dim tap = Dim::index(2 + static_cast<int>(k), block[k]),
              window = Dim::index(2 + n + static_cast<int>(k), count);
    const Dim place = window * Dim(stride[k]) + tap * Dim(dilation[k]) - pads[k];
    at = at * Dim(image[k]) + place;
    inside = inside * less(-1, place) * less(place, image[k]);
    parts.push_back(count);
    windows = windows * count;
  }
  c.importer.same_extent(x.extent(2), windows);
  const Dim channels = x.extent(1) / area;
  c.importer.same_extent(x.extent(1), channels * area);
  parts[1] = to[1] = channels;
  const Shape row{x.extent(0), channels, area * windows};
  const Tensor places = x.graph().index(parts, (at + 1) * inside - 1, DType::I64).reshape(row);
  const Tensor none = full(x.graph(), {x.extent(0), channels, pixels}, 0, x.dtype());
  return {scatter_add(none, 2, places, x.reshape(row)).reshape(to)};
}

}  // namespace

void add_images(Operators& t) {
  const Operator rows[] = {
      {"", "AffineGrid", 20, affine_grid_, "affine_grid"},
      {"", "Col2Im", 18, col2im, "scatter_add"},
      {"", "GridSample", 16, grid_sample_, "grid_sample"},
      {"", "ImageDecoder", 20, nullptr, "decodes files: decode images with lightcone/io/images before the model runs"},
      {"", "Resize", 10, resize_, "resize; views where elements are repeated"},
      {"", "Upsample", 1, upsample, "resize; views where elements are repeated"},
  };
  t.insert(t.end(), std::begin(rows), std::end(rows));
}

}  // namespace lc::onnx
