// The windows of convolutions and pools, as the attributes of their nodes describe them.
#pragma once

#include <vector>

#include "lightcone/onnx/read/call.h"

namespace lc::onnx {

// One number for each spatial axis of an image [batch, channels, n...].
struct Windows {
  std::vector<int> kernel, stride, dilation;
  std::vector<Dim> before, after;  // the padding; windows end at its end, or before

  int axes() const { return static_cast<int>(kernel.size()); }
  // The elements from the first to the last of a window.
  std::int64_t reach(std::size_t k) const { return (std::int64_t{kernel[k]} - 1) * dilation[k] + 1; }
  // How many windows axis k of `image` has.
  Dim count(std::size_t k, const Shape& image) const;
};

// Reads strides, dilations, pads, auto_pad and kernel_shape. `kernel` has the extents of the filter; a pool has none
// and needs the attribute. `rounds_up` is a pool's ceil_mode; with auto_pad VALID it makes a window more than ONNX's
// text says, as ONNX's shape inference and ONNX Runtime do. Throws Error if the attributes do not fit to the image.
Windows windows_of(Call& c, const Shape& image, const std::vector<int>& kernel, bool rounds_up = false);

// One number for each spatial axis, at least `least`; 1 if there is no attribute.
std::vector<int> numbers_of_axes(Call& c, std::string_view attribute, int axes, int least, int otherwise);

// The attribute pads: how much is added before each axis, then after each.
Integers pads_of(Call& c, int axes);

// Adds elements before and after an axis, or cuts them where the number is below 0.
Tensor surrounded(const Tensor& x, int axis, const Dim& before, const Dim& after, Scalar value = 0);
// The image with its padding.
Tensor padded(const Tensor& x, const Windows& w, Scalar value = 0);

}  // namespace lc::onnx
