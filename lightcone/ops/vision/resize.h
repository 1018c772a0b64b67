// Resizing by interpolation along any axes, with every mode of ONNX's Resize. interpolate() (ops/functional) is
// PyTorch's face of it.
#pragma once

#include <string_view>
#include <vector>

#include "lightcone/ops/ops.h"

namespace lc {

// The attributes and inputs of ONNX's operator Resize (opset 19), with its names and defaults.
struct ResizeOptions {
  std::vector<double> scales = {};    // factors of the axes, > 0: n elements become floor(n scale). Give these or sizes
  Shape sizes = {};                   // extents of the result
  std::vector<int> axes = {};         // the axes that scales, sizes and roi are for, each once; empty: all, in order
  std::string_view mode = "nearest";  // "nearest", "linear" or "cubic"
  // Which position of the input, x_in, belongs to element x of m, for an axis of n with m = n scale (not rounded, if
  // the scale is given):
  //   "half_pixel"             (x + 0.5) / scale - 0.5
  //   "half_pixel_symmetric"   the same about the middle of the axis, if n scale is not whole
  //   "pytorch_half_pixel"     the same as half_pixel, but 0 if the result has one element
  //   "align_corners"          x (n - 1) / (m - 1): first and last elements keep their places
  //   "asymmetric"             x / scale
  //   "tf_half_pixel_for_nn"   (x + 0.5) / scale
  //   "tf_crop_and_resize"     align_corners between the ends of `roi`
  std::string_view coordinate_transformation_mode = "half_pixel";
  // For mode "nearest", which element is taken: "round_prefer_floor", "round_prefer_ceil", "floor" or "ceil".
  std::string_view nearest_mode = "round_prefer_floor";
  double cubic_coeff_a = -0.75;  // Keys' coefficient; PyTorch has -0.75, Pillow -0.5
  bool antialias = false;        // "linear", "cubic": widens the filter by 1 / scale where an axis shrinks
  bool exclude_outside = false;  // weights outside of the input become 0 and the others sum to 1; else edges repeat
  // For sizes: "stretch", or one scale for all the axes so that no extent is larger ("not_larger") or smaller
  // ("not_smaller") than its size.
  std::string_view keep_aspect_ratio_policy = "stretch";
  std::vector<double> roi = {};  // "tf_crop_and_resize": starts of the axes, then ends; 0 and 1 are the ends of an axis
  double extrapolation_value = 0;  // "tf_crop_and_resize": what lies outside of the input
};

// Resizes x of any rank and type. Extents of axes that change must be numbers; an axis with scale 1, or whose size is
// its extent, is left alone and may be symbolic. Positions are computed in f64 (ONNX Runtime computes them in f32, so
// that "nearest" may differ where a position lies between two elements). 16-bit floats are computed in f32 and rounded
// once; integers in f32 (32 and 64 bits: f64), rounded to the nearest, ties to even, and clamped to their type.
// Differentiable in floating x. Throws Error for unknown words, for sizes and scales that do not fit to the axes, and
// for an axis without elements.
//   resize(image, {.sizes = {224, 224}, .axes = {2, 3}, .mode = "linear", .antialias = true, .exclude_outside = true})
// resizes as Pillow does, and as torch.nn.functional.interpolate(antialias=True).
Tensor resize(Operand x, const ResizeOptions& o);

}  // namespace lc
