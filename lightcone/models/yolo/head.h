// The head of a YOLO: boxes and scores of each cell of several maps.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lightcone/models/yolo/parts.h"

namespace lc {

// What a head gives, as yolo.h describes it.
struct YoloOutput {
  Tensor boxes, scores, raw;
};

// Two branches for each map, of distances to the sides of a box as distributions over bins and of classes (v8 and
// later), or one with the box as a correction of each of a few anchors (v5).
class YoloHead {
 public:
  // `in` are the channels of the maps.
  YoloHead(const YoloSource& s, const std::string& path, const std::vector<std::int64_t>& in);
  void visit(nn::Visitor& v);
  // The strides are those of the maps, in pixels of the pictures.
  YoloOutput operator()(const std::vector<Tensor>& maps, const Tensor& pictures) const;
  std::int64_t classes() const { return classes_; }

 private:
  struct Map {
    YoloPartPtr boxes, classes;  // classes is null with anchors
  };
  Tensor distances(const Tensor& map) const;
  YoloOutput by_distances(const std::vector<Tensor>& maps, const Tensor& pictures) const;
  YoloOutput by_anchors(const std::vector<Tensor>& maps, const Tensor& pictures) const;

  std::vector<Map> maps_;
  std::int64_t classes_ = 0, bins_ = 0, anchors_ = 0;  // anchors of a cell; 0: none
  Tensor anchor_sizes_;                                // [maps, anchors, 2], in strides
};

}  // namespace lc
