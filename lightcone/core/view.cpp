#include "lightcone/core/view.h"

#include <algorithm>
#include <atomic>
#include <tuple>

#include "lightcone/base/error.h"

namespace lc {

struct View::Data {
  Shape base;
  std::vector<Move> moves;
  std::size_t hash;
  enum Simple : std::uint8_t { Unknown, Yes, No };
  mutable std::atomic<Simple> simple{Unknown};  // computed on first use
  Data(Shape b, std::vector<Move> m, std::size_t h) : base(std::move(b)), moves(std::move(m)), hash(h) {}
};

namespace {

std::size_t fnv(std::size_t h, std::size_t v) { return (h ^ v) * 0x100000001b3ull; }
std::size_t fnv(std::size_t h, const Shape& s) {
  for (const Dim& d : s) h = fnv(h, d.hash());
  return fnv(h, s.size());
}

struct Cursor {
  std::vector<Dim> index;
  Dim valid = 1;
};

// Maps an index of `to` to the index of the same element in `from`. Where the shapes differ by axes of one element
// alone, every other axis keeps its index: one that is beside its axis, where padding is read, would wrap into other
// axes as a position in memory, and would have to be divided.
std::vector<Dim> reshaped(const std::vector<Dim>& index, const Shape& to, const Shape& from) {
  const auto longer = [](const Shape& s, std::size_t i) {
    while (i < s.size() && s[i] == Dim(1)) ++i;
    return i;
  };
  std::vector<Dim> in(from.size(), 0);
  std::size_t i = longer(from, 0), j = longer(to, 0);
  for (; i < from.size() && j < to.size() && from[i] == to[j]; i = longer(from, i + 1), j = longer(to, j + 1))
    in[i] = index[j];
  return i == from.size() && j == to.size() ? in : unravel(ravel(index, to), from);
}

// Maps index c.index of the moved shape to an index of `from`. There is one case per move.
Cursor pull(const Move& m, const Shape& from, Cursor c) {
  std::vector<Dim> in(from.size());
  switch (m.kind) {
    case MoveKind::Permute:
      for (std::size_t i = 0; i < in.size(); ++i) in[m.axes[i]] = c.index[i];
      break;
    case MoveKind::Expand:
      for (std::size_t i = 0; i < in.size(); ++i) in[i] = from[i] == m.to[i] ? c.index[i] : Dim(0);
      break;
    case MoveKind::Reshape: in = reshaped(c.index, m.to, from); break;
    case MoveKind::Slice:
      for (std::size_t i = 0; i < in.size(); ++i) in[i] = m.before[i] + c.index[i] * m.step[i];
      break;
    case MoveKind::Pad:
      for (std::size_t i = 0; i < in.size(); ++i) {
        in[i] = c.index[i] - m.before[i];
        c.valid = c.valid * less(Dim(-1), in[i]) * less(in[i], from[i]);
      }
      break;
    case MoveKind::Unfold: {
      in.assign(c.index.begin(), c.index.end() - 1);
      const int a = m.axes[0];
      in[a] = in[a] * Dim(m.step[0]) + c.index.back() * Dim(m.step[1]);
      break;
    }
  }
  return {std::move(in), c.valid};
}

// Merges two consecutive moves into one if that is exact.
std::optional<Move> merged(const Move& a, const Move& b) {
  if (a.kind != b.kind) return std::nullopt;
  switch (a.kind) {
    case MoveKind::Permute: {
      Move m{MoveKind::Permute, b.to};
      for (int axis : b.axes) m.axes.push_back(a.axes[axis]);
      return m;
    }
    case MoveKind::Expand:
    case MoveKind::Reshape: return b;
    case MoveKind::Slice: {
      Move m{MoveKind::Slice, b.to};
      for (std::size_t i = 0; i < a.to.size(); ++i) {
        m.before.push_back(a.before[i] + b.before[i] * Dim(a.step[i]));
        m.step.push_back(a.step[i] * b.step[i]);
      }
      return m;
    }
    default: return std::nullopt;
  }
}

bool does_nothing(const Move& m, const Shape& from) {
  if (m.kind == MoveKind::Unfold || m.to != from) return false;
  switch (m.kind) {
    case MoveKind::Permute: return std::is_sorted(m.axes.begin(), m.axes.end());
    case MoveKind::Slice:
      return std::all_of(m.before.begin(), m.before.end(), [](const Dim& d) { return d == Dim(0); }) &&
             std::all_of(m.step.begin(), m.step.end(), [](auto s) { return s == 1; });
    default: return true;
  }
}

}  // namespace

Dim ravel(std::span<const Dim> index, const Shape& shape) {
  Dim o = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) o = o * shape[i] + index[i];
  return o;
}

