#include "lightcone/onnx/read/windows.h"

#include <cstdlib>
#include <limits>

namespace lc::onnx {
namespace {

// How much SAME_UPPER and SAME_LOWER add so that there are n / stride windows, rounded up.
Dim total_padding(const Dim& n, int stride, std::int64_t reach) {
  const Dim count = (n + (stride - 1)) / Dim(stride);
  return max((count - 1) * Dim(stride) + (Dim(reach) - n), 0);
}

// Makes room for a last window that begins inside and ends outside.
Dim after_rounded_up(const Dim& n, int stride, std::int64_t reach, const Dim& before, const Dim& after) {
  const Dim room = n + before + after - reach;
  const Dim last = (room + (stride - 1)) / Dim(stride);
  const Dim begins_inside = less(last * Dim(stride), n + before);
  return max(after, (last - 1 + begins_inside) * Dim(stride) + reach - n - before);
}

}  // namespace

std::vector<int> numbers_of_axes(Call& c, std::string_view attribute, int axes, int least, int otherwise) {
  const Integers given = c.integers(attribute, Integers(static_cast<std::size_t>(axes), otherwise));
  if (given.size() != static_cast<std::size_t>(axes))
    c.refuse(str_cat("has ", given.size(), " numbers in ", attribute, " for ", axes, " spatial axes"));
  for (const std::int64_t n : given)
    if (n < least || n > std::numeric_limits<int>::max()) c.refuse(str_cat("has ", n, " in ", attribute));
  return {given.begin(), given.end()};
}

Integers pads_of(Call& c, int axes) {
  const auto n = static_cast<std::size_t>(2 * axes);
  Integers pads = c.integers("pads", Integers(n, 0));
  if (pads.size() != n) c.refuse(str_cat("has ", pads.size(), " pads for ", axes, " spatial axes"));
  for (const std::int64_t p : pads)
    if (std::abs(p) > std::numeric_limits<int>::max()) c.refuse(str_cat("has a padding of ", p));
  return pads;
}

Dim Windows::count(std::size_t k, const Shape& image) const {
  return (image[2 + k] + before[k] + after[k] - Dim(reach(k))) / Dim(stride[k]) + 1;
}

Windows windows_of(Call& c, const Shape& image, const std::vector<int>& kernel, bool rounds_up) {
  const int n = static_cast<int>(image.size()) - 2;
  if (n < 1) c.refuse(str_cat("needs [batch, channels, n...], not ", str(image)));
  Windows w;
  if (kernel.empty() && !c.has_attribute("kernel_shape")) c.refuse("has no attribute kernel_shape");
  w.kernel = kernel;
  if (c.has_attribute("kernel_shape")) w.kernel = numbers_of_axes(c, "kernel_shape", n, 1, 1);
  if (!kernel.empty() && w.kernel != kernel) c.refuse("its kernel_shape is not that of its weight");
  w.stride = numbers_of_axes(c, "strides", n, 1, 1);
  w.dilation = numbers_of_axes(c, "dilations", n, 1, 1);
  const std::string_view mode = c.text("auto_pad", "NOTSET");
  const Integers pads = pads_of(c, n);
  w.before.assign(pads.begin(), pads.begin() + n);
  w.after.assign(pads.begin() + n, pads.end());
  for (std::size_t k = 0; k < w.kernel.size(); ++k) {
    const Dim size = image[2 + k];
    const std::int64_t reach = w.reach(k);
    const int stride = w.stride[k];
    if (mode == "SAME_UPPER" || mode == "SAME_LOWER") {
      const Dim total = total_padding(size, stride, reach);
      w.before[k] = (mode == "SAME_UPPER" ? total : total + 1) / Dim(2);
      w.after[k] = total - w.before[k];
    } else {
      if (mode == "VALID") w.before[k] = w.after[k] = 0;
      else if (mode != "NOTSET" && !mode.empty())
        c.refuse("its auto_pad is not NOTSET, SAME_UPPER, SAME_LOWER or VALID");
      if (rounds_up) w.after[k] = after_rounded_up(size, stride, reach, w.before[k], w.after[k]);
    }
    if ((size + w.before[k] + w.after[k]).bounds().hi < reach)
      c.refuse(str_cat("a window of ", reach, " elements does not fit into ", str(image), " with its padding"));
    c.importer.at_least(w.count(k, image), 0);
  }
  return w;
}

Tensor surrounded(const Tensor& x, int axis, const Dim& before, const Dim& after, Scalar value) {
  const auto b = before.constant(), a = after.constant();
  if (b == 0 && a == 0) return x;
  if ((b && *b < 0) || (a && *a < 0)) {
    const Dim begin = max(Dim(0) - before, 0), end = x.extent(axis) - max(Dim(0) - after, 0);
    return surrounded(x.slice(axis, begin, end), axis, max(before, 0), max(after, 0), value);
  }
  const auto fits = [](std::int64_t n) { return n <= std::numeric_limits<int>::max(); };
  if (b && a && fits(*b) && fits(*a))
    return pad(x, axis, static_cast<int>(*b), static_cast<int>(*a), PadMode::Constant, value);
  const Tensor wide = x.pad(axis, before, after);
  if (value.value == 0) return wide;
  const Tensor inside = full(x.graph(), x.shape(), 1, DType::Bool).pad(axis, before, after);
  return where(inside, wide, full_like(wide, value));
}

Tensor padded(const Tensor& x, const Windows& w, Scalar value) {
  Tensor t = x;
  for (std::size_t k = 0; k < w.kernel.size(); ++k)
    t = surrounded(t, 2 + static_cast<int>(k), w.before[k], w.after[k], value);
  return t;
}

}  // namespace lc::onnx
