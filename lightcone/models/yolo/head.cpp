#include "lightcone/models/yolo/head.h"

#include "lightcone/io/printable.h"
#include "lightcone/models/blocks/patch_embedding.h"
#include "lightcone/ops/creation.h"
#include "lightcone/ops/shape.h"

namespace lc {
namespace {

constexpr const char* kWho = "YoloHead";

// The columns and rows of the cells of a map [.., h, w], with 0.5 for the middle of the first: f32 [h w, 2].
Tensor cells(const Tensor& map, double middle) {
  const std::int64_t h = number_of(map, 2, kWho), w = number_of(map, 3, kWho);
  Graph& g = map.graph();
  const Tensor x = (to(arange(g, w), DType::F32) + middle).reshape({1, w}).expand({h, w});
  const Tensor y = (to(arange(g, h), DType::F32) + middle).reshape({h, 1}).expand({h, w});
  return stack({x.reshape({h * w}), y.reshape({h * w})}, 1);
}

// Pixels of the picture for one cell of a map. Throws Error unless both axes have the same.
double stride_of(const Tensor& map, const Tensor& pictures) {
  const std::int64_t h = number_of(map, 2, kWho), w = number_of(map, 3, kWho);
  const std::int64_t height = number_of(pictures, 2, kWho), width = number_of(pictures, 3, kWho);
  if (height % h != 0 || width % w != 0 || height / h != width / w)
    throw Error(kWho, str_cat("a picture of ", height, " x ", width, " has no whole strides in a map of ", h, " x ", w,
                              ": extents have to be multiples of the largest stride, 32 for most models"));
  return static_cast<double>(height / h);
}

// [batch, numbers, h, w] -> [batch, h w, numbers].
Tensor rows(const Tensor& map) {
  return map.reshape({map.extent(0), map.extent(1), map.extent(2) * map.extent(3)}).permute({0, 2, 1});
}

}  // namespace

YoloHead::YoloHead(const YoloSource& s, const std::string& path, const std::vector<std::int64_t>& in) {
  const bool anchored = s.has(path + ".m.0.weight");
  if (s.has(path + ".one2one_cv2.0.2.weight"))
    s.refuse("heads of one box for each object (YOLOv10, YOLO26) are not supported");
  for (std::size_t k = 0; k < in.size(); ++k) {
    Map m;
    m.boxes = yolo_part(s, str_cat(path, anchored ? ".m." : ".cv2.", k), in[k]);
    if (!anchored) m.classes = yolo_part(s, str_cat(path, ".cv3.", k), in[k]);
    maps_.push_back(m);
  }
  const auto same = [&](const Map& m) {
    return m.boxes->out == maps_[0].boxes->out && (anchored || m.classes->out == maps_[0].classes->out);
  };
  for (const Map& m : maps_)
    if (!same(m)) s.refuse("the maps of the head have different numbers of classes or bins");
  const std::int64_t numbers = maps_[0].boxes->out;
  if (anchored) {
    const std::vector<std::int64_t>& sizes = s.shape(path + ".anchors", 3);
    anchors_ = sizes[1], classes_ = numbers / anchors_ - 5;
    if (sizes[0] != std::ssize(in) || sizes[2] != 2 || numbers % anchors_ != 0 || classes_ < 1)
      s.refuse(str_cat("the head has anchors that do not fit to its ", numbers, " numbers for a cell"));
  } else {
    bins_ = numbers / 4, classes_ = maps_[0].classes->out;
    if (numbers % 4 != 0) s.refuse(str_cat("the head has ", numbers, " numbers for the four sides of a box"));
  }
}

void YoloHead::visit(nn::Visitor& v) {
  for (std::size_t k = 0; k < maps_.size(); ++k) {
    v(str_cat(anchors_ > 0 ? "m." : "cv2.", k), *maps_[k].boxes);
    if (maps_[k].classes) v(str_cat("cv3.", k), *maps_[k].classes);
  }
  if (anchors_ > 0) v.parameter("anchors", anchor_sizes_, {std::ssize(maps_), anchors_, 2}, nn::constant_init(1));
}

// The distances of a map [batch, 4 bins, h, w] in cells, [batch, h w, 4]: the mean of a distribution over 0, 1, ... It
// is taken where the numbers of a cell lie far apart, so that neighbouring cells are computed at once.
Tensor YoloHead::distances(const Tensor& map) const {
  const Dim batch = map.extent(0), area = map.extent(2) * map.extent(3);
  const Tensor sides = map.reshape({batch, 4, bins_, area});
  if (bins_ == 1) return sides.squeeze(2).permute({0, 2, 1});
  const Tensor bins = to(arange(map.graph(), bins_), DType::F32).reshape({1, 1, bins_, 1});
  const Tensor e = exp(sides - amax(sides, {2}, true));
  return (sum(e * bins, {2}) / sum(e, {2})).permute({0, 2, 1});
}

YoloOutput YoloHead::by_distances(const std::vector<Tensor>& maps, const Tensor& pictures) const {
  std::vector<Tensor> raw, boxes, scores;
  for (std::size_t k = 0; k < maps.size(); ++k) {
    const Tensor numbers = (*maps_[k].boxes)(maps[k]), classes = (*maps_[k].classes)(maps[k]);
    raw.push_back(cat({rows(numbers), rows(classes)}, 2));
    const double stride = stride_of(maps[k], pictures);
    const Tensor middle = cells(maps[k], 0.5), sides = distances(numbers);
    boxes.push_back(cat({middle - narrow(sides, 2, 0, 2), middle + narrow(sides, 2, 2, 2)}, 2) * stride);
    scores.push_back(rows(sigmoid(classes)));
  }
  return {cat(boxes, 1), cat(scores, 1), cat(raw, 1)};
}

YoloOutput YoloHead::by_anchors(const std::vector<Tensor>& maps, const Tensor& pictures) const {
  std::vector<Tensor> raw, boxes, scores;
  for (std::size_t k = 0; k < maps.size(); ++k) {
    const Tensor map = (*maps_[k].boxes)(maps[k]);
    const Dim batch = map.extent(0), area = map.extent(2) * map.extent(3);
    const Tensor numbers = map.reshape({batch, anchors_, 5 + classes_, area}).permute({0, 1, 3, 2});
    raw.push_back(numbers.reshape({batch, area * Dim(anchors_), 5 + classes_}));
    const Tensor y = sigmoid(numbers);
    const double stride = stride_of(maps[k], pictures);
    const Tensor middle = (narrow(y, 3, 0, 2) * 2.0 + cells(maps[k], -0.5)) * stride;
    const Tensor doubled = narrow(y, 3, 2, 2) * 2.0;
    const Tensor sizes = select(anchor_sizes_, 0, static_cast<std::int64_t>(k)).reshape({anchors_, 1, 2}) * stride;
    const Tensor half = doubled * doubled * sizes / 2.0;
    boxes.push_back(cat({middle - half, middle + half}, 3).reshape({batch, area * Dim(anchors_), 4}));
    scores.push_back((narrow(y, 3, 4, 1) * narrow(y, 3, 5, classes_)).reshape({batch, area * Dim(anchors_), classes_}));
  }
  return {cat(boxes, 1), cat(scores, 1), cat(raw, 1)};
}

YoloOutput YoloHead::operator()(const std::vector<Tensor>& maps, const Tensor& pictures) const {
  return anchors_ > 0 ? by_anchors(maps, pictures) : by_distances(maps, pictures);
}

}  // namespace lc
