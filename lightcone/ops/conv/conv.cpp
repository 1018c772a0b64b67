// Convolution as a sum of products over overlapping views.
#include "lightcone/ops/internal.h"

#include <algorithm>

namespace lc {
using namespace detail;

namespace detail {

int spatial_axes(const Operand& x, const char* op) {
  const int n = x->rank() - 2;
  if (n < 1 || n > 3) throw Error(op, "needs [batch, channels, 1 to 3 spatial axes], not " + str(x->shape()));
  return n;
}
Operand batch_of_one(const Operand& x) { return {x->unsqueeze(0), x.at}; }
std::vector<int> per_axis(std::vector<int> v, int n, const char* op, const char* what) {
  if (v.size() == 1) v.assign(static_cast<std::size_t>(n), v[0]);
  if (static_cast<int>(v.size()) != n)
    throw Error(op, str_cat(what, " has ", v.size(), " numbers for ", n, " spatial axes"));
  return v;
}

// Makes windows over every spatial axis; the last n axes run inside the window.
Tensor windows(Tensor x, int n, const std::vector<Dim>& kernel, const std::vector<int>& stride,
               const std::vector<int>& dilation) {
  for (int i = 0; i < n; ++i) x = x.unfold(2 + i, kernel[i], stride[i], dilation[i]);
  return x;
}

}  // namespace detail

namespace {

// As in PyTorch, an image may lack the batch axis: then its rank is that of the weight minus one.
bool is_one_sample(const Operand& x, const Operand& weight) {
  return weight->rank() >= 3 && weight->rank() <= 5 && x->rank() == weight->rank() - 1;
}

Tensor add_channels(Tensor y, const Operand& bias, const char* op) {
  if (bias->rank() != 1 || !(bias->extent(0) == y.extent(1)))
    throw Error(op, str_cat("a bias ", str(bias->shape()), " does not fit ", y.extent(1), " output channels"));
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
      throw Error(op, str_cat("x is ", name(x->dtype()), ", the weight ", name(weight->dtype()), "; convert one"));
  }
};

// ---- derivatives, each again a convolution ---------------------------------------------------------------

std::vector<int> spatial(const std::vector<int>& v, int n) {
  return v.size() == 1 ? std::vector<int>(static_cast<std::size_t>(n), v[0]) : v;
}

// Returns weight [g out, in, k...] as [g in, out, k...] with flipped filters, for the gradient of the input.
Tensor transposed_filters(const Tensor& weight, int groups, int n) {
  Shape s = weight.shape();
  const Dim out = s[0] / Dim(groups), in = s[1];
  s[0] = out;
  s.insert(s.begin(), groups);
  Tensor w = weight.reshape(s).transpose(1, 2);
  s = weight.shape();
  s[0] = in * Dim(groups), s[1] = out;
  w = w.reshape(s);
  for (int i = 0; i < n; ++i) w = w.flip(2 + i);
  return w;
}

// For stride 1, the gradient of x is a convolution of the gradient of y, padded by the reach of the filter.
Tensor vjp_of_image(const Tensor& g, const Tensor& x, const Tensor& weight, const ConvOptions& o, int n) {
  const std::vector<int> padding = spatial(o.padding, n), dilation = spatial(o.dilation, n);
  Tensor t = g;
  for (int i = 0; i < n; ++i) {
    const auto k = static_cast<std::size_t>(i);
    const Dim around = (weight.extent(2 + i) - 1) * Dim(dilation[k]) - padding[k];
    if (around.bounds().lo < 0) t = t.slice(2 + i, around * -1, t.extent(2 + i) + around);
    else t = t.pad(2 + i, around, around);
  }
  const Tensor d = conv(t, transposed_filters(weight, o.groups, n), {.dilation = o.dilation, .groups = o.groups});
  check(d.shape() == x.shape(), "the cotangent of a convolution's image");
  return d;
}

// For any stride, the gradient of x is a transposed convolution; zeros replace elements after the last window.
Tensor vjp_of_strided_image(const Tensor& g, const Tensor& x, const Tensor& weight, const ConvOptions& o, int n) {
  const std::vector<int> stride = spatial(o.stride, n), padding = spatial(o.padding, n),
                         dilation = spatial(o.dilation, n);
  Tensor d = conv_transpose(g, weight, {.stride = stride, .padding = {0}, .dilation = dilation, .groups = o.groups});
  for (int i = 0; i < n; ++i) {  // removes the padding
    const auto k = static_cast<std::size_t>(i);
    const Dim size = x.extent(2 + i), missing = size + 2 * padding[k] - d.extent(2 + i);
    d = d.pad(2 + i, 0, missing).slice(2 + i, padding[k], size + padding[k]);
  }
  return d;
}

// The gradient of the filter: x, with channels as its batch, convolved with the gradient of y in steps of the dilation.
// The part of x covered by windows is sliced out first, so that kernels recognise the sum through its views.
Tensor vjp_of_filter(const Tensor& g, const Tensor& x, const Tensor& weight, const ConvOptions& o, int n) {
  const std::vector<int> stride = spatial(o.stride, n), padding = spatial(o.padding, n),
                         dilation = spatial(o.dilation, n);
  const Dim groups = o.groups, in = weight.extent(1), batch = x.extent(0);
  Tensor image = x;
  for (int i = 0; i < n; ++i) {
    const auto k = static_cast<std::size_t>(i);
    const Dim read = (g.extent(2 + i) - 1) * Dim(stride[k]) + (weight.extent(2 + i) - 1) * Dim(dilation[k]) + 1;
    image = image.pad(2 + i, padding[k], padding[k]).slice(2 + i, 0, read);
  }
  Shape s = image.shape();
  s[1] = in;
  s.insert(s.begin() + 1, groups);
  std::vector<int> order{2, 1, 0};
  for (int i = 0; i < n; ++i) order.push_back(3 + i);
  const Tensor channels = image.reshape(s).permute(order);
  s = image.shape();
  s[0] = in, s[1] = groups * batch;
  const Tensor d =
      conv(channels.reshape(s), g.transpose(0, 1), {.stride = o.dilation, .dilation = o.stride, .groups = o.groups});
  return d.transpose(0, 1);
}

// Adds a hint to an error message if the channels seem to come last.
std::string_view if_channels_last(const Operand& x, const Dim& channels) {
  static constexpr std::string_view kSecond[] = {
      "; channels come second, [N, C, L]: permute the axes to 0, 2, 1",
      "; channels come second, [N, C, H, W]: permute the axes to 0, 3, 1, 2",
      "; channels come second, [N, C, D, H, W]: permute the axes to 0, 4, 1, 2, 3",
  };
  if (x->extent(1) == channels || !(x->extent(-1) == channels)) return {};
  return kSecond[x->rank() - 3];
}

void check_groups(const Operand& x, const Operand& weight, int groups, const char* op) {
  if (groups < 1) throw Error(op, str_cat(groups, " groups: there is at least one"));
  const std::string of =
      str_cat("a weight ", str(weight->shape()), groups == 1 ? "" : str_cat(" in ", groups, " groups"));
  const Dim wanted = weight->extent(1) * Dim(groups);
  if (!(wanted == x->extent(1)))
    throw Error(op, str_cat(of, " takes ", wanted, " channels, and ", str(x->shape()), " has ", x->extent(1),
                            if_channels_last(x, wanted)));
  if (!(weight->extent(0) % Dim(groups) == Dim(0)))
    throw Error(op, str_cat(of, ": they do not divide its ", weight->extent(0), " channels out"));
}

}  // namespace

