// The convolutions of YOLO networks.
#pragma once

#include <string>

#include "lightcone/models/yolo/parts.h"

namespace lc {

// Returns the part if `type` is one of the convolutions (Conv, DWConv, Conv2d, RepConv), otherwise null. `stride` is
// that of a file without modules.
YoloPartPtr yolo_convolution(const YoloSource& s, const std::string& path, const std::string& type, std::int64_t in,
                             int stride);

}  // namespace lc
