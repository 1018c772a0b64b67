// Convolutions: contractions in which one factor, the image, is read through windows that overlap or reach outside of
// it. They are recognised by the algebra of strides. 1 to 3 spatial axes, strides, dilation, padding, groups and any
// order of axes are numbers in one description.
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
  std::vector<Axis> outer;   // batch and group axes, one product for each index
  Axis rows = {1, 0, 0, 0};  // output channels; the image stride is 0 unless channels are last and depthwise
  // Maps an output pixel and a tap to a coordinate of the image: coordinate = step * pixel + sum of dilation * tap. The
  // image reads as zero unless lo <= coordinate < hi.
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
  // The channels are the innermost axis of the result (NHWC). Otherwise the pixels are (NCHW).
  bool channels_last = false;
  WeightType stored = WeightType::F32;  // type of weight_node with channels last: f32, bf16 or f16
};

// Returns the shapes of the image and the weights in memory: "[1, 3, 224, 224] x [64, 3, 7, 7]".
std::string shapes_of(const Graph& g, const Convolution& c);
// Matches a convolution in f32. With channels last, `weight_node` is the parameter itself if the weights are one.
std::optional<Convolution> match_convolution(const Graph& g, const Factors& f);
// Returns the parameter that an operand is, or the bf16 or f16 parameter that the operand casts to f32.
std::optional<NodeId> filters_parameter(const Graph& g, NodeId operand);

}  // namespace lc::lowering
