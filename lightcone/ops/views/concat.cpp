// Joints and pieces of tensors, and elements elsewhere.
#include "lightcone/composites/composites.h"

#include <algorithm>
#include <cmath>
#include "lightcone/ops/internal.h"

namespace lc {
using namespace detail;
#define LC_SCOPE(name) const OpScope scope(name, a.at)

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
        throw Error("concat", str_cat(str(x), " and ", str(y), " differ at axis ", i, ": ", versus(x[i], y[i])));
    total = total + p.extent(axis);
  }
  // each part is padded to the total length; a mask selects, because 0 + -0 is not -0
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
      throw Error("stack", str_cat(str(parts[0].shape()), " and ", str(p.shape()), " differ"));
  std::vector<Tensor> with_axis;
  for (const Tensor& p : parts) with_axis.push_back(p.unsqueeze(axis));
  return concat(with_axis, axis);
}
Tensor cat(const std::vector<Tensor>& parts, int axis, const Tensor::At& at) {
  const OpScope scope("cat", at);
  return concat(parts, axis, at);
}
Tensor concatenate(const std::vector<Tensor>& parts, int axis, const Tensor::At& at) {
  const OpScope scope("concatenate", at);
  return concat(parts, axis, at);
}
namespace {
Tensor joined(const std::vector<Tensor>& parts, int axis, Tensor (*wide)(Operand), const char* op,
              const Tensor::At& at) {
  const OpScope scope(op, at);
  std::vector<Tensor> all;
  for (const Tensor& p : parts) all.push_back(wide(p));
  return concat(all, all.empty() || all[0].rank() > axis ? axis : 0, at);
}
}  // namespace
Tensor hstack(const std::vector<Tensor>& parts, const Tensor::At& at) {
  return joined(parts, 1, atleast_1d, "hstack", at);
}
Tensor vstack(const std::vector<Tensor>& parts, const Tensor::At& at) {
  return joined(parts, 0, atleast_2d, "vstack", at);
}
Tensor dstack(const std::vector<Tensor>& parts, const Tensor::At& at) {
  return joined(parts, 2, atleast_3d, "dstack", at);
}
Tensor column_stack(const std::vector<Tensor>& parts, const Tensor::At& at) {
  const auto column = [](Operand a) { return a->rank() < 2 ? a->reshape({product(a->shape()), 1}) : Tensor(a); };
  return joined(parts, 1, column, "column_stack", at);
}
std::vector<Tensor> detail::split_by(Operand a, std::int64_t size, int axis) {
  LC_SCOPE("split");
  axis = wrap_axis(axis, a->rank(), a->shape(), "split");
  const auto n = a->extent(axis).constant();
  if (!n || size < 1)
    throw Error("split",
                str_cat("pieces of ", size, " need an extent known when the graph is built, not ", a->extent(axis)));
  std::vector<Dim> sizes;
  for (std::int64_t left = *n; left > 0 || sizes.empty(); left -= size) sizes.push_back(std::min(left, size));
  return split(a, sizes, axis);
}
std::vector<Tensor> split(Operand a, const std::vector<Dim>& sizes, int axis) {
  LC_SCOPE("split");
  axis = wrap_axis(axis, a->rank(), a->shape(), "split");
  std::vector<Tensor> parts;
  Dim start = 0;
  for (const Dim& n : sizes) {
    if (n.bounds().hi < 0) throw Error("split", str_cat("a size is ", n));
    parts.push_back(a->slice(axis, start, start + n));
    start = start + n;
  }
  if (!(start == a->extent(axis)))
    throw Error("split", str_cat("the sizes add up to ", start, ", the axis has ", a->extent(axis)));
  return parts;
}
namespace {
std::int64_t known_extent(const Operand& a, int axis, const char* op) {
  if (const auto n = a->extent(axis).constant()) return *n;
  throw Error(op, str_cat("needs an extent known when the graph is built, not ", a->extent(axis)));
}
}  // namespace
std::vector<Tensor> detail::split_in(Operand a, std::int64_t sections, int axis) {
  LC_SCOPE("tensor_split");
  axis = wrap_axis(axis, a->rank(), a->shape(), "tensor_split");
  const std::int64_t n = known_extent(a, axis, "tensor_split");
  if (sections < 1) throw Error("tensor_split", str_cat(sections, " sections"));
  std::vector<Dim> sizes;
  for (std::int64_t k = 0; k < sections; ++k) sizes.push_back(n / sections + (k < n % sections));
  return split(a, sizes, axis);
}
std::vector<Tensor> tensor_split(Operand a, const std::vector<std::int64_t>& indices, int axis) {
  LC_SCOPE("tensor_split");
  axis = wrap_axis(axis, a->rank(), a->shape(), "tensor_split");
  const std::int64_t n = known_extent(a, axis, "tensor_split");
  std::vector<Tensor> parts;
  std::int64_t begin = 0;
  const auto part = [&](std::int64_t end) { parts.push_back(a->slice(axis, begin, std::max(begin, end))); };
  for (std::int64_t at : indices) {
    at = std::clamp<std::int64_t>(at < 0 ? at + n : at, 0, n);
    part(at), begin = at;
  }
  part(n);
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
Tensor pad(Operand a, int axis, int before, int after, PadMode mode, Scalar value) {
  LC_SCOPE("pad");
  axis = wrap_axis(axis, a->rank(), a->shape(), "pad");
  const Dim n = a->extent(axis), total = n + before + after, i = Dim::index(axis, total);
  if (mode == PadMode::Constant && (before < 0 || after < 0)) {  // negative padding cuts
    if ((n + std::min(0, before) + std::min(0, after)).bounds().hi < 0)
      throw Error("pad", str_cat("cutting (", before, ", ", after, ") from ", n, " elements"));
    const Tensor cut = a->slice(axis, std::max(0, -before), n + std::min(0, after));
    return pad(cut, axis, std::max(0, before), std::max(0, after), mode, value);
  }
  if (before < 0 || after < 0) throw Error("pad", "only constant padding may be negative");
  if (mode == PadMode::Circular) {
    if (before > n.bounds().hi || after > n.bounds().hi)
      throw Error("pad", str_cat("wrapping ", std::max(before, after), " elements around needs as many, not ", n));
    Shape s = a->shape();
    s[axis] = total;
    return prim::gather(a, a->graph().index(s, (i - before) % n), axis);
  }
  if (mode == PadMode::Constant) {
    const Tensor p = a->pad(axis, before, after);
    if (value.value == 0 && !std::signbit(value.value)) return p;
    const Tensor inside = a->graph().index(p.shape(), less(Dim(before) - 1, i) * less(i, n + before), DType::Bool);
    return prim::where(inside, p, full_like(p, value));
  }
  if (n.bounds().hi < 1)
    throw Error("pad", str_cat("axis ", axis, " of ", str(a->shape()), " has no elements to repeat"));
  const Dim from = i - before;
  if (mode == PadMode::Reflect && (before >= n.bounds().hi || after >= n.bounds().hi))
    throw Error("pad",
                str_cat("reflecting ", std::max(before, after), " elements needs an extent above that, not ", n));
  const Dim source = mode == PadMode::Replicate
                         ? min(max(from, 0), n - 1)
                         : (n - 1) - max((n - 1) - max(from, Dim(0) - from), max(from, Dim(0) - from) - (n - 1));
  Shape s = a->shape();
  s[axis] = total;
  return prim::gather(a, a->graph().index(s, source), axis);
}
Tensor pad(Operand a, const IntList& pads, PadMode mode, Scalar value) {
  LC_SCOPE("pad");
  if (pads.size() % 2 != 0 || static_cast<int>(pads.size()) > 2 * a->rank())
    throw Error("pad", str_cat(pads.size(), " numbers for ", str(a->shape()), "; two an axis, the last axis first"));
  Tensor t = a;
  for (int k = 0; k < static_cast<int>(pads.size()) / 2; ++k) {
    const auto at = static_cast<std::size_t>(2 * k);
    if (pads[at] != 0 || pads[at + 1] != 0) t = pad(t, -1 - k, pads[at], pads[at + 1], mode, value);
  }
  return t;
}
Tensor roll(Operand a, std::int64_t shift) {
  LC_SCOPE("roll");
  return roll(ravel(a), shift, 0).reshape(a->shape());
}
Tensor roll(Operand a, const std::vector<std::int64_t>& shifts, const IntList& axes) {
  LC_SCOPE("roll");
  if (shifts.size() != axes.size()) throw Error("roll", str_cat(shifts.size(), " shifts for ", axes.size(), " axes"));
  Tensor t = a;
  for (std::size_t k = 0; k < axes.size(); ++k) t = roll(t, shifts[k], axes[k]);
  return t;
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
    throw Error("repeat", str_cat(times.size(), " counts for the axes of ", str(a->shape())));
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
Tensor tile(Operand a, const std::vector<int>& times) {
  LC_SCOPE("tile");
  std::vector<int> all = times;
  if (static_cast<int>(all.size()) < a->rank())
    all.insert(all.begin(), static_cast<std::size_t>(a->rank()) - all.size(), 1);
  return repeat(a, all);
}
Tensor repeat_interleave(Operand a, int times, std::optional<int> dim) {
  LC_SCOPE("repeat_interleave");
  if (!dim) return repeat_interleave(ravel(a), times, 0);
  int axis = *dim;
  axis = wrap_axis(axis, a->rank(), a->shape(), "repeat_interleave");
  if (times < 0) throw Error("repeat_interleave", str_cat("a count of ", times));
  Shape s = a->shape();
  Tensor t = a->unsqueeze(axis + 1);
  Shape wide = t.shape();
  wide[static_cast<std::size_t>(axis) + 1] = times;
  s[axis] = s[axis] * Dim(times);
  return t.expand(wide).reshape(s);
}
Tensor fliplr(Operand a) {
  LC_SCOPE("fliplr");
  if (a->rank() < 2) throw Error("fliplr", "needs at least two axes, not " + str(a->shape()));
  return a->flip(1);
}
Tensor flipud(Operand a) {
  LC_SCOPE("flipud");
  return a->flip(0);
}
Tensor rot90(Operand a, int k, const IntList& axes) {
  LC_SCOPE("rot90");
  const IntList both = wrap_axes(axes, a, "rot90");
  if (axes.size() != 2) throw Error("rot90", str_cat(axes.size(), " axes; a plane has two"));
  const int from = wrap_axis(axes[0], a->rank(), a->shape(), "rot90"),
            to = wrap_axis(axes[1], a->rank(), a->shape(), "rot90");
  switch ((k % 4 + 4) % 4) {
    case 1: return a->flip(to).transpose(from, to);
    case 2: return a->flip(from).flip(to);
    case 3: return a->flip(from).transpose(from, to);
    default: return a;
  }
}
Tensor flip(Operand a, const Axes& axes) {
  LC_SCOPE("flip");
  Tensor t = a;
  for (const int x : wrap_axes(axes, a, "flip")) t = t.flip(x);
  return t;
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
Tensor diff(Operand a, int n, int axis) {
  LC_SCOPE("diff");
  if (n < 0) throw Error("diff", str_cat(n, " times"));
  axis = wrap_axis(axis, a->rank(), a->shape(), "diff");
  Tensor t = a;
  for (; n > 0 && !(t.extent(axis) == Dim(0)); --n) {
    const Dim size = t.extent(axis);
    const Tensor next = t.slice(axis, 1, size), here = t.slice(axis, 0, size - 1);
    t = t.dtype() == DType::Bool ? logical_xor(next, here) : prim::add(next, neg(here));
  }
  return t;
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
}  // namespace lc
