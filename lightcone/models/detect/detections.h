// Which of the boxes of a detector's cells are detections: those whose score is high enough and that no better one of
// the same class overlaps.
#pragma once

#include <cstdint>

#include "lightcone/core/tensor.h"

namespace lc {

// What detections() chooses by.
struct DetectionOptions {
  double confidence = 0.25;     // boxes with lower scores are left out
  double overlap = 0.45;        // intersection over union above which the better of two boxes of a class stays
  std::int64_t most = 300;      // how many boxes are kept: those of the highest scores
  bool across_classes = false;  // boxes of different classes suppress each other, too
};

// Rows in the order of descending scores; rows from `count` on hold zeros.
struct DetectionTensors {
  Tensor boxes;    // f32 [most, 4]
  Tensor scores;   // f32 [most]
  Tensor classes;  // i64 [most]
  Tensor count;    // i64 []
};

// Chooses among boxes f32 [n, 4] (corners) with scores f32 [n, classes], as graph code: the class of a box is the one
// of its highest score, as in Ultralytics' predictions. Throws Error for other shapes.
DetectionTensors detections(const Tensor& boxes, const Tensor& scores, const DetectionOptions& o = {});

}  // namespace lc
