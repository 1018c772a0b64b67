// Windows reduced to one element.
#include <cmath>
#include <limits>

#include "lightcone/onnx/read/windows.h"
#include "lightcone/ops/functional/functional.h"

namespace lc::onnx {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

Scalar lowest(DType t) {
  if (is_float(t)) return -kInf;
  return static_cast<std::int64_t>(info(t).lowest);
}
Windows pool_of(Call& c, const Tensor& x) { return windows_of(c, x.shape(), {}, c.flag("ceil_mode")); }
std::vector<int> spatial_axes(const Call& c, const Tensor& x) {
  if (x.rank() < 3) c.refuse(str_cat("needs [batch, channels, n...], not ", str(x.shape())));
  std::vector<int> r;
  for (int k = 2; k < x.rank(); ++k) r.push_back(k);
  return r;
}

// Applies a function in f32 to floats of 16 bits.
template <class F>
Tensor in_f32(const Tensor& x, const F& f) {
  const bool half = x.dtype() == DType::F16 || x.dtype() == DType::BF16;
  return half ? f(x.to(DType::F32)).to(x.dtype()) : f(x);
}

// Sums the windows of an image that has its padding, axis by axis.
Tensor sum_of_windows(Tensor x, const Windows& w) {
  for (std::size_t k = w.kernel.size(); k-- > 0;) {
    x = x.unfold(2 + static_cast<int>(k), w.kernel[k], w.stride[k], w.dilation[k]);
    x = prim::sum_reduce(x, x.rank() - 1);
  }
  return x;
}

// ---- maxima ---------------------------------------------------------------------------------------

// Positions in an image with its padding as positions in all of x, which has none.
Tensor positions(const Tensor& at, const Tensor& x, const Windows& w, bool first_axis_fastest) {
  const Shape s = x.shape();
  const auto number = [&](const Dim& d) { return at.graph().index(at.shape(), d, DType::I64); };
  const std::size_t n = w.kernel.size();
  std::vector<Dim> steps(n, 1);
  for (std::size_t k = 1; k < n; ++k) {
    if (first_axis_fastest) steps[k] = steps[k - 1] * s[2 + k - 1];
    else steps[n - 1 - k] = steps[n - k] * s[2 + n - k];
  }
  Dim image = 1;
  for (std::size_t k = 0; k < n; ++k) image = image * s[2 + k];
  Tensor rest = at, r = number((Dim::index(0, s[0]) * s[1] + Dim::index(1, s[1])) * image);
  for (std::size_t k = n; k-- > 0;) {
    const Tensor wide = number(s[2 + k] + w.before[k] + w.after[k]);
    const Tensor here = prim::add(prim::mod(rest, wide), number(Dim(0) - w.before[k]));
    const Tensor inside = prim::minimum(prim::maximum(here, number(0)), number(s[2 + k] - 1));
    r = prim::add(r, prim::mul(inside, number(steps[k])));
    rest = prim::div(rest, wide);
  }
  return r;
}

Values max_pool_(Call& c) {
  const Tensor x = c.x();
  const bool first_axis_fastest = c.flag("storage_order");
  const Windows w = pool_of(c, x);
  const Tensor wide = padded(x, w, lowest(x.dtype()));
  if (!c.wants(1)) return {max_pool(wide, w.kernel, w.stride, 0, w.dilation)};
  const Extreme r = max_pool_with_indices(wide, w.kernel, w.stride, {0}, w.dilation);
  return {r.values, positions(r.indices, x, w, first_axis_fastest)};
}

// Puts values at their positions in a tensor whose extents are the least that windows of x cover. A larger one that is
// asked for has zeros after them, as in ONNX's own test; ONNX Runtime takes positions in the larger one.
Values max_unpool_(Call& c) {
  const Tensor x = c.x(0), at = c.x(1);
  const int n = static_cast<int>(spatial_axes(c, x).size());
  const std::vector<int> kernel = numbers_of_axes(c, "kernel_shape", n, 1, 1),
                         stride = numbers_of_axes(c, "strides", n, 1, 1);
  const Integers pads = pads_of(c, n);
  Shape covered{x.extent(0), x.extent(1)};
  for (std::size_t k = 0; k < kernel.size(); ++k) {
    const Dim count = x.extent(2 + static_cast<int>(k));
    covered.push_back((count - 1) * Dim(stride[k]) + kernel[k] - pads[k] - pads[kernel.size() + k]);
    if (covered.back().bounds().hi < 0) c.refuse("its pads are larger than its result");
  }
  const Tensor none = full(x.graph(), {product(covered)}, 0, x.dtype());
  Tensor y = scatter(none, 0, at.reshape({product(at.shape())}), x.reshape({product(x.shape())})).reshape(covered);
  if (!c.has(2)) return {y};
  const std::vector<Dim> to = c.dims(2);
  if (to.size() != covered.size()) c.refuse("its output_shape has another number of axes");
  for (std::size_t k = 0; k < to.size(); ++k) y = surrounded(y, static_cast<int>(k), 0, to[k] - covered[k]);
  return {y};
}

// ---- averages and norms ------------------------------------------------------------------------------

// How many elements of the window at index i of an axis lie in [from, to).
Dim elements_between(const Dim& from, const Dim& to, const Dim& i, const Windows& w, std::size_t k) {
  const Dim begin = i * Dim(w.stride[k]) - w.before[k], d = w.dilation[k], up = w.dilation[k] - 1;
  const Dim first = max((from - begin + up) / d, 0), last = min((to - begin + up) / d, w.kernel[k]);
  return max(last - first, 0);
}

Values average_pool(Call& c) {
  const Tensor x = c.x();
  const bool counts_padding = c.flag("count_include_pad");
  // The padding as the attributes say it, without what ceil_mode adds: that is never counted.
  const Windows w = pool_of(c, x), given = windows_of(c, x.shape(), {});
  return {in_f32(x, [&](const Tensor& image) {
    const Tensor sum = sum_of_windows(padded(image, w), w);
    Dim count = 1;
    for (std::size_t k = 0; k < w.kernel.size(); ++k) {
      const int axis = 2 + static_cast<int>(k);
      const Dim n = x.extent(axis), i = Dim::index(axis, sum.extent(axis));
      const bool whole =
          w.after[k] == given.after[k] && (counts_padding || (w.before[k] == Dim(0) && w.after[k] == Dim(0)));
      count = count * (whole            ? Dim(w.kernel[k])
                       : counts_padding ? elements_between(Dim(0) - given.before[k], n + given.after[k], i, w, k)
                                        : elements_between(0, n, i, w, k));
    }
    if (const auto number = count.constant()) return sum * (1 / static_cast<double>(*number));
    return prim::div(sum, sum.graph().index(sum.shape(), count, sum.dtype()));
  })};
}

double exponent(const Call& c) {  // a float in operator set 1
  const double p = c.opset < 2 ? c.number("p", 2) : static_cast<double>(c.integer("p", 2));
  if (!(p > 0)) c.refuse(str_cat("has p = ", p));
  return p;
}
Values lp_pool_(Call& c) {
  const Tensor x = c.x();
  const double p = exponent(c);
  const Windows w = pool_of(c, x);
  return {in_f32(x, [&](const Tensor& image) {
    const Tensor t = padded(image, w);
    if (p == 1) return sum_of_windows(abs(t), w);
    if (p == 2) return sqrt(sum_of_windows(t * t, w));
    return pow(sum_of_windows(pow(abs(t), p), w), 1 / p);
  })};
}

// ---- all elements of an image -----------------------------------------------------------------------

Values global_average(Call& c) {
  const Tensor x = c.x();
  return {mean(x, spatial_axes(c, x), true)};
}
Values global_max(Call& c) {
  const Tensor x = c.x();
  return {amax(x, spatial_axes(c, x), true)};
}
Values global_lp(Call& c) {
  const Tensor x = c.x();
  return {norm(x, exponent(c), spatial_axes(c, x), true)};
}

}  // namespace

void add_pooling(Operators& t) {
  const Operator rows[] = {
      {"", "AveragePool", 1, average_pool, "the sum of each window divided by its number of elements"},
      {"", "GlobalAveragePool", 1, global_average, "mean"},
      {"", "GlobalLpPool", 1, global_lp, "norm"},
      {"", "GlobalMaxPool", 1, global_max, "amax"},
      {"", "LpPool", 1, lp_pool_, "the sum of the powers of each window"},
      {"", "MaxPool", 1, max_pool_, "max_pool, max_pool_with_indices"},
      {"", "MaxUnpool", 9, max_unpool_, "scatter"},
  };
  t.insert(t.end(), std::begin(rows), std::end(rows));
}

}  // namespace lc::onnx
