#include "lightcone/composites/layers.h"

#include <numbers>

#include "lightcone/composites/internal.h"

namespace lc::definitions {
namespace {

// A possibly symbolic integer as a tensor of the shape and type of t.
Tensor number(const Tensor& t, const Dim& n) {
  if (const auto c = n.constant()) return like(t, static_cast<double>(*c));
  return cast(t.graph().index(t.shape(), n), t.dtype());
}

}  // namespace

Tensor expand_to(Tensor t, const Shape& shape) {
  Shape s = t.shape();
  if (s == shape) return t;
  if (s.size() < shape.size()) {
    s.insert(s.begin(), shape.size() - s.size(), 1);
    t = t.reshape(s);
  }
  return t.expand(shape);
}

bool broadcasts_to(const Shape& s, const Shape& to) {
  if (s.size() > to.size()) return false;
  for (std::size_t k = 0; k < s.size(); ++k) {
    const Dim& d = s[s.size() - 1 - k];
    if (!(d == Dim(1)) && !(d == to[to.size() - 1 - k])) return false;
  }
  return true;
}

Tensor sum_to(Tensor t, const Shape& shape) {
  while (t.rank() > static_cast<int>(shape.size())) t = sum_reduce(t, 0);
  for (int axis = 0; axis < t.rank(); ++axis)
    if (!(t.extent(axis) == shape[axis])) t = sum_reduce(t, axis).unsqueeze(axis);
  return t;
}

Tensor mean_of_last(const Tensor& t, int axes) {
  Shape kept = t.shape();
  Tensor s = t;
  Dim n = 1;
  for (int k = 0; k < axes; ++k) {
    const int axis = t.rank() - 1 - k;
    s = sum_reduce(s, axis);
    n = n * t.extent(axis);
    kept[axis] = 1;
  }
  s = s.reshape(kept);
  return div(s, number(s, n));
}

Tensor reciprocal_root(const Tensor& x, double eps) { return recip(sqrt(add(x, like(x, eps)))); }

Tensor matmul(const Tensor& a, const Tensor& b) {
  Shape full = a.shape();
  full.insert(full.end() - 1, b.extent(-1));
  const Tensor left = a.unsqueeze(a.rank() - 1).expand(full);
  const Tensor right = b.transpose(-1, -2).unsqueeze(b.rank() - 2).expand(full);
  return sum_reduce(mul(left, right), static_cast<int>(full.size()) - 1);
}

Tensor for_heads(const Tensor& t, const Tensor& q) {
  if (q.rank() < 3 || q.extent(-3) == t.extent(-3)) return t;
  Shape s = t.shape();
  const auto axis = s.size() - 3;
  const Tensor one = t.unsqueeze(static_cast<int>(axis) + 1);
  Shape wide = one.shape();
  wide[axis + 1] = q.extent(-3) / s[axis];
  s[axis] = q.extent(-3);
  return one.expand(wide).reshape(s);
}

Tensor for_keys(const Tensor& t, const Tensor& k) {
  if (t.rank() < 3 || t.extent(-3) == k.extent(-3)) return t;
  Shape s = t.shape();
  const auto axis = s.size() - 3;
  const Dim group = s[axis] / k.extent(-3);
  s[axis] = k.extent(-3);
  s.insert(s.begin() + static_cast<std::ptrdiff_t>(axis) + 1, group);
  return sum_reduce(t.reshape(s), static_cast<int>(axis) + 1);
}

Tensor softmax(const Tensor& x) {
  const int last = x.rank() - 1;
  const auto back = [last, &x](const Tensor& t) { return t.unsqueeze(last).expand(x.shape()); };
  const Tensor d = add(x, negate(back(max_reduce(x, last))));
  const Tensor e = exp2(mul(d, like(d, std::numbers::log2e)));
  const Tensor y = mul(e, recip(sum_reduce(e, last).unsqueeze(last)).expand(x.shape()));
  return with_vjp(y, {x}, [last](const VjpCall& c) -> std::vector<Tensor> {
    const Tensor mean = sum_reduce(mul(c.g(), c.y()), last).unsqueeze(last).expand(c.y().shape());
    return {mul(c.y(), add(c.g(), negate(mean)))};
  });
}

Tensor standardize(const Tensor& x, int axes, double eps) {
  const Tensor d = add(x, negate(mean_of_last(x, axes).expand(x.shape())));
  const Tensor scale = reciprocal_root(mean_of_last(mul(d, d), axes), eps);
  return with_vjp(mul(d, scale.expand(x.shape())), {x, scale}, [axes](const VjpCall& c) -> std::vector<Tensor> {
    const auto each = [&](const Tensor& t) { return t.expand(c.y().shape()); };
    const Tensor along = mean_of_last(mul(c.g(), c.y()), axes), level = mean_of_last(c.g(), axes);
    const Tensor off = add(add(c.g(), negate(each(level))), negate(mul(c.y(), each(along))));
    return {mul(each(c.in[1]), off), {}};
  });
}

void one_float_type(OperandTypes in) {
  for (const TensorType& t : in)
    if (!is_float(t.dtype) || t.dtype != in[0].dtype)
      refuse(str_cat("operands have one floating type, not ", name(in[0].dtype), " and ", name(t.dtype)));
}

void over_last_axes(OperandTypes in, int axes) {
  const Shape& x = in[0].shape;
  if (axes < 1 || axes > static_cast<int>(x.size())) refuse(str_cat(axes, " axes are not the last ones of ", str(x)));
  const Shape last(x.end() - axes, x.end());
  for (const TensorType& p : in.subspan(1))
    if (p.shape != last)
      refuse(str_cat("a weight or bias ", str(p.shape), " does not fit the normalized shape ", str(last)));
}

}  // namespace lc::definitions
