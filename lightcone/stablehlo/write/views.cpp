// Writes views as operations: all moves at once if every axis is read in steps, otherwise one after the other.
#include <algorithm>

#include "lightcone/stablehlo/write/reading.h"
#include "lightcone/stablehlo/write/writer.h"

namespace lc::stablehlo {
namespace {

using i64 = std::int64_t;

std::optional<ValueId> at_once(Builder& b, ValueId x, const View& v) {
  const std::vector<Dim> symbols = index_symbols(v.shape());
  const auto r = read_in_loops(b.sizes(), symbols, {v.locate(symbols)}, {&v.base(), 1});
  if (!r) return std::nullopt;
  const Reading& reading = r->operands[0];
  if (reading.nothing) return b.splat(b.element(x), b.sizes(v.shape()), 0);
  if (!is_plain(reading, r->loops)) return std::nullopt;
  std::vector<Placed::Item> order;
  for (std::size_t k = 0; k < r->loops.size(); ++k) order.push_back({false, k});
  return b.reshape(permute_and_broadcast(b, place(b, x, reading, r->loops), order, r->loops), b.sizes(v.shape()));
}

// Writes windows as slices that begin at their first, second, ... element.
ValueId few_places(Builder& b, ValueId x, std::size_t axis, i64 windows, i64 size, i64 stride, i64 dilation) {
  std::vector<ValueId> places;
  const Sizes from = b.shape(x);
  for (i64 k = 0; k < size; ++k) {
    Sizes begin(from.size(), 0), end = from, step(from.size(), 1);
    begin[axis] = k * dilation, end[axis] = begin[axis] + (windows - 1) * stride + 1, step[axis] = stride;
    Sizes to = from;
    to[axis] = windows, to.push_back(1);
    places.push_back(b.reshape(b.slice(x, begin, end, step), to));
  }
  return b.concatenate(places, from.size());
}

// Writes large or open windows, by index.
ValueId many_places(Builder& b, ValueId x, std::size_t axis, i64 windows, i64 size, i64 stride, i64 dilation) {
  const Sizes table{windows, size};
  const auto along = [&](std::size_t i, i64 step) {
    const ValueId at = b.iota("i64", table, i);
    return b.multiply(at, b.like_whole(at, step));
  };
  const ValueId index = b.add(along(0, stride), along(1, dilation));
  Attribute numbers;
  numbers.kind = Attribute::Kind::Struct, numbers.name = "gather";
  Sizes offset, sizes = b.shape(x), to = sizes;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (i != axis) offset.push_back(static_cast<i64>(i));
  sizes[axis] = 1, to[axis] = windows, to.push_back(size);
  const auto at = static_cast<i64>(axis);
  numbers.fields = {{"offset_dims", integers(offset)},
                    {"collapsed_slice_dims", integers({at})},
                    {"start_index_map", integers({at})},
                    {"index_vector_dim", whole(2)}};
  return b.gather(x, index, std::move(numbers), sizes, to);
}

ValueId unfolded(Builder& b, ValueId x, const Move& m) {
  constexpr i64 kFew = 8;
  const auto axis = static_cast<std::size_t>(m.axes[0]);
  const i64 windows = b.sizes().of(m.to[axis]), size = b.sizes().of(m.to.back());
  const bool few = size <= kFew && !is_open(size) && !is_open(windows);
  return (few ? few_places : many_places)(b, x, axis, windows, size, m.step[0], m.step[1]);
}

ValueId sliced(Builder& b, ValueId x, const Move& m) {
  std::vector<std::size_t> reversed;
  Sizes begin, end, step;
  for (std::size_t i = 0; i < m.to.size(); ++i) {
    if (m.to[i] == Dim(0)) {
      begin.push_back(0), end.push_back(0), step.push_back(1);
      continue;
    }
    const Dim &first = m.before[i], last = first + (m.to[i] - 1) * Dim(m.step[i]);
    // If an open extent is 0, `last` is on the other side of `first`.
    const bool back = m.step[i] < 0;
    begin.push_back(b.sizes().of(back ? min(last, first + 1) : first));
    end.push_back(b.sizes().of(back ? first + 1 : max(first, last + 1)));
    step.push_back(std::abs(m.step[i]));
    if (back && !(m.to[i] == Dim(1))) reversed.push_back(i);
  }
  return b.reverse(b.slice(x, begin, end, step), reversed);
}

Shape dims_of(Builder& b, ValueId x) {
  Shape all;
  for (const i64 n : b.shape(x)) all.push_back(b.sizes().dim(n));
  return all;
}

ValueId moved(Builder& b, ValueId x, const Move& m) {
  const Sizes to = b.sizes(m.to);
  std::vector<std::size_t> axes;
  switch (m.kind) {
    case MoveKind::Permute: return b.transpose(x, {m.axes.begin(), m.axes.end()});
    case MoveKind::Expand:
      for (std::size_t i = 0; i < to.size(); ++i) axes.push_back(i);
      return b.broadcast(x, to, axes);
    case MoveKind::Reshape: return b.reshape(x, to);
    case MoveKind::Slice: return sliced(b, x, m);
    case MoveKind::Pad: {
      const Shape from = dims_of(b, x);
      Shape high;
      for (std::size_t i = 0; i < to.size(); ++i) high.push_back(m.to[i] - m.before[i] - from[i]);
      return b.pad(x, b.splat(b.element(x), {}, 0), b.sizes(m.before), b.sizes(high));
    }
    case MoveKind::Unfold: return unfolded(b, x, m);
  }
  return x;
}

bool is_empty(const Shape& s) { return product(s) == Dim(0); }

}  // namespace

ValueId write_view(Builder& b, ValueId x, const View& v) {
  if (v.identity()) return x;
  if (is_empty(v.shape())) return b.splat(b.element(x), b.sizes(v.shape()), 0);
  if (is_empty(v.base())) return b.splat(b.element(x), b.sizes(v.shape()), 0);  // only padding
  if (const auto y = at_once(b, x, v)) return *y;
  for (const Move& m : v.moves()) x = moved(b, x, m);
  return x;
}

}  // namespace lc::stablehlo
