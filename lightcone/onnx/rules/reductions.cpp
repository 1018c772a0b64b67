// Reductions over axes, running sums, softmax, and the extreme elements.
#include <algorithm>
#include <limits>

#include "lightcone/onnx/read/call.h"

namespace lc::onnx {
namespace {

// ---- reductions -----------------------------------------------------------------------------------

// Axes are an attribute at first and an operand later. Without any, all are reduced, or none with noop_with_empty_axes.
std::vector<int> axes_of(Call& c, int rank) {
  const Integers given = c.has(1) ? c.integers(1) : c.integers("axes", {});
  const bool keeps_all = c.flag("noop_with_empty_axes");
  if (!given.empty()) return c.wrap(given, rank);
  return keeps_all ? std::vector<int>() : all_axes(rank);
}

// Reduces x with `over`. Where no axis is reduced, each element is a group of its own.
template <class F>
Values reduced(Call& c, const Tensor& x, const F& over) {
  const bool keeps = c.flag("keepdims", true);
  const std::vector<int> axes = axes_of(c, x.rank());
  Shape kept = x.shape();
  for (const int a : axes) kept[static_cast<std::size_t>(a)] = 1;
  const Tensor r = axes.empty() ? over(x.unsqueeze(-1), {x.rank()}) : over(x, axes);
  return {(keeps ? r.reshape(kept) : r).to(c.x().dtype())};
}

// Integers are summed and multiplied as integers. What is no whole number is computed in f64 and cut, and a function of
// a sum of 16-bit floats in f32.
Tensor real(const Tensor& x) {
  return is_narrow(x.dtype()) ? x.to(DType::F32) : is_float(x.dtype()) ? x : x.to(DType::F64);
}
bool is_empty(const Tensor& x, const Axes& axes) {
  return std::ranges::any_of(axes, [&](int a) { return x.extent(a) == Dim(0); });
}
Shape without(Shape s, const Axes& axes) {
  for (auto a = axes.rbegin(); a != axes.rend(); ++a) s.erase(s.begin() + *a);
  return s;
}
// The extreme of no elements is the last that any element could be.
Tensor extreme(const Tensor& x, const Axes& axes, Tensor (*f)(Operand, Axes, bool), double infinite,
               std::int64_t whole) {
  if (!is_empty(x, axes)) return f(x, axes, false);
  return full(x, without(x.shape(), axes), is_float(x.dtype()) ? Scalar(infinite) : Scalar(whole), x.dtype());
}
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Values reduce_sum(Call& c) {
  return reduced(c, c.x(), [](const Tensor& x, const Axes& axes) { return sum(x, axes); });
}
Values reduce_mean(Call& c) {  // a mean of integers is cut
  return reduced(c, c.x(), [](const Tensor& x, const Axes& axes) {
    if (is_float(x.dtype())) return mean(x, axes);
    const Tensor s = sum(x, axes);
    Dim n = 1;
    for (const int a : axes) n = n * x.extent(a);
    return prim::div(s, x.graph().index(s.shape(), n));
  });
}
Values reduce_product(Call& c) {  // over one axis, which joins those that are reduced
  return reduced(c, c.x(), [](const Tensor& x, const Axes& axes) {
    std::vector<int> order;
    Dim n = 1;
    for (int k = 0; k < x.rank(); ++k)
      if (std::ranges::find(axes, k) == axes.end()) order.push_back(k);
    for (const int a : axes) n = n * x.extent(a), order.push_back(a);
    Shape s = without(x.shape(), axes);
    s.push_back(n);
    return prod(x.permute(order).reshape(s), -1);
  });
}
Values reduce_l1(Call& c) {
  return reduced(c, c.x(), [](const Tensor& x, const Axes& axes) { return sum(abs(x), axes); });
}
Values reduce_l2(Call& c) {
  return reduced(c, real(c.x()), [](const Tensor& x, const Axes& axes) { return norm(x, 2, axes); });
}
Values reduce_log_sum(Call& c) {
  return reduced(c, real(c.x()), [](const Tensor& x, const Axes& axes) { return log(sum(x, axes)); });
}
Values reduce_log_sum_exp(Call& c) {
  return reduced(c, real(c.x()),
                 [](const Tensor& x, const Axes& axes) { return extreme(x, axes, logsumexp, -kInfinity, 0); });
}
Values reduce_sum_square(Call& c) {
  const Tensor x = is_float(c.x().dtype()) ? real(c.x()) : c.x();
  return reduced(c, x, [](const Tensor& x, const Axes& axes) { return sum(x * x, axes); });
}
Values reduce_max(Call& c) {
  return reduced(c, c.x(), [](const Tensor& x, const Axes& axes) {
    return extreme(x, axes, amax, -kInfinity, info(x.dtype()).lowest);
  });
}
Values reduce_min(Call& c) {
  return reduced(c, c.x(), [](const Tensor& x, const Axes& axes) {
    return extreme(x, axes, amin, kInfinity, info(x.dtype()).highest);
  });
}

// ---- the place of the extreme element -------------------------------------------------------------

template <Tensor (*f)(Operand, int, bool)>
Values place_of(Call& c) {
  const Tensor x = c.x();
  const int axis = c.axis("axis", 0, x.rank());
  const bool keeps = c.flag("keepdims", true);
  if (!c.flag("select_last_index")) return {f(x, axis, keeps)};
  const Tensor from_end = f(x.flip(axis), axis, keeps);
  return {c.graph().index(from_end.shape(), x.extent(axis) - Dim(1)) - from_end};
}

// ---- running sums ---------------------------------------------------------------------------------

// With exclusive=1, an element has the total of those before it, and the first one has `none`.
Values running(Call& c, Tensor (*f)(Operand, int), int none) {
  const Tensor x = c.x();
  const int axis = c.wrap(c.integer(1), x.rank());
  const bool reverse = c.flag("reverse"), exclusive = c.flag("exclusive");
  Tensor t = f(reverse ? x.flip(axis) : x, axis);
  if (exclusive) t = pad(t, axis, 1, 0, PadMode::Constant, none).slice(axis, 0, x.extent(axis));
  if (reverse) t = t.flip(axis);
  return {t.to(x.dtype())};
}
Values cum_sum(Call& c) { return running(c, cumsum, 0); }
Values cum_prod(Call& c) { return running(c, cumprod, 1); }

// ---- softmax --------------------------------------------------------------------------------------

// Before operator set 13 all axes from `axis` on are one.
template <Tensor (*f)(Operand, int)>
Values along_axis(Call& c) {
  const Tensor x = c.x();
  if (c.opset >= 13) return {f(x, c.axis("axis", -1, x.rank()))};
  const int axis = c.axis("axis", 1, x.rank());
  if (axis == x.rank() - 1) return {f(x, axis)};
  const Shape s = x.shape();
  const Shape rows(s.begin(), s.begin() + axis), rest(s.begin() + axis, s.end());
  return {f(x.reshape({product(rows), product(rest)}), 1).reshape(s)};
}
Tensor one_at_maximum(Operand x, int axis) {
  const Tensor place = x->graph().index(x->shape(), Dim::index(axis, x->extent(axis)));
  return eq(place, argmax(x, axis, true).expand(x->shape())).to(x->dtype());
}

}  // namespace

void add_reductions(Operators& t) {
  const Operator rows[] = {
      {"", "ArgMax", 1, place_of<lc::argmax>, "argmax"},
      {"", "ArgMin", 1, place_of<lc::argmin>, "argmin"},
      {"", "CumProd", 26, cum_prod, "cumprod"},
      {"", "CumSum", 11, cum_sum, "cumsum"},
      {"", "Hardmax", 1, along_axis<one_at_maximum>, "argmax"},
      {"", "LogSoftmax", 1, along_axis<lc::log_softmax>, "log_softmax"},
      {"", "ReduceL1", 1, reduce_l1, "sum of absolute values"},
      {"", "ReduceL2", 1, reduce_l2, "norm"},
      {"", "ReduceLogSum", 1, reduce_log_sum, "log of the sum"},
      {"", "ReduceLogSumExp", 1, reduce_log_sum_exp, "logsumexp"},
      {"", "ReduceMax", 1, reduce_max, "amax"},
      {"", "ReduceMean", 1, reduce_mean, "mean"},
      {"", "ReduceMin", 1, reduce_min, "amin"},
      {"", "ReduceProd", 1, reduce_product, "prod"},
      {"", "ReduceSum", 1, reduce_sum, "sum"},
      {"", "ReduceSumSquare", 1, reduce_sum_square, "sum of squares"},
      {"", "Softmax", 1, along_axis<lc::softmax>, "softmax"},
  };
  t.insert(t.end(), std::begin(rows), std::end(rows));
}

}  // namespace lc::onnx
