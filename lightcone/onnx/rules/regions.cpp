// Boxes of images, and convolutions whose taps move.
#include <limits>

#include "lightcone/onnx/read/windows.h"
#include "lightcone/ops/vision/boxes.h"
#include "lightcone/ops/vision/regions.h"

namespace lc::onnx {
namespace {

int count_of(Call& c, std::int64_t n, const char* what) {
  if (n < 0 || n > std::numeric_limits<int>::max()) c.refuse(str_cat("has ", n, " ", what));
  return static_cast<int>(n);
}

Values non_max_suppression_(Call& c) {
  NonMaxSuppressionOptions o;
  o.center_point_box = c.flag("center_point_box");
  const auto number = [&](std::size_t k) {
    const std::vector<double> v = c.numbers(k);
    if (v.size() != 1) c.refuse(str_cat("operand ", k, " has ", v.size(), " elements, not one"));
    return v[0];
  };
  if (c.has(2)) o.max_output_boxes_per_class = std::max<std::int64_t>(c.integer(2), 0);
  if (c.has(3)) o.iou_threshold = number(3);
  if (c.has(4)) o.score_threshold = number(4);
  const SelectedBoxes r = non_max_suppression(c.x(0), c.x(1), o);
  return {Value(r.indices, Value::Count{r.count, 0})};
}

Values roi_align_(Call& c) {
  RoiAlignOptions o;
  o.height = count_of(c, c.integer("output_height", 1), "bins");
  o.width = count_of(c, c.integer("output_width", 1), "bins");
  o.spatial_scale = c.number("spatial_scale", 1);
  o.sampling_ratio = count_of(c, c.integer("sampling_ratio", 0), "samples");
  const std::string_view mode = c.text("mode", "avg");
  if (mode != "avg" && mode != "max") c.refuse("its mode is not avg or max");
  o.largest = mode == "max";
  if (c.opset >= 16) {
    const std::string_view by = c.text("coordinate_transformation_mode", "half_pixel");
    if (by != "half_pixel" && by != "output_half_pixel") c.refuse("its coordinate_transformation_mode is unknown");
    o.aligned = by == "half_pixel";
  }
  c.importer.same_extent(c.x(1).extent(0), c.x(2).extent(0));
  return {roi_align(c.x(0), c.x(1), c.x(2), o)};
}

Values max_roi_pool(Call& c) {
  const Tensor regions = c.x(1);  // [n, 5]: the image, x1, y1, x2, y2
  const Integers bins = c.integers("pooled_shape");
  if (regions.rank() != 2 || !(regions.extent(1) == Dim(5)) || bins.size() != 2)
    c.refuse("needs boxes [n, 5] and a pooled_shape of 2 numbers");
  return {roi_pool(c.x(0), regions.slice(1, 1, 5), regions.select(1, 0).to(DType::I64), count_of(c, bins[0], "bins"),
                   count_of(c, bins[1], "bins"), c.number("spatial_scale", 1))};
}

Values deform_conv_(Call& c) {
  const Tensor x = c.x(0), weight = c.x(1), offset = c.x(2);
  const int n = x.rank() - 2;
  if (n < 1 || weight.rank() != n + 2 || offset.rank() != n + 2) c.refuse("its operands do not fit together");
  const Shape s = weight.shape();
  const Windows w = windows_of(c, x.shape(), fixed(c, Shape(s.begin() + 2, s.end()), "an extent of the filter"));
  DeformConvOptions o{.stride = w.stride, .dilation = w.dilation};
  std::vector<int> before;
  for (std::size_t k = 0; k < w.kernel.size(); ++k) {
    before.push_back(narrow_int(c, fixed(c, w.before[k], "a padding"), "a padding"));
    c.importer.same_extent(offset.extent(2 + static_cast<int>(k)), w.count(k, x.shape()));
  }
  o.padding = before;
  o.groups = count_of(c, c.integer("group", 1), "groups");
  o.offset_groups = count_of(c, c.integer("offset_group", 1), "groups of offsets");
  return {deform_conv(x, weight, offset, c.optional(3), c.optional(4), o)};
}

}  // namespace

void add_regions(Operators& t) {
  const Operator rows[] = {
      {"", "DeformConv", 19, deform_conv_, "deform_conv"},
      {"", "MaxRoiPool", 1, max_roi_pool, "roi_pool"},
      {"", "NonMaxSuppression", 10, non_max_suppression_, "non_max_suppression, with a count"},
      {"", "RoiAlign", 10, roi_align_, "roi_align"},
  };
  t.insert(t.end(), std::begin(rows), std::end(rows));
}

}  // namespace lc::onnx
