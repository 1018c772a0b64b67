#include "lightcone/autograd/views.h"

#include <algorithm>

namespace lc {
namespace {

Tensor unpermute(const Move& m, const Tensor& g) {
  std::vector<int> back(m.axes.size());
  for (std::size_t i = 0; i < back.size(); ++i) back[m.axes[i]] = static_cast<int>(i);
  return g.permute(back);
}

// Merges the repeated axes into one and sums over it, so that the gradient of a weight is a single matrix product.
Tensor unexpand(const Shape& from, const Move& m, const Tensor& g) {
  std::vector<int> order;
  Dim repeats = 1;
  Shape kept;
  for (int i = 0; i < g.rank(); ++i)
    if (const auto k = static_cast<std::size_t>(i); !(from[k] == m.to[k])) {
      order.push_back(i);
      repeats = repeats * m.to[k];
    }
  for (int i = 0; i < g.rank(); ++i)
    if (const auto k = static_cast<std::size_t>(i); from[k] == m.to[k]) {
      order.push_back(i);
      kept.push_back(from[k]);
    }
  kept.insert(kept.begin(), repeats);
  return prim::sum_reduce(g.permute(order).reshape(kept), 0).reshape(from);
}

// Spreads elements `step` apart, with zeros between them, into an axis of `length`; the first is at `before`.
Tensor spread(Tensor g, int axis, const Dim& before, std::int64_t step, const Dim& length) {
  if (step == 1) return g.pad(axis, before, length - before - g.extent(axis));
  Shape s = g.shape();
  const Dim n = s[axis];
  s.insert(s.begin() + axis + 1, 1);
  g = g.reshape(s).pad(axis + 1, 0, step - 1);
  s = g.shape();
  s.erase(s.begin() + axis + 1);
  s[axis] = n * Dim(step);
  // the zeros after the last element may extend past the end
  return g.reshape(s).pad(axis, before, length - before - n * Dim(step) + step).slice(axis, 0, length);
}

Tensor unslice(const Shape& from, const Move& m, Tensor g) {
  for (int i = 0; i < g.rank(); ++i) {
    const auto k = static_cast<std::size_t>(i);
    const bool backwards = m.step[k] < 0;
    if (backwards) g = g.flip(i);
    const Dim first = backwards ? m.before[k] + (m.to[k] - 1) * Dim(m.step[k]) : m.before[k];
    if (!(from[k] == m.to[k] && first == Dim(0) && (m.step[k] == 1 || backwards)))
      g = spread(g, i, first, backwards ? -m.step[k] : m.step[k], from[k]);
  }
  return g;
}

Tensor unpad(const Shape& from, const Move& m, Tensor g) {
  for (int i = 0; i < g.rank(); ++i) {
    const auto k = static_cast<std::size_t>(i);
    if (!(from[k] == m.to[k])) g = g.slice(i, m.before[k], m.before[k] + from[k]);
  }
  return g;
}

// Handles windows that do not overlap: each element was read at most once, by one window.
Tensor join_windows(const Shape& from, int axis, std::int64_t stride, const Tensor& g) {
  const Dim windows = g.extent(axis), size = g.extent(-1);
  std::vector<int> order;
  for (int i = 0; i + 1 < g.rank(); ++i) {
    order.push_back(i);
    if (i == axis) order.push_back(g.rank() - 1);
  }
  const Tensor apart = g.permute(order).pad(axis + 1, 0, Dim(stride) - size);
  Shape s = from;
  s[axis] = windows * Dim(stride);
  const Dim length = from[axis];
  const Dim more = length - windows * Dim(stride);  // elements after the last window; may be negative
  return apart.reshape(s).pad(axis, 0, more + stride).slice(axis, 0, length);
}

// Handles overlapping windows: each offset inside the window is spread to its positions, and the results are added.
Tensor add_windows(const Shape& from, const Move& m, const Tensor& g, std::int64_t size) {
  const int axis = m.axes[0], last = g.rank() - 1;
  Tensor sum;
  for (std::int64_t k = 0; k < size; ++k) {
    const Tensor at = spread(g.slice(last, k, k + 1).squeeze(last), axis, k * m.step[1], m.step[0], from[axis]);
    sum = sum.defined() ? prim::add(sum, at) : at;
  }
  return sum;
}

// Does the same for windows of symbolic or large size. Offsets inside the window become rows that are `dilation` longer
// than their stride when read back, so that each row is shifted a little further; one reduction adds them.
Tensor add_shifted_rows(const Shape& from, const Move& m, Tensor g) {
  const int axis = m.axes[0];
  const Dim size = g.extent(-1), dilation = m.step[1], length = from[axis];
  std::vector<int> order;
  for (int i = 0; i + 1 < g.rank(); ++i) {
    if (i == axis) order.push_back(g.rank() - 1);
    order.push_back(i);
  }
  g = g.permute(order);  // [.., size, windows, ..]
  const Dim reach = length + size * dilation;
  g = spread(g, axis + 1, 0, m.step[0], reach);
  Shape flat = g.shape();
  flat.erase(flat.begin() + axis);
  flat[axis] = size * reach;
  const Dim row = reach - dilation;
  g = g.reshape(flat).slice(axis, 0, size * row);
  flat[axis] = size;
  flat.insert(flat.begin() + axis + 1, row);
  return prim::sum_reduce(g.reshape(flat).slice(axis + 1, 0, length), axis);
}

Tensor unfold_back(const Shape& from, const Move& m, const Tensor& g) {
  constexpr std::int64_t kFew = 32;
  const Dim size = g.extent(-1);
  const auto known = size.constant();
  if (known && m.step[1] == 1 && *known <= m.step[0]) return join_windows(from, m.axes[0], m.step[0], g);
  if (known && *known <= kFew) return add_windows(from, m, g, *known);
  return add_shifted_rows(from, m, g);
}

}  // namespace

Tensor transpose_view(const View& view, Tensor g) {
  const auto moves = view.moves();
  for (std::size_t k = moves.size(); k-- > 0;) {
    const Move& m = moves[k];
    const Shape& from = k == 0 ? view.base() : moves[k - 1].to;
    switch (m.kind) {
      case MoveKind::Permute: g = unpermute(m, g); break;
      case MoveKind::Expand: g = unexpand(from, m, g); break;
      case MoveKind::Reshape: g = g.reshape(from); break;
      case MoveKind::Slice: g = unslice(from, m, g); break;
      case MoveKind::Pad: g = unpad(from, m, g); break;
      case MoveKind::Unfold: g = unfold_back(from, m, g); break;
    }
  }
  return g;
}

}  // namespace lc
