// Convolution is a sum of products over overlapping views.
#include "lightcone/ops/internal.h"

namespace lc {
using namespace detail;

namespace detail {

int spatial_axes(const Operand& x, const char* op) {
  const int n = x->rank() - 2;
  if (n < 1 || n > 3) throw Error(op, "needs [batch, channels, 1 to 3 spatial axes], not " + str(x->shape()));
  return n;
}
std::vector<int> per_axis(std::vector<int> v, int n, const char* op, const char* what) {
  if (v.size() == 1) v.assign(static_cast<std::size_t>(n), v[0]);
  if (static_cast<int>(v.size()) != n)
    throw Error(op, cat(what, " has ", v.size(), " numbers for ", n, " spatial axes"));
  return v;
}

// Windows over every spatial axis; their elements are the last n axes.
Tensor windows(Tensor x, int n, const std::vector<Dim>& kernel, const std::vector<int>& stride,
               const std::vector<int>& dilation) {
  for (int i = 0; i < n; ++i)
    x = x.unfold(2 + i, kernel[static_cast<std::size_t>(i)], stride[static_cast<std::size_t>(i)],
                 dilation[static_cast<std::size_t>(i)]);
  return x;
}

}  // namespace detail

namespace {

Tensor add_channels(Tensor y, const Operand& bias, const char* op) {
  if (bias->rank() != 1 || !(bias->extent(0) == y.extent(1)))
    throw Error(op, cat("a bias ", str(bias->shape()), " does not fit ", y.extent(1), " output channels"));
  Shape s(static_cast<std::size_t>(y.rank()), 1);
  s[1] = y.extent(1);
  return y + bias->reshape(s);
}

}  // namespace

namespace {
struct Steps {
  std::vector<int> stride, padding, dilation;

  Steps(const ConvOptions& o, int n, const Operand& x, const Operand& weight, const char* op)
      : stride(per_axis(o.stride, n, op, "stride")),
        padding(per_axis(o.padding, n, op, "padding")),
        dilation(per_axis(o.dilation, n, op, "dilation")) {
    for (std::size_t i = 0; i < stride.size(); ++i)
      if (stride[i] < 1 || dilation[i] < 1 || padding[i] < 0)
        throw Error(op, "stride and dilation are at least 1, padding at least 0");
    if (x->dtype() != weight->dtype())
      throw Error(op, cat("x is ", name(x->dtype()), ", the weight ", name(weight->dtype()), "; convert one"));
  }
};
}  // namespace

Tensor conv(Operand x, Operand weight, const ConvOptions& o) {
  const char* op = "conv";
  const OpScope scope(op, x.at);
  const int n = spatial_axes(x, op);
  if (weight->rank() != n + 2)
    throw Error(op, cat("a weight ", str(weight->shape()), " does not fit ", str(x->shape())));
  const auto [stride, padding, dilation] = Steps(o, n, x, weight, op);
  LC_OPMATH2(x, weight, conv(x, weight, o));
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
  const Tensor r =
      prim::sum_reduce(prim::mul(t.expand(full).reshape(rows), weight->reshape(ws).expand(full).reshape(rows)), n + 3);
  Shape s{b, out};
  s.insert(s.end(), places.begin(), places.end());
  return r.reshape(s);
}

Tensor conv(Operand x, Operand weight, Operand bias, const ConvOptions& o) {
  const OpScope scope("conv", x.at);
  if (x->dtype() == bias->dtype()) LC_OPMATH2(x, weight, conv(x, weight, bias, o));
  return add_channels(conv(x, weight, o), bias, "conv");
}

Tensor conv_transpose(Operand x, Operand weight, Operand bias, const ConvOptions& o) {
  const OpScope scope("conv_transpose", x.at);
  if (x->dtype() == bias->dtype()) LC_OPMATH2(x, weight, conv_transpose(x, weight, bias, o));
  return add_channels(conv_transpose(x, weight, o), bias, "conv_transpose");
}

namespace {
Tensor grow(Tensor t, int axis, const Dim& before, const Dim& after) {  // pads, or cuts where negative
  const bool cut_front = before.bounds().hi < 0, cut_back = after.bounds().hi < 0;
  if (cut_front || cut_back)
    t = t.slice(axis, cut_front ? Dim(0) - before : Dim(0), t.extent(axis) + (cut_back ? after : Dim(0)));
  return t.pad(axis, cut_front ? Dim(0) : before, cut_back ? Dim(0) : after);
}
}  // namespace

Tensor conv_transpose(Operand x, Operand weight, const ConvOptions& o) {
  const char* op = "conv_transpose";
  const OpScope scope(op, x.at);
  const int n = spatial_axes(x, op);
  const auto [stride, padding, dilation] = Steps(o, n, x, weight, op);
  LC_OPMATH2(x, weight, conv_transpose(x, weight, o));
  const auto extra = per_axis(o.output_padding, n, op, "output_padding");
  if (weight->rank() != n + 2 || !(weight->extent(0) == x->extent(1)))
    throw Error(op, cat("a weight ", str(weight->shape()), " does not fit ", str(x->shape())));
  if (o.groups < 1 || !(x->extent(1) % Dim(o.groups) == Dim(0)))
    throw Error(op, cat(o.groups, " groups do not divide ", str(x->shape())));
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
    if (extra[k] < 0 || extra[k] >= std::max(stride[k], dilation[k]))
      throw Error(op, "output_padding is smaller than the stride or the dilation");
    if ((t.extent(2 + i) + edge * 2 + Dim(extra[k])).bounds().hi < 1)
      throw Error(op, cat("a padding of ", padding[k], " leaves nothing of ", str(x->shape())));
    t = grow(t, 2 + i, edge, edge + Dim(extra[k]));
    w = w.flip(2 + i);
  }
  return conv(t, w, inner);
}

}  // namespace lc
