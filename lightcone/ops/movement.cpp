#include "lightcone/ops/internal.h"

namespace lc {
using namespace detail;
#define LC_SCOPE(name) const OpScope scope(name, a.at)

Tensor broadcast_to(Operand a, Shape shape) {
  LC_SCOPE("broadcast_to");
  const Shape have = a->shape();
  bool fits = have.size() <= shape.size();
  for (std::size_t k = 1; fits && k <= have.size(); ++k)
    fits = have[have.size() - k] == Dim(1) || have[have.size() - k] == shape[shape.size() - k];
  if (!fits) throw Error("broadcast_to", str(a->shape()) + " does not stretch to " + str(shape));
  return expand_to(a, shape);
}
Tensor flatten(Operand a, int first, int last) {
  LC_SCOPE("flatten");
  first = wrap_axis(first, a->rank(), a->shape(), "flatten");
  last = wrap_axis(last, a->rank(), a->shape(), "flatten");
  if (first > last) throw Error("flatten", cat("axis ", first, " comes after axis ", last));
  Shape s;
  Dim merged = 1;
  for (int i = 0; i < a->rank(); ++i) {
    if (i < first || i > last) s.push_back(a->extent(i));
    else merged = merged * a->extent(i);
    if (i == last) s.push_back(merged);
  }
  return a->reshape(s);
}

Tensor concat(const std::vector<Tensor>& parts, int axis, const Tensor::At& at) {
  const OpScope scope("concat", at);
  if (parts.empty()) throw Error("concat", "needs at least one tensor");
  axis = wrap_axis(axis, parts[0].rank(), parts[0].shape(), "concat");
  DType type = parts[0].dtype();
  Dim total = 0;
  for (const Tensor& p : parts) {
    type = promote(type, p.dtype());
    const Shape x = parts[0].shape(), y = p.shape();
    if (x.size() != y.size()) throw Error("concat", str(x) + " and " + str(y) + " have different ranks");
    for (std::size_t i = 0; i < x.size(); ++i)
      if (static_cast<int>(i) != axis && !(x[i] == y[i]))
        throw Error("concat", cat(str(x), " and ", str(y), " differ at axis ", i, ": ", x[i], " vs ", y[i]));
    total = total + p.extent(axis);
  }
  // each part padded to the whole; a mask decides, because 0 + -0 is not -0
  Tensor result;
  Dim start = 0;
  for (const Tensor& p : parts) {
    const Dim n = p.extent(axis), end = start + n;
    const Tensor whole = prim::cast(p, type).pad(axis, start, total - end);
    if (!result.defined()) {
      result = whole;
    } else {
      const Dim i = Dim::index(axis, total);
      result = prim::where(p.graph().index(whole.shape(), less(i, start), DType::Bool), result, whole);
    }
    start = end;
  }
  return result;
}
Tensor stack(const std::vector<Tensor>& parts, int axis, const Tensor::At& at) {
  const OpScope scope("stack", at);
  if (parts.empty()) throw Error("stack", "needs at least one tensor");
  for (const Tensor& p : parts)
    if (p.shape() != parts[0].shape())
      throw Error("stack", cat(str(parts[0].shape()), " and ", str(p.shape()), " differ"));
  std::vector<Tensor> with_axis;
  for (const Tensor& p : parts) with_axis.push_back(p.unsqueeze(axis));
  return concat(with_axis, axis);
}
std::vector<Tensor> split(Operand a, const std::vector<Dim>& sizes, int axis) {
  LC_SCOPE("split");
  axis = wrap_axis(axis, a->rank(), a->shape(), "split");
  std::vector<Tensor> parts;
  Dim start = 0;
  for (const Dim& n : sizes) {
    parts.push_back(a->slice(axis, start, start + n));
    start = start + n;
  }
  if (!(start == a->extent(axis)))
    throw Error("split", cat("the sizes add up to ", start, ", the axis has ", a->extent(axis)));
  return parts;
}
std::vector<Tensor> chunk(Operand a, int chunks, int axis) {
  LC_SCOPE("chunk");
  axis = wrap_axis(axis, a->rank(), a->shape(), "chunk");
  const auto n = a->extent(axis).constant();
  if (!n || chunks < 1) throw Error("chunk", "needs a known extent and at least one chunk");
  const std::int64_t size = std::max<std::int64_t>(1, (*n + chunks - 1) / chunks);
  std::vector<Tensor> parts;
  for (std::int64_t at = 0; at < *n || parts.empty(); at += size)
    parts.push_back(a->slice(axis, at, std::min(*n, at + size)));
  return parts;
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
Tensor pad(Operand a, int axis, int before, int after, PadMode mode, double value) {
  LC_SCOPE("pad");
  axis = wrap_axis(axis, a->rank(), a->shape(), "pad");
  const Dim n = a->extent(axis), total = n + before + after, i = Dim::index(axis, total);
  if (mode == PadMode::Constant && (before < 0 || after < 0)) {  // a negative padding cuts
    if ((n + std::min(0, before) + std::min(0, after)).bounds().hi < 0)
      throw Error("pad", cat("cutting (", before, ", ", after, ") from ", n, " elements"));
    const Tensor cut = a->slice(axis, std::max(0, -before), n + std::min(0, after));
    return pad(cut, axis, std::max(0, before), std::max(0, after), mode, value);
  }
  if (before < 0 || after < 0) throw Error("pad", "only constant padding may be negative");
  if (mode == PadMode::Circular) {
    if (before > n.bounds().hi || after > n.bounds().hi)
      throw Error("pad", cat("wrapping ", std::max(before, after), " elements around needs as many, not ", n));
    Shape s = a->shape();
    s[static_cast<std::size_t>(axis)] = total;
    return prim::gather(a, a->graph().index(s, (i - before) % n), axis);
  }
  if (mode == PadMode::Constant) {
    const Tensor p = a->pad(axis, before, after);
    if (value == 0 && !std::signbit(value)) return p;
    const Tensor inside = a->graph().index(p.shape(), less(Dim(before) - 1, i) * less(i, n + before), DType::Bool);
    return prim::where(inside, p, full_like(p, value));
  }
  if (n.bounds().hi < 1) throw Error("pad", cat("axis ", axis, " of ", str(a->shape()), " has no elements to repeat"));
  const Dim from = i - before;
  if (mode == PadMode::Reflect && (before >= n.bounds().hi || after >= n.bounds().hi))
    throw Error("pad", cat("reflecting ", std::max(before, after), " elements needs an extent above that, not ", n));
  const Dim source = mode == PadMode::Replicate
                         ? min(max(from, 0), n - 1)
                         : (n - 1) - max((n - 1) - max(from, Dim(0) - from), max(from, Dim(0) - from) - (n - 1));
  Shape s = a->shape();
  s[static_cast<std::size_t>(axis)] = total;
  return prim::gather(a, a->graph().index(s, source), axis);
}
Tensor roll(Operand a, std::int64_t shift, int axis) {
  LC_SCOPE("roll");
  axis = wrap_axis(axis, a->rank(), a->shape(), "roll");
  const Dim n = a->extent(axis);
  if (n == Dim(0)) return a;
  return prim::gather(a, a->graph().index(a->shape(), (Dim::index(axis, n) - shift) % n), axis);
}
Tensor repeat(Operand a, const std::vector<int>& times) {
  LC_SCOPE("repeat");
  if (static_cast<int>(times.size()) < a->rank())
    throw Error("repeat", cat(times.size(), " counts for the axes of ", str(a->shape())));
  if (std::any_of(times.begin(), times.end(), [](int n) { return n < 0; }))
    throw Error("repeat", "a count is negative");
  Shape s = a->shape();
  s.insert(s.begin(), times.size() - s.size(), 1);
  Shape with, wide, flat;
  for (std::size_t i = 0; i < s.size(); ++i) {
    with.insert(with.end(), {1, s[i]});
    wide.insert(wide.end(), {times[i], s[i]});
    flat.push_back(s[i] * Dim(times[i]));
  }
  return a->reshape(with).expand(wide).reshape(flat);
}
Tensor repeat_interleave(Operand a, int times, int axis) {
  LC_SCOPE("repeat_interleave");
  axis = wrap_axis(axis, a->rank(), a->shape(), "repeat_interleave");
  if (times < 0) throw Error("repeat_interleave", cat("a count of ", times));
  Shape s = a->shape();
  Tensor t = a->unsqueeze(axis + 1);
  Shape wide = t.shape();
  wide[static_cast<std::size_t>(axis) + 1] = times;
  s[static_cast<std::size_t>(axis)] = s[static_cast<std::size_t>(axis)] * Dim(times);
  return t.expand(wide).reshape(s);
}
Tensor flip(Operand a, const Axes& axes) {
  LC_SCOPE("flip");
  Tensor t = a;
  for (const int x : wrap_axes(axes, a, "flip")) t = t.flip(x);
  return t;
}
Tensor movedim(Operand a, int from, int to) {
  LC_SCOPE("movedim");
  from = wrap_axis(from, a->rank(), a->shape(), "movedim");
  to = wrap_axis(to, a->rank(), a->shape(), "movedim");
  Axes order;
  for (int i = 0; i < a->rank(); ++i)
    if (i != from) order.push_back(i);
  order.insert(order.begin() + to, from);
  return a->permute(order);
}
std::vector<Tensor> unbind(Operand a, int axis) {
  LC_SCOPE("unbind");
  axis = wrap_axis(axis, a->rank(), a->shape(), "unbind");
  const auto n = a->extent(axis).constant();
  if (!n) throw Error("unbind", "needs an extent known when the graph is built");
  std::vector<Tensor> parts;
  for (std::int64_t k = 0; k < *n; ++k) parts.push_back(a->slice(axis, k, k + 1).squeeze(axis));
  return parts;
}
Tensor diff(Operand a, int axis) {
  LC_SCOPE("diff");
  axis = wrap_axis(axis, a->rank(), a->shape(), "diff");
  const Dim n = a->extent(axis);
  if (n == Dim(0)) return a;
  const Tensor next = a->slice(axis, 1, n), here = a->slice(axis, 0, n - 1);
  return a->dtype() == DType::Bool ? logical_xor(next, here) : prim::add(next, neg(here));
}
Tensor diagonal(Operand a, int offset, int axis1, int axis2) {
  LC_SCOPE("diagonal");
  axis1 = wrap_axis(axis1, a->rank(), a->shape(), "diagonal");
  axis2 = wrap_axis(axis2, a->rank(), a->shape(), "diagonal");
  const auto rows = a->extent(axis1).constant(), columns = a->extent(axis2).constant();
  if (axis1 == axis2) throw Error("diagonal", "the two axes are one");
  if (!rows || !columns) throw Error("diagonal", "needs extents known when the graph is built");
  Axes order;
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
namespace {
Tensor triangle(const Operand& a, int diagonal, bool lower, const char* name) {
  const OpScope scope(name, a.at);
  const int r = a->rank();
  if (r < 2) throw Error(name, "needs a matrix, not " + str(a->shape()));
  const Dim i = Dim::index(r - 2, a->extent(-2)), j = Dim::index(r - 1, a->extent(-1));
  const Dim keep = lower ? less(j, i + diagonal + 1) : less(i + diagonal - 1, j);
  return prim::where(a->graph().index(a->shape(), keep, DType::Bool), a, full_like(a, 0));
}
}  // namespace
Tensor tril(Operand a, int diagonal) { return triangle(a, diagonal, true, "tril"); }
Tensor triu(Operand a, int diagonal) { return triangle(a, diagonal, false, "triu"); }
Tensor arange(Graph& g, Dim n, DType dtype, const Tensor::At& at) {
  const OpScope scope("arange", at);
  if (n.bounds().hi < 0) throw Error("arange", cat(n, " elements"));
  return g.index({n}, Dim::index(0, n), dtype);
}
Tensor arange(Graph& g, std::int64_t from, std::int64_t to, std::int64_t step, DType dtype, const Tensor::At& at) {
  const OpScope scope("arange", at);
  if (step == 0) throw Error("arange", "the step is zero");
  const std::int64_t n = step > 0 ? (to - from + step - 1) / step : (from - to - step - 1) / -step;
  if (n < 0) throw Error("arange", cat("a step of ", step, " does not lead from ", from, " to ", to));
  return g.index({n}, Dim::index(0, n) * Dim(step) + from, dtype);
}
Tensor eye(Graph& g, Dim n, DType dtype, const Tensor::At& at) {
  const OpScope scope("eye", at);
  if (n.bounds().hi < 0) throw Error("eye", cat(n, " rows"));
  const Dim i = Dim::index(0, n), j = Dim::index(1, n);
  return g.index({n, n}, less(i, j + 1) * less(j, i + 1), dtype);
}
Tensor linspace(Graph& g, double from, double to, int steps, const Tensor::At& at) {
  const OpScope scope("linspace", at);
  if (steps < 0) throw Error("linspace", cat(steps, " steps"));
  const Tensor i = arange(g, steps, DType::F32);
  const double step = steps > 1 ? (to - from) / (steps - 1) : 0;
  return add(mul(i, step), from);
}

}  // namespace lc
