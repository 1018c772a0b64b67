#include "lightcone/ops/internal.h"

namespace lc {
using namespace detail;
#define LC_SCOPE(name) const OpScope scope(name, a.at)

Tensor broadcast_to(Operand a, Shape shape) {
  LC_SCOPE("broadcast_to");
  const Shape have = a->shape();
  bool fits = have.size() <= shape.size();
  for (std::size_t k = 1; fits && k <= have.size(); ++k) fits = have[have.size() - k] == Dim(1) || have[have.size() - k] == shape[shape.size() - k];
  if (!fits) throw Error("broadcast_to", str(a->shape()) + " does not stretch to " + str(shape));
  return expand_to(a, shape);
}
Tensor flatten(Operand a, int first, int last) {
  LC_SCOPE("flatten");
  first = wrap_axis(first, a->rank(), a->shape(), "flatten");
  last = wrap_axis(last, a->rank(), a->shape(), "flatten");
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
  if (!(start == a->extent(axis))) throw Error("split", cat("the sizes add up to ", start, ", the axis has ", a->extent(axis)));
  return parts;
}
std::vector<Tensor> chunk(Operand a, int chunks, int axis) {
  LC_SCOPE("chunk");
  axis = wrap_axis(axis, a->rank(), a->shape(), "chunk");
  const auto n = a->extent(axis).constant();
  if (!n || chunks < 1) throw Error("chunk", "needs a known extent and at least one chunk");
  const std::int64_t size = std::max<std::int64_t>(1, (*n + chunks - 1) / chunks);
  std::vector<Tensor> parts;
  for (std::int64_t at = 0; at < *n || parts.empty(); at += size) parts.push_back(a->slice(axis, at, std::min(*n, at + size)));
  return parts;
}
Tensor slice(Operand a, int axis, std::int64_t begin, std::int64_t end, std::int64_t step) {
  LC_SCOPE("slice");
  axis = wrap_axis(axis, a->rank(), a->shape(), "slice");
  const auto n = a->extent(axis).constant();
  if (!n) throw Error("slice", "a symbolic extent is sliced with Dims: Tensor::slice");
  if (step == 0) throw Error("slice", "the step is zero");
  const auto place = [&](std::int64_t i, std::int64_t low, std::int64_t high) { return std::clamp(i < 0 ? i + *n : i, low, high); };
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
  if (mode == PadMode::Constant) {
    const Tensor p = a->pad(axis, before, after);
    if (value == 0 && !std::signbit(value)) return p;
    const Tensor inside = a->graph().index(p.shape(), less(Dim(before) - 1, i) * less(i, n + before), DType::Bool);
    return prim::where(inside, p, full_like(p, value));
  }
  const Dim from = i - before;
  if (mode == PadMode::Reflect && (before >= n.bounds().hi || after >= n.bounds().hi))
    throw Error("pad", cat("reflecting ", std::max(before, after), " elements needs an extent above that, not ", n));
  const Dim source = mode == PadMode::Replicate ? min(max(from, 0), n - 1) : (n - 1) - max((n - 1) - max(from, Dim(0) - from), max(from, Dim(0) - from) - (n - 1));
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
  if (static_cast<int>(times.size()) < a->rank()) throw Error("repeat", "one count for each axis, or more");
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
  Shape s = a->shape();
  Tensor t = a->unsqueeze(axis + 1);
  Shape wide = t.shape();
  wide[static_cast<std::size_t>(axis) + 1] = times;
  s[static_cast<std::size_t>(axis)] = s[static_cast<std::size_t>(axis)] * Dim(times);
  return t.expand(wide).reshape(s);
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
Tensor arange(Graph& g, Dim n, DType dtype) { return g.index({n}, Dim::index(0, n), dtype); }
Tensor linspace(Graph& g, double from, double to, int steps) {
  const Tensor i = arange(g, steps, DType::F32);
  const double step = steps > 1 ? (to - from) / (steps - 1) : 0;
  return add(mul(i, step), from);
}

// ---- indexing ----------------------------------------------------------------------------------

Tensor gather(Operand a, int axis, Operand index) {
  LC_SCOPE("gather");
  axis = wrap_axis(axis, a->rank(), a->shape(), "gather");
  Tensor data = a;  // other axes may be longer than the index
  for (int i = 0; i < a->rank() && index->rank() == a->rank(); ++i)
    if (i != axis && !(index->extent(i) == a->extent(i))) data = data.slice(i, 0, index->extent(i));
  return prim::gather(data, index, axis);
}
Tensor index_select(Operand a, int axis, Operand index) {
  LC_SCOPE("index_select");
  axis = wrap_axis(axis, a->rank(), a->shape(), "index_select");
  if (index->rank() != 1) throw Error("index_select", "the index has rank 1, not " + str(index->shape()));
  Shape s(static_cast<std::size_t>(a->rank()), 1), wide = a->shape();
  s[static_cast<std::size_t>(axis)] = wide[static_cast<std::size_t>(axis)] = index->extent(0);
  return prim::gather(a, index->reshape(s).expand(wide), axis);
}
Tensor embedding(Operand weight, Operand ids) {
  const OpScope scope("embedding", weight.at);
  if (weight->rank() != 2) throw Error("embedding", "the weight has rank 2, not " + str(weight->shape()));
  const Dim n = product(ids->shape()), d = weight->extent(1);
  const Tensor index = ids->reshape({n, 1}).expand({n, d});
  Shape s = ids->shape();
  s.push_back(d);
  return prim::gather(weight, index, 0).reshape(s);
}
Tensor one_hot(Operand ids, Dim classes) {
  const OpScope scope("one_hot", ids.at);
  Shape s = ids->shape();
  s.push_back(classes);
  const Tensor i = ids->graph().index(s, Dim::index(ids->rank(), classes), ids->dtype());
  return prim::cast(prim::equal(ids->unsqueeze(ids->rank()).expand(s), i), DType::I64);
}
namespace {
// PyTorch's index may be shorter than the base beside `axis`, and the source longer than the index.
Tensor scattered(const Operand& a, int axis, const Operand& index, const Operand& src, const char* op, Tensor (*write)(Operand, Operand, Operand, int)) {
  const OpScope scope(op, a.at);
  axis = wrap_axis(axis, a->rank(), a->shape(), op);
  if (index->rank() != a->rank() || src->rank() != a->rank())
    throw Error(op, cat(str(a->shape()), ", index ", str(index->shape()), " and source ", str(src->shape()), " have different ranks"));
  if (src->dtype() != a->dtype()) throw Error(op, cat("the source is ", name(src->dtype()), ", the tensor ", name(a->dtype()), "; convert one"));
  Tensor at = index, from = src;
  for (int i = 0; i < a->rank(); ++i) {
    const Dim n = index->extent(i), room = a->extent(i) - n;
    if (!(src->extent(i) == n)) from = from.slice(i, 0, n);
    if (i == axis || room == Dim(0)) continue;
    if (room.bounds().lo < 0) throw Error(op, cat("an index ", str(index->shape()), " leaves ", str(a->shape())));
    const auto more = room.constant();
    if (!more) throw Error(op, cat("an index ", str(index->shape()), " does not fit ", str(a->shape())));
    at = pad(at, i, 0, static_cast<int>(*more), PadMode::Constant, -1);  // which writes nothing
    from = from.pad(i, 0, room);
  }
  return write(a, at, from, axis);
}
}  // namespace
Tensor scatter(Operand a, int axis, Operand index, Operand src) { return scattered(a, axis, index, src, "scatter", prim::scatter); }
Tensor scatter_add(Operand a, int axis, Operand index, Operand src) { return scattered(a, axis, index, src, "scatter_add", prim::scatter_add); }
Tensor argsort(Operand a, int axis, bool descending) {
  LC_SCOPE("argsort");
  return prim::argsort(a, wrap_axis(axis, a->rank(), a->shape(), "argsort"), descending);
}
Sorted sort(Operand a, int axis, bool descending) {
  LC_SCOPE("sort");
  axis = wrap_axis(axis, a->rank(), a->shape(), "sort");
  const Tensor i = prim::argsort(a, axis, descending);
  return {prim::gather(a, i, axis), i};
}
Sorted topk(Operand a, Dim k, int axis) {
  LC_SCOPE("topk");
  axis = wrap_axis(axis, a->rank(), a->shape(), "topk");
  const Tensor i = prim::argsort(a, axis, true).slice(axis, 0, k);
  Tensor data = a;
  return {prim::gather(data, i, axis), i};
}

}  // namespace lc