std::vector<Dim> unravel(Dim offset, const Shape& shape) {
  // memoized: the layers of a model repeat the same computation
  thread_local std::vector<std::tuple<Dim, Shape, std::vector<Dim>>> known(4096);
  auto& [known_offset, known_shape, answer] = known[fnv(offset.hash(), shape) % known.size()];
  if (!shape.empty() && known_offset == offset && known_shape == shape) return answer;
  known_shape.clear();  // invalidate first: an Error or bad_alloc may come before the entry is complete
  known_offset = offset;
  std::vector<Dim> index(shape.size(), 0);
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (shape[i] == Dim(1) || shape[i] == Dim(0)) continue;
    bool outermost = true;
    for (std::size_t k = 0; k < i; ++k) outermost = outermost && shape[k] == Dim(1);
    index[i] = outermost ? offset : offset % shape[i];
    if (!outermost) offset = offset / shape[i];
  }
  answer = index;
  known_shape = shape;
  return index;
}

std::vector<Dim> index_symbols(const Shape& shape) {
  std::vector<Dim> index;
  for (std::size_t i = 0; i < shape.size(); ++i) index.push_back(Dim::index(static_cast<int>(i), shape[i]));
  return index;
}

View::View() : View(Shape{}) {}
View::View(Shape base) {
  // cached: a graph has few shapes, and each pass needs the identity view of every node
  thread_local std::vector<std::shared_ptr<const Data>> known(256);
  const std::size_t h = fnv(0xcbf29ce484222325ull, base);
  std::shared_ptr<const Data>& d = known[h % known.size()];
  if (!d || d->base != base) d = std::make_shared<const Data>(std::move(base), std::vector<Move>(), h);
  data_ = d;
}

const Shape& View::base() const { return data_->base; }
const Shape& View::shape() const { return data_->moves.empty() ? data_->base : data_->moves.back().to; }
std::span<const Move> View::moves() const { return data_->moves; }
std::size_t View::hash() const { return data_->hash; }

bool operator==(const View& a, const View& b) {
  if (a.data_ == b.data_) return true;
  return a.data_->hash == b.data_->hash && a.data_->base == b.data_->base && a.data_->moves == b.data_->moves;
}

View View::with(Move m) const {
  if (does_nothing(m, shape())) return *this;
  const Shape& base = data_->base;
  std::vector<Move> moves = data_->moves;
  if (!moves.empty())
    if (auto both = merged(moves.back(), m)) {
      moves.pop_back();
      m = std::move(*both);
    }
  if (!does_nothing(m, moves.empty() ? base : moves.back().to)) moves.push_back(std::move(m));
  std::size_t h = fnv(0xcbf29ce484222325ull, base);
  for (const Move& x : moves) {
    h = fnv(fnv(fnv(h, static_cast<std::size_t>(x.kind)), x.to), x.before);
    for (int a : x.axes) h = fnv(h, static_cast<std::size_t>(a));
    for (auto s : x.step) h = fnv(h, static_cast<std::size_t>(s));
  }
  View v;
  v.data_ = std::make_shared<const Data>(base, std::move(moves), h);
  return v;
}

View View::permute(std::vector<int> axes) const {
  const int n = static_cast<int>(shape().size());
  std::vector<int> sorted = axes;
  std::sort(sorted.begin(), sorted.end());
  bool ok = static_cast<int>(axes.size()) == n;
  for (int i = 0; ok && i < n; ++i) ok = sorted[i] == i;
  if (!ok) throw Error("permute", "the axes are not an order of all axes of " + str(shape()));
  Shape to;
  for (int a : axes) to.push_back(shape()[a]);
  return with({MoveKind::Permute, std::move(to), std::move(axes)});
}

View View::expand(Shape to) const {
  bool ok = to.size() == shape().size();
  for (std::size_t i = 0; ok && i < to.size(); ++i) ok = shape()[i] == to[i] || shape()[i] == Dim(1);
  if (!ok) throw Error("expand", str(shape()) + " does not stretch to " + str(to));
  return with({MoveKind::Expand, std::move(to)});
}

View View::reshape(Shape to) const {
  const Dim have = product(shape()), want = product(to);
  if (!(have == want))
    throw Error("reshape", str_cat(str(shape()), " has ", have, " elements, ", str(to), " has ", want));
  return with({MoveKind::Reshape, std::move(to)});
}

View View::slice(Shape begin, Shape extent, std::vector<std::int64_t> step) const {
  if (step.empty()) step.assign(shape().size(), 1);
  if (begin.size() != shape().size() || extent.size() != begin.size() || step.size() != begin.size())
    throw Error("slice", "one begin, extent and step for each axis of " + str(shape()));
  for (std::size_t i = 0; i < begin.size(); ++i) {
    const Dim last = begin[i] + (extent[i] - 1) * Dim(step[i]);
    const Dim low = step[i] < 0 ? last : begin[i], high = step[i] < 0 ? begin[i] : last;
    if (extent[i].bounds().hi <= 0) continue;  // reads nothing
    if (low.bounds().hi < 0 || (high - shape()[i]).bounds().lo >= 0)
      throw Error("slice", str_cat("[", begin[i], " : +", extent[i], " : step ", step[i], "] leaves axis ", i, " of ",
                                   str(shape())));
  }
  return with({MoveKind::Slice, std::move(extent), {}, std::move(begin), std::move(step)});
}

