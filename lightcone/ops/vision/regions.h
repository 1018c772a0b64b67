// Features of regions of images, and convolutions whose taps move (torchvision.ops: roi_align, roi_pool,
// deform_conv2d).
#pragma once

#include "lightcone/ops/ops.h"

namespace lc {

struct RoiAlignOptions {
  int height = 1, width = 1;  // how many bins the result has
  double spatial_scale = 1;   // factor from the coordinates of boxes to those of x
  int sampling_ratio = 0;     // samples of a bin along each axis; 0: as many as its size in elements, rounded up
  bool aligned = false;       // the centre of the first element is at 0.5, not at 0
  // The largest product of a sample's four neighbours with their shares, instead of the mean of samples: ONNX's mode
  // "max". (torchvision has no such mode.)
  bool largest = false;
};
// Averages bilinear samples of each bin of each box: x [b, c, h, w], boxes [n, 4] (x1, y1, x2, y2), images [n]
// (integers below b: whose box it is) -> [n, c, height, width]. Extents h and w must be numbers. Without a
// sampling_ratio the work for a box grows with h w, and `largest` needs one if there would be more than 2^28 samples.
// Throws Error for types that are not floating or differ. torchvision's boxes [n, 5] are images and boxes joined.
Tensor roi_align(Operand x, Operand boxes, Operand images, const RoiAlignOptions& o);

// The maximum of each of height x width bins of each box, whose coordinates are rounded to elements; 0 for a bin
// outside of x (torchvision.ops.roi_pool). Arguments are as in roi_align().
Tensor roi_pool(Operand x, Operand boxes, Operand images, int height, int width, double spatial_scale = 1);

struct DeformConvOptions {
  IntList stride = 1, dilation = 1;  // one number for all axes, or one each
  IntList padding = 0;               // at the beginning of each axis; the end follows from the shape of offset
  int groups = 1, offset_groups = 1;
};
// A convolution of x [b, in, n...] with weight [out, in / groups, k...] and bias [out] or {}, in which offset
// [b, offset_groups k... axes, m...] moves what each tap reads, by linear interpolation with zeros outside, and mask
// [b, offset_groups k..., m...] or {} scales it -> [b, out, m...]. For each tap, offset has a number for each axis, in
// the order of the axes (torchvision.ops.deform_conv2d). Spatial extents of x and weight must be numbers.
Tensor deform_conv(Operand x, Operand weight, Operand offset, OptionalOperand bias = {}, OptionalOperand mask = {},
                   const DeformConvOptions& o = {});

}  // namespace lc
