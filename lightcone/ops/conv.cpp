// Convolution and pooling are sums and maxima over overlapping views.
#include "lightcone/ops/internal.h"

namespace lc {
using namespace detail;

namespace {

int spatial_axes(const Operand& x, const char* op) {
  const int n = x->rank() - 2;
  if (n < 1 || n > 3) throw Error(op, "needs [batch, channels, 1 to 3 spatial axes], not " + str(x->shape()));
  return n;
}
std::vector<int> per_axis(std::vector<int> v, int n, const char* op, const char* what) {
  if (v.size() == 1) v.assign(static_cast<std::size_t>(n), v[0]);
  if (static_cast<int>(v.size()) != n) throw Error(op, cat(what, " has ", v.size(), " numbers for ", n, " spatial axes"));
  return v;
}

// Windows over every spatial axis; their elements are the last n axes.
Tensor windows(Tensor x, int n, const std::vector<Dim>& kernel, const std::vector<int>& stride, const std::vector<int>& dilation) {
  for (int i = 0; i < n; ++i) x = x.unfold(2 + i, kernel[static_cast<std::size_t>(i)], stride[static_cast<std::size_t>(i)], dilation[static_cast<std::size_t>(i)]);
  return x;
}

void room_for(const Tensor& padded, const std::vector<int>& kernel, const char* op) {
  for (std::size_t i = 0; i < kernel.size(); ++i)
    if (provably_below(padded.extent(2 + static_cast<int>(i)), kernel[i]))
      throw Error(op, cat("a window of ", kernel[i], " is larger than the padded image ", str(padded.shape())));
}

Tensor add_channels(Tensor y, const Operand& bias) {
  Shape s(static_cast<std::size_t>(y.rank()), 1);
  s[1] = y.extent(1);
  return y + bias->reshape(s);
}

}  // namespace

Tensor conv(Operand x, Operand weight, const ConvOptions& o) {
  const char* op = "conv";
  const OpScope scope(op, x.at);
  const int n = spatial_axes(x, op);
  if (weight->rank() != n + 2) throw Error(op, cat("a weight ", str(weight->shape()), " does not fit ", str(x->shape())));
  const auto stride = per_axis(o.stride, n, op, "stride"), padding = per_axis(o.padding, n, op, "padding"), dilation = per_axis(o.dilation, n, op, "dilation");
  const Dim out = weight->extent(0), in = weight->extent(1);
  if (o.groups < 1 || !(in * Dim(o.groups) == x->extent(1)) || !(out % Dim(o.groups) == Dim(0)))
    throw Error(op, cat("a weight ", str(weight->shape()), " in ", o.groups, " groups does not fit ", str(x->shape())));
  Tensor t = x;
  std::vector<Dim> kernel;
  for (int i = 0; i < n; ++i) {
    t = t.pad(2 + i, padding[static_cast<std::size_t>(i)], padding[static_cast<std::size_t>(i)]);
    kernel.push_back(weight->extent(2 + i));
    const Dim reach = (kernel.back() - 1) * Dim(dilation[static_cast<std::size_t>(i)]) + 1;
    if (provably_below(t.extent(2 + i), reach))
      throw Error(op, cat("filter ", str(weight->shape()), " is larger than the padded image ", str(t.shape())));
  }
  t = windows(t, n, kernel, stride, dilation);  // [b, c, out..., k...]
  const Dim b = x->extent(0), g = o.groups;
  Shape places, full{b, g, out / g};
  for (int i = 0; i < n; ++i) places.push_back(t.extent(2 + i));
  full.insert(full.end(), places.begin(), places.end());
  full.push_back(in);
  full.insert(full.end(), kernel.begin(), kernel.end());
  Shape grouped{b, g, in};
  grouped.insert(grouped.end(), places.begin(), places.end());
  grouped.insert(grouped.end(), kernel.begin(), kernel.end());
  t = t.reshape(grouped);
  std::vector<int> order{0, 1};  // channels go behind the places
  for (int i = 0; i < n; ++i) order.push_back(3 + i);
  order.push_back(2);
  for (int i = 0; i < n; ++i) order.push_back(3 + n + i);
  t = t.permute(order).unsqueeze(2);
  Shape ws{1, g, out / g};
  ws.insert(ws.end(), static_cast<std::size_t>(n), 1);
  ws.push_back(in);
  ws.insert(ws.end(), kernel.begin(), kernel.end());
  // one summed axis of in * k elements, so that a back end sees a matrix product
  Shape rows(full.begin(), full.end() - n - 1);
  rows.push_back(in * product(kernel));
  const Tensor r = prim::sum_reduce(prim::mul(t.expand(full).reshape(rows), weight->reshape(ws).expand(full).reshape(rows)), n + 3);
  Shape s{b, out};
  s.insert(s.end(), places.begin(), places.end());
  return r.reshape(s);
}

Tensor conv(Operand x, Operand weight, Operand bias, const ConvOptions& o) {
  const OpScope scope("conv", x.at);
  return add_channels(conv(x, weight, o), bias);
}

Tensor conv_transpose(Operand x, Operand weight, Operand bias, const ConvOptions& o) {
  const OpScope scope("conv_transpose", x.at);
  return add_channels(conv_transpose(x, weight, o), bias);
}

namespace {
Tensor grow(Tensor t, int axis, const Dim& before, const Dim& after) {  // pads, or cuts where negative
  const bool cut_front = before.bounds().hi < 0, cut_back = after.bounds().hi < 0;
  if (cut_front || cut_back) t = t.slice(axis, cut_front ? Dim(0) - before : Dim(0), t.extent(axis) + (cut_back ? after : Dim(0)));
  return t.pad(axis, cut_front ? Dim(0) : before, cut_back ? Dim(0) : after);
}
}  // namespace

Tensor conv_transpose(Operand x, Operand weight, const ConvOptions& o) {
  const char* op = "conv_transpose";
  const OpScope scope(op, x.at);
  const int n = spatial_axes(x, op);
  const auto stride = per_axis(o.stride, n, op, "stride"), padding = per_axis(o.padding, n, op, "padding"), dilation = per_axis(o.dilation, n, op, "dilation");
  const auto extra = per_axis(o.output_padding, n, op, "output_padding");
  if (weight->rank() != n + 2 || !(weight->extent(0) == x->extent(1)))
    throw Error(op, cat("a weight ", str(weight->shape()), " does not fit ", str(x->shape())));
  if (o.groups < 1 || !(x->extent(1) % Dim(o.groups) == Dim(0))) throw Error(op, cat(o.groups, " groups do not divide ", str(x->shape())));
  // zeros between the elements, then an ordinary convolution with the flipped filter
  Tensor t = x;
  Shape parts = weight->shape(), joined = parts;  // [in, out / g, k...] -> [out, in / g, k...]
  parts[0] = parts[0] / Dim(o.groups);
  parts.insert(parts.begin(), o.groups);
  joined[0] = parts[2] * Dim(o.groups), joined[1] = parts[1];
  Tensor w = weight->reshape(parts).transpose(1, 2).reshape(joined);
  const ConvOptions inner{.dilation = dilation, .groups = o.groups};
  for (int i = 0; i < n; ++i) {
    const auto k = static_cast<std::size_t>(i);
    const Dim len = t.extent(2 + i);
    Shape spread = t.shape();
    t = t.unsqueeze(3 + i).pad(3 + i, 0, stride[k] - 1);
    spread[2 + k] = len * Dim(stride[k]);
    t = t.reshape(spread).slice(2 + i, 0, (len - 1) * Dim(stride[k]) + 1);
    const Dim edge = (weight->extent(2 + i) - 1) * Dim(dilation[k]) - padding[k];
    if (extra[k] < 0 || extra[k] >= std::max(stride[k], dilation[k])) throw Error(op, "output_padding is smaller than the stride or the dilation");
    t = grow(t, 2 + i, edge, edge + Dim(extra[k]));
    w = w.flip(2 + i);
  }
  return conv(t, w, inner);
}

Tensor max_pool(Operand x, std::vector<int> kernel, std::vector<int> stride, std::vector<int> padding) {
  const OpScope scope("max_pool", x.at);
  const int n = spatial_axes(x, "max_pool");
  kernel = per_axis(kernel, n, "max_pool", "kernel");
  stride = per_axis(stride.empty() ? kernel : stride, n, "max_pool", "stride");
  padding = per_axis(padding, n, "max_pool", "padding");
  Tensor t = x;
  for (int i = 0; i < n; ++i) {
    const auto k = static_cast<std::size_t>(i);
    if (padding[k]) t = pad(t, 2 + i, padding[k], padding[k], PadMode::Constant, -kInf);
  }
  room_for(t, kernel, "max_pool");
  t = windows(t, n, {kernel.begin(), kernel.end()}, stride, std::vector<int>(static_cast<std::size_t>(n), 1));
  for (int i = 0; i < n; ++i) t = prim::max_reduce(t, t.rank() - 1);
  return t;
}
Tensor avg_pool(Operand x, std::vector<int> kernel, std::vector<int> stride, std::vector<int> padding) {
  const OpScope scope("avg_pool", x.at);
  const int n = spatial_axes(x, "avg_pool");
  kernel = per_axis(kernel, n, "avg_pool", "kernel");
  stride = per_axis(stride.empty() ? kernel : stride, n, "avg_pool", "stride");
  padding = per_axis(padding, n, "avg_pool", "padding");
  Tensor t = x;
  double size = 1;
  for (int i = 0; i < n; ++i) {
    const auto k = static_cast<std::size_t>(i);
    t = t.pad(2 + i, padding[k], padding[k]);
    size *= kernel[k];
  }
  room_for(t, kernel, "avg_pool");
  t = windows(t, n, {kernel.begin(), kernel.end()}, stride, std::vector<int>(static_cast<std::size_t>(n), 1));
  for (int i = 0; i < n; ++i) t = prim::sum_reduce(t, t.rank() - 1);
  return mul(t, 1 / size);
}
namespace {

// One axis in m windows, window j covering [floor(j n / m), ceil((j + 1) n / m)): what is outside is
// replaced, and `reduce` gets the window's axis and its sizes.
template <class Reduce>
Tensor adaptive(const Operand& x, const char* op, std::vector<int> output, double outside, const Reduce& reduce) {
  const OpScope scope(op, x.at);
  const int n = spatial_axes(x, op);
  output = per_axis(output, n, op, "output");
  Tensor t = x;
  for (int axis = 2; axis < n + 2; ++axis) {
    const auto len = t.extent(axis).constant();
    const int m = output[static_cast<std::size_t>(axis - 2)];
    if (!len || m < 1) throw Error(op, "needs known extents and outputs of 1 or more");
    Tensor wide = t.unsqueeze(axis);
    Shape s = wide.shape();
    s[static_cast<std::size_t>(axis)] = m;
    wide = wide.expand(s);
    const Dim j = Dim::index(axis, m), k = Dim::index(axis + 1, *len);
    const Dim from = j * Dim(*len) / Dim(m), to = (j * Dim(*len) + (*len + m - 1)) / Dim(m);
    const Tensor inside = t.graph().index(s, less(from - 1, k) * less(k, to), DType::Bool);
    t = reduce(prim::where(inside, wide, full_like(wide, outside)), axis + 1, to - from);
  }
  return t;
}

}  // namespace

Tensor adaptive_avg_pool(Operand x, std::vector<int> output) {
  return adaptive(x, "adaptive_avg_pool", std::move(output), 0, [](Tensor w, int axis, Dim size) {
    const Tensor total = prim::sum_reduce(w, axis);
    return prim::div(total, w.graph().index(total.shape(), size, w.dtype()));
  });
}
Tensor adaptive_max_pool(Operand x, std::vector<int> output) {
  return adaptive(x, "adaptive_max_pool", std::move(output), -kInf, [](Tensor w, int axis, Dim) { return prim::max_reduce(w, axis); });
}

Tensor interpolate(Operand x, std::vector<int> size, Interpolation mode, bool align_corners) {
  const OpScope scope("interpolate", x.at);
  const int n = spatial_axes(x, "interpolate");
  size = per_axis(size, n, "interpolate", "size");
  Tensor t = x;
  for (int i = 0; i < n; ++i) {
    const int axis = 2 + i;
    const auto len = t.extent(axis).constant();
    if (!len) throw Error("interpolate", "needs known extents");
    const int m = size[static_cast<std::size_t>(i)];
    Shape s = t.shape();
    s[static_cast<std::size_t>(axis)] = m;
    const Dim j = Dim::index(axis, m);
    if (mode == Interpolation::Nearest) {
      t = prim::gather(t, t.graph().index(s, j * Dim(*len) / Dim(m)), axis);
      continue;
    }
    const Tensor place = t.graph().index(s, j, t.dtype());
    const double ratio = align_corners ? (m > 1 ? static_cast<double>(*len - 1) / (m - 1) : 0) : static_cast<double>(*len) / m;
    const Tensor at = align_corners ? mul(place, ratio) : clamp(add(mul(add(place, 0.5), ratio), -0.5), 0, kInf);
    const Tensor low = floor(at), i0 = to(low, DType::I64);
    const Tensor i1 = prim::minimum(add(i0, 1), full_like(i0, static_cast<double>(*len - 1)));
    const Tensor f = prim::add(at, neg(low));
    const Tensor a = prim::gather(t, i0, axis), b = prim::gather(t, i1, axis);
    t = prim::add(prim::mul(a, add(neg(f), 1)), prim::mul(b, f));
  }
  return t;
}

}  // namespace lc