View View::pad(Shape before, Shape after) const {
  if (before.size() != shape().size() || after.size() != shape().size())
    throw Error("pad", "one pair of widths for each axis of " + str(shape()));
  Shape to;
  bool nothing = true;
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (before[i].bounds().hi < 0 || after[i].bounds().hi < 0)
      throw Error("pad", str_cat("widths (", before[i], ", ", after[i], ") of axis ", i, " are negative"));
    to.push_back(before[i] + shape()[i] + after[i]);
    nothing = nothing && before[i] == Dim(0) && after[i] == Dim(0);
  }
  return nothing ? *this : with({MoveKind::Pad, std::move(to), {}, std::move(before)});
}

View View::unfold(int axis, Dim size, std::int64_t stride, std::int64_t dilation) const {
  if (axis < 0 || axis >= static_cast<int>(shape().size()))
    throw Error("unfold", str_cat("axis ", axis, " is not an axis of ", str(shape())));
  if (stride < 1 || dilation < 1)
    throw Error("unfold", str_cat("stride ", stride, " and dilation ", dilation, " must be positive"));
  const Dim reach = (size - 1) * Dim(dilation) + 1;
  if (size.bounds().hi < 1 || provably_below(shape()[axis], reach))
    throw Error("unfold", str_cat("a window of ", reach, " does not fit axis ", axis, " of ", str(shape())));
  Shape to = shape();
  to[axis] = (shape()[axis] - reach) / Dim(stride) + 1;
  to.push_back(size);
  return with({MoveKind::Unfold, std::move(to), {axis}, {}, {stride, dilation}});
}

View View::then(const View& next) const {
  if (next.base() != shape()) throw Error("view", str(next.base()) + " does not continue " + str(shape()));
  return identity() ? next : then(next.moves());
}
View View::then(std::span<const Move> next) const {
  View v = *this;
  for (const Move& m : next) v = v.with(m);
  return v;
}

View View::without_last(std::size_t n) const { return View(base()).then(moves().first(moves().size() - n)); }

View::Position View::locate(std::vector<Dim> index) const {
  Cursor c{std::move(index)};
  const auto m = moves();
  for (std::size_t i = m.size(); i-- > 0;) c = pull(m[i], i == 0 ? base() : m[i - 1].to, std::move(c));
  return {ravel(c.index, base()), c.valid, c.index};
}

bool View::simple() const {
  constexpr std::size_t kFew = 3;  // always simple; most views take this exit
  if (moves().size() <= kFew) return true;
  if (moves().size() > kMostMoves) return false;
  if (const auto known = data_->simple.load(std::memory_order_relaxed)) return known == Data::Yes;
  const bool is = [&]() {
    try {
      const Position p = locate(index_symbols(shape()));
      std::size_t parts = p.offset.parts() + p.valid.parts();
      for (const Dim& d : p.index) parts += d.parts();
      return parts <= kMostParts;
    } catch (const Error&) {  // the expression exceeds a limit of Dim
      return false;
    }
  }();
  data_->simple.store(is ? Data::Yes : Data::No, std::memory_order_relaxed);
  return is;
}

std::optional<View::Strided> View::strided() const {
  const auto index = index_symbols(shape());
  const Position at = locate(index);
  if (!(at.valid == Dim(1))) return std::nullopt;
  Strided s{at.offset, std::vector<Dim>(index.size(), 0)};
  for (std::size_t i = 0; i < index.size(); ++i) {
    if (index[i] == Dim(0)) continue;
    const Dim::Atom* atom = index[i].terms()[0].factors[0];
    for (const Dim::Term& t : at.offset.terms()) {
      const auto uses = std::count(t.factors.begin(), t.factors.end(), atom);
      if (uses > 1) return std::nullopt;
      if (uses == 0) continue;
      Dim k = t.coefficient;
      for (const Dim::Atom* f : t.factors)
        if (f != atom) k = k * Dim::from(f);
      s.strides[i] = s.strides[i] + k;
    }
    s.offset = s.offset - s.strides[i] * index[i];
  }
  // a remaining index inside /, %, min or < is not a stride
  for (const auto& [name, b] : s.offset.symbols())
    for (const Dim& i : index)
      if (i.name() == name) return std::nullopt;
  for (const Dim& k : s.strides)
    for (const auto& [name, b] : k.symbols())
      for (const Dim& i : index)
        if (i.name() == name) return std::nullopt;
  return s;
}

}  // namespace lc
