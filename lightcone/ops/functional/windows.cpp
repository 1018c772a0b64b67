// Windows as columns, and pools of them.
#include "lightcone/composites/composites.h"
#include "lightcone/ops/functional/functional.h"
#include "lightcone/ops/internal.h"

namespace lc {
using namespace detail;

std::int64_t detail::known(const Dim& d, const char* op) {
  const auto n = d.constant();
  if (!n) throw Error(op, str_cat("needs an extent that is known when the graph is built, not ", d));
  return *n;
}

namespace {

// The windows of an image with two spatial axes of known extents.
struct Columns {
  std::vector<int> kernel, dilation, padding, stride;
  std::vector<std::int64_t> size, count;  // extents of the image; number of windows
  Columns(const std::vector<std::int64_t>& image, const char* op, const std::vector<int>& k, const std::vector<int>& d,
          const std::vector<int>& p, const std::vector<int>& s)
      : kernel(per_axis(k, 2, op, "kernel")),
        dilation(per_axis(d, 2, op, "dilation")),
        padding(per_axis(p, 2, op, "padding")),
        stride(per_axis(s, 2, op, "stride")),
        size(image) {
    for (std::size_t i = 0; i < 2; ++i) {
      if (kernel[i] < 1 || dilation[i] < 1 || padding[i] < 0 || stride[i] < 1)
        throw Error(op, str_cat("a kernel of ", kernel[i], ", dilation ", dilation[i], ", padding ", padding[i],
                                ", stride ", stride[i]));
      const std::int64_t room = size[i] + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1;
      if (room < 0)
        throw Error(op, str_cat("a window of ", dilation[i] * (kernel[i] - 1) + 1, " in an image of ",
                                size[i] + 2 * padding[i]));
      count.push_back(room / stride[i] + 1);
    }
  }
  std::int64_t area() const { return kernel[0] * kernel[1]; }
  std::int64_t windows() const { return count[0] * count[1]; }
};

}  // namespace

Tensor unfold(Operand x, std::vector<int> kernel, std::vector<int> dilation, std::vector<int> padding,
              std::vector<int> stride) {
  const OpScope scope("unfold", x.at);
  if (x->rank() == 3) return unfold(x->unsqueeze(0), kernel, dilation, padding, stride).squeeze(0);
  if (x->rank() != 4) throw Error("unfold", "needs [b, c, h, w], not " + str(x->shape()));
  const Columns c({known(x->extent(2), "unfold"), known(x->extent(3), "unfold")}, "unfold", kernel, dilation, padding,
                  stride);
  Tensor t = x;
  for (int i = 0; i < 2; ++i) t = t.pad(2 + i, c.padding[u(i)], c.padding[u(i)]);
  t = windows(t, 2, {c.kernel[0], c.kernel[1]}, c.stride, c.dilation);  // [b, c, out..., k...]
  return t.permute({0, 1, 4, 5, 2, 3}).reshape({x->extent(0), x->extent(1) * Dim(c.area()), c.windows()});
}

Tensor fold(Operand x, std::vector<int> output, std::vector<int> kernel, std::vector<int> dilation,
            std::vector<int> padding, std::vector<int> stride) {
  const OpScope scope("fold", x.at);
  LC_RETURN_IF_HALF(x, fold(x, output, kernel, dilation, padding, stride));
  if (x->rank() == 2) return fold(x->unsqueeze(0), output, kernel, dilation, padding, stride).squeeze(0);
  if (x->rank() != 3) throw Error("fold", "needs [b, c kh kw, windows], not " + str(x->shape()));
  output = per_axis(output, 2, "fold", "output");
  const Columns c({output[0], output[1]}, "fold", kernel, dilation, padding, stride);
  const Dim channels = x->extent(1) / Dim(c.area());
  if (!(channels * Dim(c.area()) == x->extent(1)) || !(x->extent(2) == Dim(c.windows())))
    throw Error("fold", str_cat(str(x->shape()), " is not [b, channels * ", c.area(), ", ", c.windows(), "]"));
  // target index of each element of each window; -1 in the padding
  Dim at = 0, inside = 1;
  for (int i = 0; i < 2; ++i) {
    const Dim k = Dim::index(2 + i, c.kernel[u(i)]), window = Dim::index(4 + i, c.count[u(i)]);
    const Dim place = window * Dim(c.stride[u(i)]) + k * Dim(c.dilation[u(i)]) - c.padding[u(i)];
    at = at * Dim(c.size[u(i)]) + place;
    inside = inside * less(-1, place) * less(place, c.size[u(i)]);
  }
  const Dim b = x->extent(0);
  const Shape six{b, channels, c.kernel[0], c.kernel[1], c.count[0], c.count[1]};
  const Shape row{b, channels, c.area() * c.windows()}, image{b, channels, c.size[0] * c.size[1]};
  const Tensor to = x->graph().index(six, (at + 1) * inside - 1).reshape(row);
  const Tensor none = full(x->graph(), image, 0, x->dtype());
  return prim::scatter_add(none, to, x->reshape(row), 2).reshape({b, channels, c.size[0], c.size[1]});
}

Tensor lp_pool(Operand x, double p, std::vector<int> kernel, std::vector<int> stride, bool ceil_mode) {
  const OpScope scope("lp_pool", x.at);
  LC_RETURN_IF_HALF(x, lp_pool(x, p, kernel, stride, ceil_mode));
  const int n = spatial_axes(x, "lp_pool");
  kernel = per_axis(kernel, n, "lp_pool", "kernel");
  double area = 1;
  for (const int k : kernel) area *= k;
  return pow(avg_pool(pow(x, p), kernel, stride, {0}, ceil_mode) * area, 1 / p);
}

Extreme max_pool_with_indices(Operand x, std::vector<int> kernel, std::vector<int> stride, std::vector<int> padding,
                              std::vector<int> dilation) {
  const char* op = "max_pool_with_indices";
  const OpScope scope(op, x.at);
  const int n = spatial_axes(x, op);
  kernel = per_axis(kernel, n, op, "kernel");
  stride = per_axis(stride.empty() ? kernel : stride, n, op, "stride");
  padding = per_axis(padding, n, op, "padding"), dilation = per_axis(dilation, n, op, "dilation");
  const Shape pooled = max_pool(x, kernel, stride, padding, dilation).shape();  // also checks arguments
  Tensor t = x;
  Dim area = 1, spatial = 1;
  Shape flat = pooled;
  for (int i = 0; i < n; ++i) {
    const double lowest = is_float(x->dtype()) ? -kInf : static_cast<double>(info(x->dtype()).lowest);
    t = pad(t, 2 + i, padding[u(i)], padding[u(i)], PadMode::Constant, lowest);
    area = area * Dim(kernel[u(i)]), spatial = spatial * x->extent(2 + i);
  }
  flat.push_back(area);
  t = windows(t, n, {kernel.begin(), kernel.end()}, stride, dilation).reshape(flat);
  Tensor rest = argmax(t, n + 2), at;
  for (int i = n - 1; i >= 0; --i) {
    const Tensor k = prim::mod(rest, full_like(rest, kernel[u(i)]));
    rest = prim::div(prim::add(rest, neg(k)), full_like(rest, kernel[u(i)]));
    const auto number = [&](const Dim& d) { return rest.graph().index(rest.shape(), d); };
    const Dim first = Dim::index(2 + i, pooled[u(2 + i)]) * Dim(stride[u(i)]) - padding[u(i)];
    // a window of -infinity may pick the padding: clamp to the nearest element of the image
    const Tensor place = prim::minimum(prim::maximum(prim::add(number(first), mul(k, dilation[u(i)])), full_like(k, 0)),
                                       number(x->extent(2 + i) - 1));
    Dim inner = 1;
    for (int j = i + 1; j < n; ++j) inner = inner * x->extent(2 + j);
    const Tensor part = prim::mul(place, number(inner));
    at = at.defined() ? prim::add(at, part) : part;
  }
  Shape row{x->extent(0), x->extent(1), spatial}, of_result = row;
  Dim count = 1;
  for (int i = 0; i < n; ++i) count = count * pooled[u(2 + i)];
  of_result.back() = count;
  return {prim::gather(x->reshape(row), at.reshape(of_result), 2).reshape(pooled), at};
}

Tensor max_unpool(Operand x, Operand indices, std::vector<int> kernel, std::vector<int> stride,
                  std::vector<int> padding, std::vector<int> output) {
  const OpScope scope("max_unpool", x.at);
  const int n = spatial_axes(x, "max_unpool");
  kernel = per_axis(kernel, n, "max_unpool", "kernel");
  stride = per_axis(stride.empty() ? kernel : stride, n, "max_unpool", "stride");
  padding = per_axis(padding, n, "max_unpool", "padding");
  if (!output.empty()) output = per_axis(output, n, "max_unpool", "output");
  if (indices->shape() != x->shape() || is_float(indices->dtype()))
    throw Error("max_unpool", str_cat("indices are integers of ", str(x->shape()), ", not ", name(indices->dtype()),
                                      " ", str(indices->shape())));
  Shape to{x->extent(0), x->extent(1)}, row = to, from = to;
  Dim all = 1, count = 1;
  for (int i = 0; i < n; ++i) {
    const Dim usual = (x->extent(2 + i) - 1) * Dim(stride[u(i)]) - 2 * padding[u(i)] + kernel[u(i)];
    to.push_back(output.empty() ? usual : Dim(output[u(i)]));
    all = all * to.back(), count = count * x->extent(2 + i);
  }
  row.push_back(all), from.push_back(count);
  const Tensor none = full(x->graph(), row, 0, x->dtype());
  return prim::scatter(none, prim::cast(indices, DType::I64).reshape(from), x->reshape(from), 2).reshape(to);
}

Tensor local_response_norm(Operand x, int size, double alpha, double beta, double k) {
  const OpScope scope("local_response_norm", x.at);
  LC_RETURN_IF_HALF(x, local_response_norm(x, size, alpha, beta, k));
  if (x->rank() < 3) throw Error("local_response_norm", "needs [b, c, n...], not " + str(x->shape()));
  if (size < 1) throw Error("local_response_norm", str_cat("a size of ", size));
  const Tensor t = as_float(x);
  const Tensor around = prim::mul(t, t).pad(1, size / 2, (size - 1) / 2).unfold(1, size);
  const Tensor mean = mul(prim::sum_reduce(around, around.rank() - 1), alpha / size);
  return prim::div(t, pow(add(mean, k), beta));
}

Tensor channel_shuffle(Operand x, int groups) {
  const OpScope scope("channel_shuffle", x.at);
  if (x->rank() < 3) throw Error("channel_shuffle", "needs [b, c, n...], not " + str(x->shape()));
  const Dim each = groups < 1 ? Dim(0) : x->extent(1) / Dim(groups);
  if (groups < 1 || !(each * Dim(groups) == x->extent(1)))
    throw Error("channel_shuffle", str_cat(groups, " groups of ", x->extent(1), " channels"));
  Shape s = x->shape();
  s[1] = groups;
  s.insert(s.begin() + 2, each);
  return x->reshape(s).transpose(1, 2).reshape(x->shape());
}

}  // namespace lc
