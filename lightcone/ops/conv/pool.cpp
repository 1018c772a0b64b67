// Pooling: sums and maxima over overlapping views; resampling.
#include "lightcone/composites/composites.h"

#include <algorithm>
#include "lightcone/ops/internal.h"

namespace lc {
using namespace detail;
namespace {

struct Pool {
  int n;
  std::vector<int> kernel, stride, padding, dilation;
  std::vector<int> beyond;  // elements that the last window reads after the padding

  Pool(const Operand& x, const char* op, std::vector<int> k, std::vector<int> s, std::vector<int> p, std::vector<int> d,
       bool ceil_mode)
      : n(spatial_axes(x, op)) {
    kernel = per_axis(std::move(k), n, op, "kernel");
    stride = per_axis(s.empty() ? kernel : std::move(s), n, op, "stride");
    padding = per_axis(std::move(p), n, op, "padding");
    dilation = per_axis(std::move(d), n, op, "dilation");
    beyond.assign(kernel.size(), 0);
    for (std::size_t i = 0; i < kernel.size(); ++i) {
      if (kernel[i] < 1 || stride[i] < 1 || dilation[i] < 1 || padding[i] < 0)
        throw Error(op, "kernel, stride and dilation are at least 1, padding at least 0");
      if (2 * padding[i] > kernel[i])
        throw Error(op, str_cat("a padding of ", padding[i], " is more than half of the kernel's ", kernel[i]));
      const int reach = (kernel[i] - 1) * dilation[i] + 1;
      const Dim size = x->extent(2 + static_cast<int>(i)), room = size + 2 * padding[i] - reach;
      if (room.bounds().hi < 0)
        throw Error(op, str_cat("a window of ", reach, " is larger than the padded image ", padded(x)));
      if (!ceil_mode) continue;
      const auto known = size.constant();
      if (!known) throw Error(op, "ceil_mode needs known extents");
      const std::int64_t left = *known + 2 * padding[i] - reach;
      std::int64_t last = (left + stride[i] - 1) / stride[i];  // the last window
      if (last * stride[i] >= *known + padding[i]) --last;     // a window must begin inside
      beyond[i] = static_cast<int>(std::max<std::int64_t>(0, last * stride[i] - left));
    }
  }
  std::string padded(const Operand& x) const {
    Shape s = x->shape();
    for (std::size_t i = 0; i < padding.size(); ++i) s[2 + i] = s[2 + i] + 2 * padding[i];
    return str(s);
  }
  Tensor surrounded(Tensor t, double outside) const {
    for (int i = 0; i < n; ++i) {
      const auto k = static_cast<std::size_t>(i);
      if (padding[k] || beyond[k]) t = pad(t, 2 + i, padding[k], padding[k] + beyond[k], PadMode::Constant, outside);
    }
    return t;
  }
  // Reduces each window; reduce() reduces the last axis.
  template <class Reduce>
  Tensor reduced(const Tensor& x, double outside, const Reduce& reduce) const {
    constexpr int kWide = 5;
    Tensor t = surrounded(x, outside);
    if (std::ranges::any_of(kernel, [](int k) { return k >= kWide; })) {
      // axis by axis: k + k operations an element, not k * k
      for (int i = n; i-- > 0;) {
        const auto k = static_cast<std::size_t>(i);
        t = reduce(t.with(t.view().unfold(2 + i, kernel[k], stride[k], dilation[k])));
      }
      return t;
    }
    t = windows(t, n, {kernel.begin(), kernel.end()}, stride, dilation);
    for (int i = 0; i < n; ++i) t = reduce(t);
    return t;
  }
};

}  // namespace

Tensor max_pool(Operand x, IntList kernel, IntList stride, IntList padding, IntList dilation, bool ceil_mode) {
  const OpScope scope("max_pool", x.at);
  const Pool p(x, "max_pool", std::move(kernel), std::move(stride), std::move(padding), std::move(dilation), ceil_mode);
  // ties: the first along the last axis, then along the axis before, ...
  return p.reduced(x, -kInf, [](const Tensor& t) {
    const int last = t.rank() - 1;
    return with_vjp_of_first(prim::max_reduce(t, last), t, last);
  });
}
Tensor avg_pool(Operand x, IntList kernel, IntList stride, IntList padding, bool ceil_mode, bool count_include_pad) {
  const OpScope scope("avg_pool", x.at);
  LC_RETURN_IF_HALF(
      x, avg_pool(x, std::move(kernel), std::move(stride), std::move(padding), ceil_mode, count_include_pad));
  const Pool p(x, "avg_pool", std::move(kernel), std::move(stride), std::move(padding), {1}, ceil_mode);
  const Tensor t = p.reduced(as_float(x), 0, [](const Tensor& w) { return prim::sum_reduce(w, w.rank() - 1); });
  Dim count = 1;  // elements averaged in each window
  for (int i = 0; i < p.n; ++i) {
    const auto k = static_cast<std::size_t>(i);
    const Dim size = x->extent(2 + i);
    if (count_include_pad && p.beyond[k] == 0) {
      count = count * Dim(p.kernel[k]);
      continue;
    }
    const Dim from = Dim::index(2 + i, t.extent(2 + i)) * Dim(p.stride[k]) - p.padding[k], to = from + p.kernel[k];
    count = count * (count_include_pad ? min(to, size + p.padding[k]) - from : min(to, size) - max(from, 0));
  }
  if (const auto known = count.constant()) return mul(t, 1 / static_cast<double>(*known));
  return prim::div(t, t.graph().index(t.shape(), count, t.dtype()));
}
namespace {

// Pools one axis into m windows; window j covers [floor(j n / m), ceil((j + 1) n / m)). Elements outside are replaced
// by `outside`; `reduce` gets the window's axis and sizes.
template <class Reduce>
Tensor adaptive(const Operand& x, const char* op, std::vector<int> output, double outside, const Reduce& reduce) {
  const OpScope scope(op, x.at);
  const int n = spatial_axes(x, op);
  output = per_axis(output, n, op, "output");
  Tensor t = x;
  for (int axis = 2; axis < n + 2; ++axis) {
    const auto len = t.extent(axis).constant();
    const int m = output[axis - 2];
    if (!len || m < 1) throw Error(op, "needs known extents and outputs of 1 or more");
    Tensor wide = t.unsqueeze(axis);
    Shape s = wide.shape();
    s[axis] = m;
    wide = wide.expand(s);
    const Dim j = Dim::index(axis, m), k = Dim::index(axis + 1, *len);
    const Dim from = j * Dim(*len) / Dim(m), to = (j * Dim(*len) + (*len + m - 1)) / Dim(m);
    const Tensor inside = t.graph().index(s, less(from - 1, k) * less(k, to), DType::Bool);
    t = reduce(prim::where(inside, wide, full_like(wide, outside)), axis + 1, to - from);
  }
  return t;
}

}  // namespace

Tensor adaptive_avg_pool(Operand x, IntList output) {
  LC_RETURN_IF_HALF(x, adaptive_avg_pool(x, std::move(output)));
  return adaptive(x, "adaptive_avg_pool", std::move(output), 0, [](Tensor w, int axis, Dim size) {
    const Tensor total = prim::sum_reduce(w, axis);
    return prim::div(total, w.graph().index(total.shape(), size, w.dtype()));
  });
}
Tensor adaptive_max_pool(Operand x, IntList output) {
  return adaptive(x, "adaptive_max_pool", std::move(output), -kInf,
                  [](Tensor w, int axis, Dim) { return prim::max_reduce(w, axis); });
}

Tensor interpolate(Operand x, std::vector<int> size, Interpolation mode, bool align_corners) {
  const OpScope scope("interpolate", x.at);
  if (mode == Interpolation::Bilinear) LC_RETURN_IF_HALF(x, interpolate(x, std::move(size), mode, align_corners));
  const int n = spatial_axes(x, "interpolate");
  size = per_axis(size, n, "interpolate", "size");
  if (mode == Interpolation::Bilinear && !is_float(x->dtype()))
    throw Error("interpolate", str_cat("between ", name(x->dtype()), " there is nothing; convert to a floating type"));
  Tensor t = x;
  for (int i = 0; i < n; ++i) {
    const int axis = 2 + i;
    const auto len = t.extent(axis).constant();
    if (!len) throw Error("interpolate", "needs known extents");
    const int m = size[i];
    if (m < 1 || *len < 1) throw Error("interpolate", str_cat(str(x->shape()), " to a size of ", m));
    if (m == *len) continue;  // no interpolation needed, and 0 times a neighbour may be NaN
    Shape s = t.shape();
    s[axis] = m;
    const Dim j = Dim::index(axis, m);
    if (mode == Interpolation::Nearest) {
      t = prim::gather(t, t.graph().index(s, j * Dim(*len) / Dim(m)), axis);
      continue;
    }
    // element j of the result is at the exact source position above / below
    const Dim above = align_corners ? j * Dim(*len - 1) : max((j * 2 + 1) * Dim(*len) - m, 0),
              below = align_corners ? std::max(m - 1, 1) : 2 * m;
    const Dim low = above / below;
    const Tensor a = prim::gather(t, t.graph().index(s, low), axis),
                 b = prim::gather(t, t.graph().index(s, min(low + 1, *len - 1)), axis);
    const DType exact = t.dtype() == DType::F64 ? DType::F64 : DType::F32;
    const Tensor f = prim::cast(
        mul(t.graph().index(s, above % below, exact), 1 / static_cast<double>(*below.constant())), t.dtype());
    t = prim::add(prim::mul(a, add(neg(f), 1)), prim::mul(b, f));
  }
  return t;
}

namespace {
// Splits the last three axes of x [..., c, h, w] into the five of `parts`, permutes these and merges them to `to`.
Tensor shuffled(const Operand& x, const Shape& parts, const Axes& order, const Shape& to) {
  Shape split = x->shape();
  split.resize(split.size() - 3);
  Shape joined = split;
  Axes axes;
  for (int i = 0; i < x->rank() - 3; ++i) axes.push_back(i);
  for (const int i : order) axes.push_back(x->rank() - 3 + i);
  split.insert(split.end(), parts.begin(), parts.end());
  joined.insert(joined.end(), to.begin(), to.end());
  return x->reshape(split).permute(axes).reshape(joined);
}
void check_factor(int factor, const Operand& x, const char* op) {
  if (factor < 1 || x->rank() < 3) throw Error(op, str_cat("a factor of ", factor, " for ", str(x->shape())));
}
}  // namespace

Tensor pixel_shuffle(Operand x, int factor) {
  const OpScope scope("pixel_shuffle", x.at);
  check_factor(factor, x, "pixel_shuffle");
  const Dim f = factor, f2 = f * f, c = x->extent(-3) / f2, h = x->extent(-2), w = x->extent(-1);
  if (!(c * f2 == x->extent(-3)))
    throw Error("pixel_shuffle", str_cat(f2, " does not divide the channels of ", str(x->shape())));
  return shuffled(x, {c, f, f, h, w}, {0, 3, 1, 4, 2}, {c, h * f, w * f});
}
Tensor pixel_unshuffle(Operand x, int factor) {
  const OpScope scope("pixel_unshuffle", x.at);
  check_factor(factor, x, "pixel_unshuffle");
  const Dim f = factor, c = x->extent(-3), h = x->extent(-2) / f, w = x->extent(-1) / f;
  if (!(h * f == x->extent(-2)) || !(w * f == x->extent(-1)))
    throw Error("pixel_unshuffle", str_cat(factor, " does not divide ", str(x->shape())));
  return shuffled(x, {c, h, f, w, f}, {0, 2, 4, 1, 3}, {c * f * f, h, w});
}

}  // namespace lc
