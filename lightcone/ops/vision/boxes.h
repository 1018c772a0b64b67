// Boxes in images: their overlap and non-maximum suppression, with results of bounded size.
//
// A box [.., 4] is given by two opposite corners x1, y1, x2, y2. Graphs have static shapes, so suppression has room for
// a number of results that is known when the graph is built, and a count of those found.
#pragma once

#include <cstdint>
#include <optional>

#include "lightcone/ops/ops.h"

namespace lc {

// The areas [..] of boxes [.., 4] (torchvision.ops.box_area).
Tensor box_area(Operand boxes);
// Intersection over union of each box of a [n, 4] with each of b [m, 4] -> [n, m] (torchvision.ops.box_iou).
Tensor box_iou(Operand a, Operand b);
// Converts between "xyxy" (corners), "xywh" (first corner, size) and "cxcywh" (centre, size), as
// torchvision.ops.box_convert does.
Tensor box_convert(Operand boxes, std::string_view from, std::string_view to);
// Moves corners into an image: x to [0, width], y to [0, height] (torchvision.ops.clip_boxes_to_image).
Tensor clip_boxes(Operand boxes, double height, double width);

// The inputs and attributes of ONNX's NonMaxSuppression that are not tensors, with its names and defaults.
struct NonMaxSuppressionOptions {
  std::int64_t max_output_boxes_per_class = 0;  // 0 selects nothing
  double iou_threshold = 0;                     // boxes that overlap a selected one by more are suppressed
  std::optional<double> score_threshold = {};   // only scores above it are candidates
  bool center_point_box = false;                // boxes are x_center, y_center, width, height
};
struct SelectedBoxes {
  // i64 [b c m, 3], m = min(max_output_boxes_per_class, n): batch, class and box of each selected box; by batch, then
  // class, then descending score. Rows after the last hold -1.
  Tensor indices;
  Tensor count;  // i64 []
};
// Non-maximum suppression in each class of each image: boxes [b, n, 4] (corners may be given in any order, as y1, x1,
// y2, x2 or x1, y1, x2, y2), scores [b, c, n]. Of equal scores the first box is selected. Scores of NaN and -infinity
// are never candidates. Extents must be numbers. Each step selects one box of every class and compares it with n
// others, so time grows with b c n times the largest number of boxes selected in one class, and memory with b c n. If
// n is above 2048 and there is a score_threshold, n is 1024 for this, unless a class has more candidates than that.
SelectedBoxes non_max_suppression(Operand boxes, Operand scores, const NonMaxSuppressionOptions& o);

struct KeptBoxes {
  Tensor indices;  // i64 [room], by descending score; -1 after the last
  Tensor count;    // i64 []
};
// torchvision.ops.nms: the boxes [n, 4] that no box of higher score [n] overlaps by more than iou_threshold, except
// suppressed ones. `room` (default: n) bounds how many are kept: those of the highest scores.
KeptBoxes nms(Operand boxes, Operand scores, double iou_threshold, std::optional<std::int64_t> room = {});
// torchvision.ops.batched_nms: boxes suppress only boxes with the same number in idxs [n] (integers).
KeptBoxes batched_nms(Operand boxes, Operand scores, Operand idxs, double iou_threshold,
                      std::optional<std::int64_t> room = {});

}  // namespace lc
