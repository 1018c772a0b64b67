// Views: reading the elements of a tensor without copying.
#include "lightcone/ops/internal.h"

#include <algorithm>

namespace lc {
using namespace detail;
#define LC_SCOPE(name) const OpScope scope(name, a.at)

Tensor reshape(Operand a, const Shape& shape) { return a->reshape(shape, a.at); }
Tensor permute(Operand a, const IntList& dims) { return a->permute(dims, a.at); }
Tensor transpose(Operand a, int dim0, int dim1) { return a->transpose(dim0, dim1, a.at); }
Tensor swapaxes(Operand a, int axis0, int axis1) { return a->transpose(axis0, axis1, a.at); }
Tensor swapdims(Operand a, int dim0, int dim1) { return a->transpose(dim0, dim1, a.at); }
Tensor t(Operand a) { return a->t(a.at); }
Tensor expand(Operand a, const Shape& size) { return a->expand(size, a.at); }
Tensor unsqueeze(Operand a, int dim) { return a->unsqueeze(dim, a.at); }
Tensor select(Operand a, int dim, Dim index) { return a->select(dim, index, a.at); }
Tensor broadcast_to(Operand a, const Shape& shape) {
  LC_SCOPE("broadcast_to");
  const Shape have = a->shape();
  bool fits = have.size() <= shape.size();
  for (std::size_t k = 1; fits && k <= have.size(); ++k)
    fits = have[have.size() - k] == Dim(1) || have[have.size() - k] == shape[shape.size() - k];
  if (!fits) throw Error("broadcast_to", str(a->shape()) + " does not stretch to " + str(shape));
  return expand_to(a, shape);
}
std::vector<Tensor> broadcast_tensors(const std::vector<Tensor>& tensors, const Tensor::At& at) {
  const OpScope scope("broadcast_tensors", at);
  Shape s;
  for (const Tensor& x : tensors) s = broadcast(s, x.shape(), "broadcast_tensors");
  std::vector<Tensor> all;
  for (const Tensor& x : tensors) all.push_back(expand_to(x, s));
  return all;
}
Tensor view_as(Operand a, Operand other) {
  LC_SCOPE("view_as");
  return a->reshape(other->shape());
}
Tensor expand_as(Operand a, Operand other) {
  LC_SCOPE("expand_as");
  return a->expand(other->shape());
}
Tensor squeeze(Operand a) {
  LC_SCOPE("squeeze");
  Shape s;
  for (const Dim& n : a->shape())
    if (!(n == Dim(1))) s.push_back(n);
  return a->reshape(s);
}
Tensor squeeze(Operand a, const IntList& dims) {
  LC_SCOPE("squeeze");
  if (dims.empty()) return a;
  const IntList axes = wrap_axes(dims, a, "squeeze");
  Shape s;
  for (int i = 0; i < a->rank(); ++i)
    if (!std::binary_search(axes.begin(), axes.end(), i) || !(a->extent(i) == Dim(1))) s.push_back(a->extent(i));
  return a->reshape(s);
}
Tensor flatten(Operand a, int first, int last) {
  LC_SCOPE("flatten");
  if (a->rank() == 0 && first >= -1 && first <= 0 && last >= -1 && last <= 0) return a->reshape({1});
  first = wrap_axis(first, a->rank(), a->shape(), "flatten");
  last = wrap_axis(last, a->rank(), a->shape(), "flatten");
  if (first > last) throw Error("flatten", str_cat("axis ", first, " comes after axis ", last));
  Shape s;
  Dim merged = 1;
  for (int i = 0; i < a->rank(); ++i) {
    if (i < first || i > last) s.push_back(a->extent(i));
    else merged = merged * a->extent(i);
    if (i == last) s.push_back(merged);
  }
  return a->reshape(s);
}
Tensor ravel(Operand a) {
  LC_SCOPE("ravel");
  return a->reshape({product(a->shape())});
}
Tensor unflatten(Operand a, int dim, const Shape& sizes) {
  LC_SCOPE("unflatten");
  dim = wrap_axis(dim, a->rank(), a->shape(), "unflatten");
  const Dim n = a->extent(dim);
  Shape parts = sizes, s = a->shape();
  Dim known = 1;
  for (const Dim& d : sizes)
    if (!(d == Dim(-1))) known = known * d;
  for (Dim& d : parts)
    if (d == Dim(-1) && !(known == Dim(0))) d = n / known;
  if (!(product(parts) == n)) throw Error("unflatten", str_cat(str(sizes), " does not make ", n, " elements"));
  s.erase(s.begin() + dim);
  s.insert(s.begin() + dim, parts.begin(), parts.end());
  return a->reshape(s);
}
Tensor movedim(Operand a, const IntList& source, const IntList& destination) {
  LC_SCOPE("movedim");
  if (source.size() != destination.size())
    throw Error("movedim", str_cat(source.size(), " axes go to ", destination.size(), " places"));
  if (source.size() == 1 && is_number(a, source[0]) && is_number(a, destination[0])) return a;
  wrap_axes(source, a, "movedim"), wrap_axes(destination, a, "movedim");  // throws if an axis is named twice
  std::vector<int> order(static_cast<std::size_t>(a->rank()), -1), rest;
  std::vector<bool> moved(order.size());
  for (std::size_t k = 0; k < source.size(); ++k) {
    const int from = wrap_axis(source[k], a->rank(), a->shape(), "movedim");
    order[wrap_axis(destination[k], a->rank(), a->shape(), "movedim")] = from;
    moved[from] = true;
  }
  int next = 0;
  for (int& x : order) {
    if (x >= 0) continue;
    while (moved[next]) ++next;
    x = next++;
  }
  return a->permute(order);
}
Tensor moveaxis(Operand a, const IntList& source, const IntList& destination) {
  return movedim(a, source, destination);
}
Tensor narrow(Operand a, int dim, Dim start, Dim length) {
  LC_SCOPE("narrow");
  dim = wrap_axis(dim, a->rank(), a->shape(), "narrow");
  const Dim n = a->extent(dim), from = start.bounds().hi < 0 ? n + start : start;
  if (length.bounds().hi < 0 || from.bounds().hi < 0 || provably_below(n, from + length))
    throw Error("narrow",
                str_cat(length, " elements from ", start, " on are not in axis ", dim, " of ", str(a->shape())));
  return a->slice(dim, from, from + length);
}
Tensor slice(Operand a, int axis, std::int64_t begin, std::int64_t end, std::int64_t step) {
  LC_SCOPE("slice");
  axis = wrap_axis(axis, a->rank(), a->shape(), "slice");
  const auto n = a->extent(axis).constant();
  if (!n) throw Error("slice", "a symbolic extent is sliced with Dims: Tensor::slice");
  if (step == 0) throw Error("slice", "the step is zero");
  const auto place = [&](std::int64_t i, std::int64_t low, std::int64_t high) {
    return std::clamp(i < 0 ? i + *n : i, low, high);
  };
  if (step > 0) {
    const std::int64_t b = place(begin, 0, *n), e = place(end, 0, *n);
    return a->slice(axis, b, std::max(b, e), step);
  }
  const std::int64_t b = place(begin, -1, *n - 1), e = end < -*n ? -1 : place(end, -1, *n - 1);
  const std::int64_t count = b > e ? (b - e - step - 1) / -step : 0;
  if (count == 0) return a->slice(axis, 0, 0);
  return a->slice(axis, b + (count - 1) * step, b + 1, -step).flip(axis);
}
Tensor diagonal(Operand a, int offset, int axis1, int axis2) {
  LC_SCOPE("diagonal");
  axis1 = wrap_axis(axis1, a->rank(), a->shape(), "diagonal");
  axis2 = wrap_axis(axis2, a->rank(), a->shape(), "diagonal");
  const auto rows = a->extent(axis1).constant(), columns = a->extent(axis2).constant();
  if (axis1 == axis2) throw Error("diagonal", "the two axes are one");
  if (!rows || !columns) throw Error("diagonal", "needs extents known when the graph is built");
  std::vector<int> order;
  for (int i = 0; i < a->rank(); ++i)
    if (i != axis1 && i != axis2) order.push_back(i);
  order.insert(order.end(), {axis1, axis2});
  Tensor t = a->permute(order);
  Shape s = t.shape();
  s.resize(s.size() - 2);
  const int last = static_cast<int>(s.size());
  const std::int64_t first = offset < 0 ? -offset * *columns : offset;
  const std::int64_t count =
      std::max<std::int64_t>(0, std::min(*rows + std::min(offset, 0), *columns - std::max(offset, 0)));
  s.push_back(*rows * *columns);
  t = t.reshape(s);
  if (count == 0) return t.slice(last, 0, 0);
  return t.slice(last, first, first + (count - 1) * (*columns + 1) + 1, *columns + 1);
}
Tensor atleast_1d(Operand a) {
  LC_SCOPE("atleast_1d");
  return a->rank() > 0 ? a.tensor : a->reshape({1});
}
Tensor atleast_2d(Operand a) {
  LC_SCOPE("atleast_2d");
  return a->rank() > 1 ? a.tensor : atleast_1d(a).unsqueeze(0);
}
Tensor atleast_3d(Operand a) {
  LC_SCOPE("atleast_3d");
  return a->rank() > 2 ? a.tensor : atleast_2d(a).unsqueeze(2);
}

}  // namespace lc
