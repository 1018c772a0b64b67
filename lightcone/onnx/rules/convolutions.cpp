// Convolutions.
#include <cmath>
#include <limits>
#include <optional>

#include "lightcone/onnx/parts/quantized.h"
#include "lightcone/onnx/read/windows.h"

namespace lc::onnx {
namespace {

// The most pieces of which a transposed convolution is the sum: each is graph code.
constexpr double kMostParts = 1 << 16;

std::vector<int> extents_of_filter(const Call& c, const Tensor& weight) {
  const Shape s = weight.shape();
  if (s.size() < 3) c.refuse(str_cat("its weight ", str(s), " has no spatial axes"));
  return fixed(c, Shape(s.begin() + 2, s.end()), "an extent of the filter");
}
int groups_of(const Call& c) {
  const std::int64_t n = c.integer("group", 1);
  if (n < 1 || n > std::numeric_limits<int>::max()) c.refuse(str_cat("has ", n, " groups"));
  return static_cast<int>(n);
}
Tensor add_bias(Call& c, const Tensor& y, const Tensor& bias) {
  if (!bias.defined()) return y;
  c.importer.same_extent(bias.extent(0), y.extent(1));
  Shape s(static_cast<std::size_t>(y.rank()), 1);
  s[1] = y.extent(1);
  return y + bias.reshape(s);
}

// The padding as conv() takes it: one number for both ends of an axis.
std::optional<std::vector<int>> padding_of_both_ends(const Windows& w) {
  std::vector<int> r;
  for (std::size_t k = 0; k < w.kernel.size(); ++k) {
    const auto n = w.before[k].constant();
    if (!n || *n < 0 || *n > std::numeric_limits<int>::max() || !(w.before[k] == w.after[k])) return std::nullopt;
    r.push_back(static_cast<int>(*n));
  }
  return r;
}

Tensor convolved(Call& c, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  if (x.rank() != weight.rank())
    c.refuse(str_cat("a weight ", str(weight.shape()), " does not fit to ", str(x.shape())));
  const int groups = groups_of(c);
  c.importer.same_extent(x.extent(1), weight.extent(1) * Dim(groups));
  const Windows w = windows_of(c, x.shape(), extents_of_filter(c, weight));
  ConvOptions o{.stride = w.stride, .padding = 0, .dilation = w.dilation, .groups = groups};
  const auto both = padding_of_both_ends(w);
  if (both) o.padding = *both;
  return conv(both ? x : padded(x, w), weight, bias, o);
}
Values conv_(Call& c) { return {convolved(c, c.x(0), c.x(1), c.optional(2))}; }

// Whole numbers without their zero point, which is one number or one for each index of `axis`.
Tensor without_zero_point(Call& c, const Tensor& x, const Tensor& zero, int axis) {
  const Tensor wide = x.to(DType::I32);
  if (!zero.defined()) return wide;
  if (axis >= x.rank()) c.refuse(str_cat("needs more axes than ", str(x.shape())));
  Shape s(static_cast<std::size_t>(x.rank()), 1);
  if (!(product(zero.shape()) == Dim(1))) s[static_cast<std::size_t>(axis)] = zero.extent(0);
  return wide - expand_to(c, zero.to(DType::I32).reshape(s), x.shape());
}
// The windows of x [batch, channels, ...], a row for each: [batch, windows, channels * taps].
Tensor rows_of_windows(const Tensor& x, const Windows& w) {
  const int n = static_cast<int>(w.kernel.size());
  Tensor r = x;
  Dim windows = 1, columns = x.extent(1);
  std::vector<int> order{0};
  for (int k = 0; k < n; ++k) {
    const auto at = static_cast<std::size_t>(k);
    r = r.unfold(2 + k, w.kernel[at], w.stride[at], w.dilation[at]);
    windows = windows * r.extent(2 + k), columns = columns * Dim(w.kernel[at]);
    order.push_back(2 + k);
  }
  order.push_back(1);
  for (int k = 0; k < n; ++k) order.push_back(2 + n + k);
  return prim::contiguous(r.permute(order)).reshape({x.extent(0), windows, columns});
}

// A convolution of bytes without groups, as one exact product of bytes. Where x is padded it is its zero point.
Tensor convolved_bytes(Call& c, const Tensor& x, const Tensor& zero, const Tensor& weight, const Tensor& weight_zero) {
  c.importer.same_extent(x.extent(1), weight.extent(1));
  const Windows w = windows_of(c, x.shape(), extents_of_filter(c, weight));
  Tensor wide = padded(x, w);
  if (zero.defined() && !known_zero(c, zero))
    wide = where(padded(full(x, x.shape(), 1, DType::Bool), w), wide, expand_to(c, zero.reshape({}), wide.shape()));
  const Tensor rows = rows_of_windows(wide, w);
  const Tensor filters = weight.reshape({weight.extent(0), rows.extent(2)}).transpose(0, 1);
  const Tensor y = byte_product(c, rows, zero, filters, weight_zero).transpose(1, 2);
  Shape s{x.extent(0), weight.extent(0)};
  for (std::size_t k = 0; k < w.kernel.size(); ++k) {
    const int axis = 2 + static_cast<int>(k);
    s.push_back(wide.unfold(axis, w.kernel[k], w.stride[k], w.dilation[k]).extent(axis));
  }
  return y.reshape(s);
}

Values conv_integer(Call& c) {
  if (c.x(0).rank() == c.x(1).rank() && groups_of(c) == 1)
    return {convolved_bytes(c, c.x(0), c.optional(2), c.x(1), c.optional(3))};
  const Tensor x = without_zero_point(c, c.x(0), c.optional(2), 1), w = without_zero_point(c, c.x(1), c.optional(3), 0);
  return {convolved(c, x, w, {})};
}

// How much of an axis of the whole transposed convolution is cut at its ends; below 0, zeros are added.
struct Cut {
  Dim before, after;
};
Cut cut_to(const Dim& whole, const Dim& size, bool upper) {
  const Dim total = whole - size, before = (upper ? total : total + 1) / Dim(2);
  return {before, total - before};
}
std::vector<Cut> cuts_of(Call& c, const std::vector<Dim>& image, const std::vector<Dim>& whole,
                         const std::vector<int>& stride, const std::vector<int>& extra) {
  const std::size_t n = image.size();
  const std::string_view mode = c.text("auto_pad", "NOTSET");
  const Integers pads = pads_of(c, static_cast<int>(n));
  const Integers sizes = c.integers("output_shape", {});
  if (!sizes.empty() && sizes.size() < n) c.refuse("its output_shape has fewer numbers than there are spatial axes");
  const bool upper = mode == "SAME_UPPER", same = upper || mode == "SAME_LOWER";
  if (!same && mode != "NOTSET" && mode != "VALID") c.refuse("its auto_pad is none that ONNX has");
  std::vector<Cut> r;
  for (std::size_t k = 0; k < n; ++k) {
    const Dim all = whole[k] + extra[k];
    if (!sizes.empty()) r.push_back(cut_to(all, sizes[sizes.size() - n + k], upper));
    else if (same) r.push_back(cut_to(all, image[k] * Dim(stride[k]), upper));
    else if (mode == "VALID") r.push_back({0, 0});
    else r.push_back({pads[k], pads[n + k]});
    r.back().after = r.back().after - extra[k];
  }
  return r;
}

Values conv_transpose_(Call& c) {
  const Tensor x = c.x(0), weight = c.x(1), bias = c.optional(2);
  if (x.rank() != weight.rank())
    c.refuse(str_cat("a weight ", str(weight.shape()), " does not fit to ", str(x.shape())));
  const std::vector<int> kernel = extents_of_filter(c, weight);
  const int n = static_cast<int>(kernel.size()), groups = groups_of(c);
  if (c.has_attribute("kernel_shape") && numbers_of_axes(c, "kernel_shape", n, 1, 1) != kernel)
    c.refuse("its kernel_shape is not that of its weight");
  const std::vector<int> stride = numbers_of_axes(c, "strides", n, 1, 1),
                         dilation = numbers_of_axes(c, "dilations", n, 1, 1),
                         extra = numbers_of_axes(c, "output_padding", n, 0, 0);
  c.importer.same_extent(x.extent(1), weight.extent(0));
  std::vector<Dim> image, whole;
  double parts = 1;
  for (std::size_t k = 0; k < kernel.size(); ++k) {
    const std::int64_t reach = (std::int64_t{kernel[k]} - 1) * dilation[k] + 1;
    image.push_back(x.extent(2 + static_cast<int>(k)));
    whole.push_back((image[k] - 1) * Dim(stride[k]) + reach);
    parts *= std::ceil(static_cast<double>(reach) / stride[k]);
  }
  if (!(parts <= kMostParts)) c.refuse("its filter is too large for its strides");
  c.importer.spend(static_cast<std::int64_t>(parts));
  const std::vector<Cut> cuts = cuts_of(c, image, whole, stride, extra);
  Tensor y = conv_transpose(x, weight, {.stride = stride, .dilation = dilation, .groups = groups});
  for (std::size_t k = 0; k < cuts.size(); ++k)
    y = surrounded(y, 2 + static_cast<int>(k), Dim(0) - cuts[k].before, Dim(0) - cuts[k].after);
  return {add_bias(c, y, bias)};
}

// A convolution of each channel with itself alone, over the elements before: x [batch, channels, n] after the last k -
// 1 elements of the call before.
Values causal_conv(Call& c) {
  const Tensor x = c.x(0), weight = c.x(1), past = c.optional(3);
  if (x.rank() != 3 || weight.rank() != 3) c.refuse("needs [batch, channels, n] and [channels, 1, k]");
  const int k = extents_of_filter(c, weight)[0];
  c.importer.same_extent(x.extent(1), weight.extent(0));
  const int channels = narrow_int(c, fixed(c, weight.extent(0), "the number of channels"), "the number of channels");
  const Tensor whole = past.defined() ? concat({past, x}, 2) : x.pad(2, k - 1, 0);
  Tensor y = conv(whole, weight, c.optional(2), {.groups = channels});
  const std::string_view activation = c.text("activation", "none");
  if (activation == "silu" || activation == "swish") y = silu(y);
  else if (activation != "none") c.refuse("its activation is not silu, swish or none");
  return {y, narrow(whole, 2, x.extent(2), k - 1)};
}

}  // namespace

void add_convolutions(Operators& t) {
  const Operator rows[] = {
      {"", "CausalConvWithState", 27, causal_conv, "conv with as many groups as channels"},
      {"", "Conv", 1, conv_, "conv"},
      {"", "ConvInteger", 10, conv_integer, "a product of bytes; with groups a conv of i32"},
      {"", "ConvTranspose", 1, conv_transpose_, "conv_transpose, cut to its padding"},
  };
  t.insert(t.end(), std::begin(rows), std::end(rows));
}

}  // namespace lc::onnx
