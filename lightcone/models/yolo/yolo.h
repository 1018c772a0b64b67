// Detectors of the YOLO family from their files: Ultralytics' and YOLOv5's .pt of whole pickled modules (YOLOv5, v8,
// v9, 11 and what else consists of the same parts), and YOLOv8 by the names of its weights (model_type yolov8).
//
// Input: "pixel_values" f32 [batch, 3, height, width], red, green and blue from 0 to 1, in a letterbox
// (ops/vision/pictures.h); both extents are multiples of the largest stride. Outputs, for n cells of all strides, each
// in rows: "boxes" [batch, n, 4], corners x1, y1, x2, y2 in pixels of the input; "scores" [batch, n, classes] from 0 to
// 1; and "raw" [batch, n, numbers], what the convolutions of the head give: distances (4 x bins) and logits, or, with
// anchors, box, object and logits. Symbol: "batch". Boxes overlap: detections() (models/yolo/detections.h) chooses.
//
// J. Redmon et al., "You only look once", 2016; C.-Y. Wang et al., "YOLOv9", 2024; X. Li et al., "Generalized focal
// loss", 2020 (distances as distributions).
#pragma once

#include "lightcone/models/files/config_file.h"
#include "lightcone/models/files/loaded_model.h"

namespace lc {

// True for a file with the pickled modules of a detector.
bool is_yolo(const Weights& w);
// Makes the loaded model of such a file. Throws Error for the reasons of load_model().
LoadedModel load_yolo(const Weights& w, const LoadModelOptions& o);
// The same of a YOLOv8 with config.json, a form that only the library neural-api writes. Its pools see zeros around a
// picture, unless the file says "cai_maxpool": false.
LoadedModel load_yolo_v8(const Weights& w, const ConfigFile& config, const LoadModelOptions& o);

}  // namespace lc
