// Convolutions: contractions one of whose factors, the image, is read through windows that overlap or leave it.
// Recognised by the algebra of strides; 1 to 3 spatial axes, strides, dilation, padding, groups and any order of axes
// are numbers in one description.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lightcone/lowering/contraction.h"

namespace lc::lowering {

inline constexpr int kSpatial = 3;

struct Convolution {
  struct Axis {
    Dim extent;
    Dim image, weight, out;  // strides in elements
  };
  std::vector<Axis> outer;   // batch, groups: a product for each
  Axis rows = {1, 0, 0, 0};  // output channels; the image stride is 0, but where channels that lie last are depthwise
  // Where a pixel and a tap read the image: coordinate = step * pixel + sum of dilation * tap, and
  // zero is read unless lo <= coordinate < hi.
  struct Pixel {
    Dim extent = 1, image = 0;
    std::int64_t step = 0;
    Dim lo = -kFar, hi = kFar;
  };
  static constexpr std::int64_t kFar = std::int64_t{1} << 40;
  Pixel pixels[kSpatial];  // output axes, innermost last; unused ones have extent 1
  struct Sum {             // summed axes, innermost last
    Dim extent, image, weight;
    std::int64_t dilation[kSpatial] = {};
  };
  std::vector<Sum> sums;
  Dim image_offset, weight_offset;
  NodeId image_node = 0, weight_node = 0;
  // Of the result: they are its innermost axis (NHWC). Otherwise pixels are (NCHW).
  bool channels_last = false;
  WeightType stored = WeightType::F32;  // with channels last, of weight_node: f32 or bf16
};

// "[1, 3, 224, 224] x [64, 3, 7, 7]": the image and the weights as they lie in memory.
std::string shapes_of(const Graph& g, const Convolution& c);
// `weight_node` of a result with channels last is the parameter itself, where there is one.
std::optional<Convolution> match_convolution(const Graph& g, const Factors& f);
// The parameter behind an operand: itself, or a bf16 one that is cast to f32.
std::optional<NodeId> filters_parameter(const Graph& g, NodeId operand);

}  // namespace lc::lowering
