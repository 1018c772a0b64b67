// A convolution and the choices for computing it.
#pragma once

#include <memory>

#include "lightcone/lowering/convolution.h"

namespace lc::backends::cpu {

struct ConvAlgorithm;
struct NchwBf16;

struct ConvPlan : lowering::Convolution {
  const ConvAlgorithm* algorithm = nullptr;  // a row of kConvAlgorithms
  bool packed = false;                       // weight_node is packed as algorithm->filters says
  bool rounded = false;  // the graph rounds both factors to bf16: they are read before that, and the algorithm rounds
  bool bf16_image = false;                         // image_node holds bf16 numbers, which are read as they are stored
  std::shared_ptr<const NchwBf16> nchw_bf16 = {};  // set by the algorithm of this name
};

}  // namespace lc::backends::cpu