Tensor conv(Operand x, Operand weight, const ConvOptions& o) {
  const char* op = "conv";
  const OpScope scope(op, x.at);
  if (is_one_sample(x, weight)) return conv(batch_of_one(x), weight, o).squeeze(0);
  const int n = spatial_axes(x, op);
  if (weight->rank() != n + 2)
    throw Error(op, str_cat("a weight ", str(weight->shape()), " does not fit ", str(x->shape())));
  const auto [stride, padding, dilation] = Steps(o, n, x, weight, op);
  LC_RETURN_IF_EITHER_HALF(x, weight, conv(x, weight, o));
  const Dim out = weight->extent(0), in = weight->extent(1);
  check_groups(x, weight, o.groups, op);
  Tensor t = x;
  std::vector<Dim> kernel;
  for (int i = 0; i < n; ++i) {
    t = t.pad(2 + i, padding[i], padding[i]);
    kernel.push_back(weight->extent(2 + i));
    const Dim reach = (kernel.back() - 1) * Dim(dilation[i]) + 1;
    if (provably_below(t.extent(2 + i), reach))
      throw Error(op, str_cat("filter ", str(weight->shape()), " is larger than the padded image ", str(t.shape())));
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
  std::vector<int> order{0, 1};  // moves channels after the spatial axes
  for (int i = 0; i < n; ++i) order.push_back(3 + i);
  order.push_back(2);
  for (int i = 0; i < n; ++i) order.push_back(3 + n + i);
  t = t.permute(order).unsqueeze(2);
  Shape ws{1, g, out / g};
  ws.insert(ws.end(), static_cast<std::size_t>(n), 1);
  ws.push_back(in);
  ws.insert(ws.end(), kernel.begin(), kernel.end());
  // merges into one summed axis of in * k elements, so that back ends see a matrix product
  Shape rows(full.begin(), full.end() - n - 1);
  rows.push_back(in * product(kernel));
  const Tensor r =
      prim::sum_reduce(prim::mul(t.expand(full).reshape(rows), weight->reshape(ws).expand(full).reshape(rows)), n + 3);
  Shape s{b, out};
  s.insert(s.end(), places.begin(), places.end());
  with_vjp(r, {x, weight}, [o, n, s](const VjpCall& c) -> std::vector<Tensor> {
    const Tensor y = c.g().reshape(s), &x = c.in[0], &weight = c.in[1];
    const std::vector<int> stride = spatial(o.stride, n);
    const bool dense = std::all_of(stride.begin(), stride.end(), [](int k) { return k == 1; });
    std::vector<Tensor> d(2);
    if (c.wanted[0]) d[0] = dense ? vjp_of_image(y, x, weight, o, n) : vjp_of_strided_image(y, x, weight, o, n);
    if (c.wanted[1]) d[1] = vjp_of_filter(y, x, weight, o, n);
    return d;
  });
  return r.reshape(s);
}

Tensor conv(Operand x, Operand weight, OptionalOperand bias, const ConvOptions& o) {
  const OpScope scope("conv", x.at);
  if (!bias.given()) return conv(x, weight, o);
  if (is_one_sample(x, weight)) return conv(batch_of_one(x), weight, bias, o).squeeze(0);
  if (x->dtype() == bias->dtype()) LC_RETURN_IF_EITHER_HALF(x, weight, conv(x, weight, bias, o));
  return add_channels(conv(x, weight, o), *bias, "conv");
}

Tensor conv_transpose(Operand x, Operand weight, OptionalOperand bias, const ConvOptions& o) {
  const OpScope scope("conv_transpose", x.at);
  if (!bias.given()) return conv_transpose(x, weight, o);
  if (is_one_sample(x, weight)) return conv_transpose(batch_of_one(x), weight, bias, o).squeeze(0);
  if (x->dtype() == bias->dtype()) LC_RETURN_IF_EITHER_HALF(x, weight, conv_transpose(x, weight, bias, o));
  return add_channels(conv_transpose(x, weight, o), *bias, "conv_transpose");
}

namespace {

// Sums y [b, c, k..., n...] into the result of a transposed convolution: the product of input element i and filter tap
// k belongs at stride i + dilation k. With this position written as stride u + t, the sum over i and k is a sum over
// shifts by whole u, for all t at once. Padding implements the shift; padded zeros are only added, never multiplied.
Tensor fold(Tensor y, int n, const std::vector<int>& stride, const std::vector<int>& dilation) {
  std::vector<int> shifts, step;
  for (int i = 0; i < n; ++i) {
    const auto k = static_cast<std::size_t>(i);
    const int axis = 2 + i, taps = static_cast<int>(*y.extent(axis).constant()), d = dilation[k], s = stride[k];
    const int reach = (taps - 1) * d + 1;
    Shape apart = y.shape();
    apart[2 + k] = taps * d;
    y = y.unsqueeze(axis + 1).pad(axis + 1, 0, d - 1).reshape(apart).slice(axis, 0, reach);
    shifts.push_back((reach + s - 1) / s);
    y = y.pad(axis, 0, shifts.back() * s - reach);
  }
  const auto lands = [&](const std::vector<int>& by) {  // true if some tap needs this shift
    for (std::size_t k = 0; k < by.size(); ++k)
      if ((by[k] * stride[k] + dilation[k] - 1) / dilation[k] * dilation[k] >= (by[k] + 1) * stride[k]) return false;
    return true;
  };
  Tensor sum;
  for (std::vector<int> by(shifts.size(), 0); by.back() < shifts.back();) {
    Tensor t = y;
    for (int i = 0; i < n; ++i) {
      const auto k = static_cast<std::size_t>(i);
      t = t.slice(2 + i, by[k] * stride[k], (by[k] + 1) * stride[k]).pad(2 + n + i, by[k], shifts[k] - 1 - by[k]);
    }
    if (lands(by)) sum = sum.defined() ? prim::add(sum, t) : t;
    for (std::size_t k = 0; ++by[k] == shifts[k] && k + 1 < by.size(); ++k) by[k] = 0;
  }
  std::vector<int> order{0, 1};  // [b, c, t..., u...] -> [b, c, u t, ...]
  Shape joined{sum.extent(0), sum.extent(1)};
  for (int i = 0; i < n; ++i) {
    order.insert(order.end(), {2 + n + i, 2 + i});
    joined.push_back(sum.extent(2 + n + i) * Dim(stride[i]));
  }
  return sum.permute(order).reshape(joined);
}

}  // namespace

// A single matrix product computes the products of all filter taps with all elements; fold() adds each at its position.
// (An ordinary convolution with zeros inserted between elements would multiply them by weights: 0 * inf is NaN.)
Tensor conv_transpose(Operand x, Operand weight, const ConvOptions& o) {
  const char* op = "conv_transpose";
  const OpScope scope(op, x.at);
  if (is_one_sample(x, weight)) return conv_transpose(batch_of_one(x), weight, o).squeeze(0);
  const int n = spatial_axes(x, op);
  const auto [stride, padding, dilation] = Steps(o, n, x, weight, op);
  LC_RETURN_IF_EITHER_HALF(x, weight, conv_transpose(x, weight, o));
  const auto extra = per_axis(o.output_padding, n, op, "output_padding");
  if (weight->rank() != n + 2)
    throw Error(op, str_cat("a weight ", str(weight->shape()), " does not fit ", str(x->shape()),
                            ": it is [channels in, channels out / groups, an extent for each spatial axis]"));
  if (!(weight->extent(0) == x->extent(1)))
    throw Error(op, str_cat("a weight ", str(weight->shape()), " takes ", weight->extent(0), " channels in, and ",
                            str(x->shape()), " has ", x->extent(1),
                            weight->extent(1) == x->extent(1) ? ": its first axis is the channels in, not out" : ""));
  if (o.groups < 1 || !(x->extent(1) % Dim(o.groups) == Dim(0)))
    throw Error(op, str_cat(o.groups, " groups do not divide ", str(x->shape())));
  const Dim g = o.groups, in = x->extent(1) / g, out = weight->extent(1);
  Shape image, filter, to{x->extent(0), g * out};
  std::vector<Dim> size;
  for (int i = 0; i < n; ++i) {
    const auto k = static_cast<std::size_t>(i);
    image.push_back(x->extent(2 + i));
    filter.push_back(weight->extent(2 + i));
    if (!filter.back().constant() || filter.back() == Dim(0))
      throw Error(op, str_cat("a filter ", str(weight->shape()), " needs extents of 1 or more that are numbers"));
    if (extra[k] < 0 || extra[k] >= std::max(stride[k], dilation[k]))
      throw Error(op, "output_padding is smaller than the stride or the dilation");
    size.push_back((image.back() - 1) * Dim(stride[k]) + (filter.back() - 1) * Dim(dilation[k]) + 1 + extra[k] -
                   2 * padding[k]);
    if (size.back().bounds().hi < 1)
      throw Error(op, str_cat("a padding of ", padding[k], " leaves nothing of ", str(x->shape())));
  }
  to.insert(to.end(), filter.begin(), filter.end());
  to.insert(to.end(), image.begin(), image.end());
  const Tensor taps = weight->reshape({1, g, in, out * product(filter)}).transpose(2, 3);
  const Tensor products = matmul(taps, x->reshape({x->extent(0), g, in, product(image)}));
  Tensor t = fold(products.reshape(to), n, stride, dilation);
  for (int i = 0; i < n; ++i) {
    const auto k = static_cast<std::size_t>(i);
    const Dim missing = size[k] + padding[k] - t.extent(2 + i);  // output_padding may exceed what was written
    t = t.pad(2 + i, 0, missing.bounds().hi > 0 ? missing : Dim(0)).slice(2 + i, padding[k], size[k] + padding[k]);
  }
  return t;
}

}  // namespace lc
