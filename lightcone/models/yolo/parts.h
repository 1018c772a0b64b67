// The parts that YOLO networks are made of, built from the shapes of their weights and from what the file says of its
// modules: Conv, DWConv, Conv2d, Bottleneck, C2f, C3, C3k, C3k2, SPP, SPPF, SPPELAN, ELAN1, RepConv, RepNCSPELAN4,
// AConv, ADown, C2PSA and sequences of them.
//
// C.-Y. Wang et al., "CSPNet", 2019 (C3, C2f), "Designing network design strategies through gradient path analysis",
// 2022 (ELAN), and "YOLOv9", 2024 (GELAN); K. He et al., "Spatial pyramid pooling", 2014; X. Ding et al., "RepVGG",
// 2021; A. Wang et al., "YOLOv10", 2024 (partial self-attention). Names are those of Ultralytics' files.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "lightcone/models/yolo/source.h"
#include "lightcone/nn/module.h"

namespace lc {

// A part of a network: x [batch, in, height, width] -> [batch, out, height', width'].
class YoloPart {
 public:
  virtual ~YoloPart() = default;
  virtual void visit(nn::Visitor& v) = 0;
  virtual Tensor operator()(const Tensor& x) const = 0;
  std::int64_t out = 0;
};
using YoloPartPtr = std::shared_ptr<YoloPart>;

// What a file without modules does not say of a part.
struct YoloPartHints {
  std::string type;      // "C2f"; "": as its weights look, a Conv, a Conv2d, a Bottleneck, a C3k or a sequence
  int stride = 1;        // a convolution has it
  bool shortcut = true;  // its bottlenecks have one
};

// Builds the part at `path` for `in` channels. Throws Error for a class that is not known, and for weights that do not
// fit together.
YoloPartPtr yolo_part(const YoloSource& s, const std::string& path, std::int64_t in, const YoloPartHints& hints = {});

}  // namespace lc
