#include "lightcone/reference/access.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "lightcone/base/error.h"

namespace lc {
namespace {

using i64 = std::int64_t;
using Integers = Access::Integers;

constexpr i64 kOutside = -(i64{1} << 56);  // in a table: padding, whatever is added

Integers counted(i64 n, i64 step = 1) {
  Integers v(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<i64>(i) * step;
  return v;
}
Integers strides(const Integers& shape) {
  Integers s(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) s[i - 1] = s[i] * shape[i];
  return s;
}

// Writes all[a * i + b * j ...] as a sum of one table per axis of `extents`, if possible.
std::optional<std::vector<Integers>> split(const Integers& all, const Integers& extents) {
  const Integers step = strides(extents);
  std::vector<Integers> parts;
  for (std::size_t t = 0; t < extents.size(); ++t) {
    Integers& part = parts.emplace_back(static_cast<std::size_t>(extents[t]));
    for (std::size_t i = 0; i < part.size(); ++i) part[i] = all[i * static_cast<std::size_t>(step[t])] - all[0];
  }
  for (std::size_t m = 0; m < all.size(); ++m) {
    i64 sum = all[0];
    for (std::size_t t = 0; t < extents.size(); ++t)
      sum += parts[t][m / static_cast<std::size_t>(step[t]) % parts[t].size()];
    if (sum != all[m]) return std::nullopt;
  }
  return parts;
}

// Runs of axes with equal element counts in both shapes: [from, from_end) and [to, to_end).
struct Group {
  std::size_t from, from_end, to, to_end;
};
std::vector<Group> groups(const Integers& from, const Integers& to) {
  std::vector<Group> all;
  for (std::size_t i = 0, j = 0; i < from.size() || j < to.size();) {
    Group g{i, i, j, j};
    i64 a = i < from.size() ? from[i++] : 1, b = j < to.size() ? to[j++] : 1;
    while (a != b) {
      if (a < b) a *= from[i++];
      else b *= to[j++];
    }
    g.from_end = i, g.to_end = j;
    all.push_back(g);
  }
  return all;
}

}  // namespace

i64 count(std::span<const i64> shape) {
  i64 n = 1;
  for (i64 d : shape) n *= d;
  return n;
}

Integers numbers(const Shape& s, const Bindings& env) {
  Integers r;
  for (const Dim& d : s) r.push_back(d.eval(env));
  return r;
}

Access::Access(Integers base) : shape_(std::move(base)) {
  if (count(shape_) == 0) return;  // later reads can only be padding
  const Integers step = strides(shape_);
  for (std::size_t a = 0; a < shape_.size(); ++a) {
    Term t{counted(shape_[a], step[a]), std::vector<Integers>(shape_.size())};
    t.along[a] = counted(shape_[a]);
    terms_.push_back(std::move(t));
  }
}

Access::Access(const View& view, const Bindings& env) : Access(numbers(view.base(), env)) { apply(view, env); }

void Access::apply(const View& next, const Bindings& env) {
  for (const Move& m : next.moves()) apply(m, env);
  fold();
}

void Access::apply(const Move& m, const Bindings& env) {
  const Integers to = numbers(m.to, env), before = numbers(m.before, env);
  for (i64 d : to)
    if (d < 0) throw Error("view", "an extent is negative for these sizes: " + str(m.to));
  switch (m.kind) {
    case MoveKind::Permute: permute(m); break;
    case MoveKind::Expand:
      for (Term& t : terms_)
        for (std::size_t a = 0; a < to.size(); ++a) {
          if (shape_[a] == to[a] || t.along[a].empty()) continue;
          if (shape_[a] != 1) throw Error("view", "an axis that is repeated has more than one element");
          t.along[a] = Integers(static_cast<std::size_t>(to[a]), t.along[a][0]);
        }
      break;
    case MoveKind::Slice: slice(m, before, to); break;
    case MoveKind::Pad: pad(before, to); break;
    case MoveKind::Unfold: unfold(m, to); break;
    case MoveKind::Reshape:
      if (count(to) != count(shape_)) throw Error("reshape", "the element counts differ for these sizes");
      reshape(to);
      break;
  }
  shape_ = to;
}

void Access::permute(const Move& m) {
  for (Term& t : terms_) {
    std::vector<Integers> along;
    for (const int a : m.axes) along.push_back(t.along[a]);
    t.along = std::move(along);
  }
}

void Access::slice(const Move& m, const Integers& before, const Integers& to) {
  if (count(to) == 0) return terms_.clear();
  for (std::size_t a = 0; a < to.size(); ++a) {
    const i64 last = before[a] + (to[a] - 1) * m.step[a];
    if (std::min(before[a], last) < 0 || std::max(before[a], last) >= shape_[a])
      throw Error("view", "an index leaves the tensor for these sizes");
    for (Term& t : terms_) {
      if (t.along[a].empty()) continue;
      Integers next(static_cast<std::size_t>(to[a]));
      for (std::size_t i = 0; i < next.size(); ++i) next[i] = t.along[a][before[a] + static_cast<i64>(i) * m.step[a]];
      t.along[a] = std::move(next);
    }
  }
}

void Access::pad(const Integers& before, const Integers& to) {
  for (std::size_t a = 0; a < to.size(); ++a) {
    if (before[a] == 0 && to[a] == shape_[a]) continue;
    Term outside{{0, kOutside}, std::vector<Integers>(to.size())};
    outside.along[a].resize(static_cast<std::size_t>(to[a]));
    for (i64 i = 0; i < to[a]; ++i) outside.along[a][i] = i < before[a] || i - before[a] >= shape_[a];
    for (Term& t : terms_) {
      if (t.along[a].empty()) continue;
      Integers next(static_cast<std::size_t>(to[a]), t.along[a][0]);
      for (i64 i = std::max<i64>(before[a], 0); i < std::min(to[a], shape_[a] + before[a]); ++i)
        next[i] = t.along[a][i - before[a]];
      t.along[a] = std::move(next);
    }
    terms_.push_back(std::move(outside));
  }
}

// The axis becomes the number of windows; a new last axis runs inside the window.
void Access::unfold(const Move& m, const Integers& to) {
  const auto axis = static_cast<std::size_t>(m.axes[0]);
  const i64 windows = to[axis], size = to.back(), stride = m.step[0], dilation = m.step[1];
  if (count(to) == 0) {
    terms_.clear();
    return;
  }
  if ((windows - 1) * stride + (size - 1) * dilation >= shape_[axis])
    throw Error("view", "an index leaves the tensor for these sizes");
  const auto is_sum = [&](const Integers& g) {
    for (i64 i = 0; i < windows; ++i)
      for (i64 j = 0; j < size; ++j)
        if (g[i * stride + j * dilation] != g[i * stride] + g[j * dilation] - g[0]) return false;
    return true;
  };
  for (Term& t : terms_) {
    if (t.along[axis].empty() || is_sum(t.along[axis])) continue;
    if (std::count_if(t.along.begin(), t.along.end(), [](const Integers& g) { return !g.empty(); }) > 1) {
      flatten();
      return unfold(m, to);
    }
    Integers table;
    for (i64 g : t.along[axis]) table.push_back(t.table[t.start + g]);
    t = {std::move(table), std::vector<Integers>(shape_.size())};
    t.along[axis] = counted(shape_[axis]);
  }
  for (Term& t : terms_) {
    Integers& inside = t.along.emplace_back();
    Integers& along = t.along[axis];
    if (along.empty()) continue;
    for (i64 j = 0; j < size; ++j) inside.push_back(along[j * dilation] - along[0]);
    Integers next;
    for (i64 i = 0; i < windows; ++i) next.push_back(along[i * stride]);
    along = std::move(next);
  }
}

void Access::reshape(const Integers& to) {
  if (count(to) == 0) return terms_.clear();
  std::vector<Term> all;  // terms_ keep the old shape until all are converted
  for (const Term& t : terms_) {
    auto next = regroup(t, to);
    if (!next) {
      flatten();
      all = {*regroup(terms_[0], to)};  // a single term over all elements fits every shape
      break;
    }
    all.push_back(std::move(*next));
  }
  terms_ = std::move(all);
}

// Converts a term to the axes of another shape; nullopt if a table shared with other axes would have to be split.
std::optional<Access::Term> Access::regroup(const Term& t, const Integers& to) const {
  Term next{t.table, {}, t.start};
  for (const Group& g : groups(shape_, to)) {
    Integers all{0};  // the group's axes flattened into one
    bool matters = false, alone = true;
    for (std::size_t a = 0; a < shape_.size(); ++a) {
      const Integers& along = t.along[a];
      if (a < g.from || a >= g.from_end) {
        alone = alone && along.empty();
        continue;
      }
      matters = matters || !along.empty();
      if (!matters) continue;
      Integers longer;
      const auto n = static_cast<std::size_t>(shape_[a]);
      for (i64 before : all)
        for (std::size_t i = 0; i < n; ++i) longer.push_back(before + (along.empty() ? 0 : along[i]));
      all = std::move(longer);
    }
    const Integers extents(to.begin() + static_cast<std::ptrdiff_t>(g.to),
                           to.begin() + static_cast<std::ptrdiff_t>(g.to_end));
    if (!matters) {
      next.along.resize(next.along.size() + extents.size());
      continue;
    }
    while (static_cast<i64>(all.size()) < count(extents)) {  // repeat along leading axes without effect
      const std::size_t n = all.size();
      all.resize(static_cast<std::size_t>(count(extents)));
      for (std::size_t i = n; i < all.size(); ++i) all[i] = all[i % n];
    }
    auto parts = split(all, extents);
    if (!parts) {
      if (!alone) return std::nullopt;
      next.table.clear();
      for (i64 m : all) next.table.push_back(t.table[t.start + m]);
      next.start = 0;
      parts = split(counted(static_cast<i64>(all.size())), extents);
    } else {
      next.start += all[0];
    }
    for (Integers& p : *parts) next.along.push_back(std::move(p));
  }
  return next;
}

void Access::fold() {
  std::vector<Term> folded, shared;
  std::vector<Integers> axes(shape_.size());
  for (Term& t : terms_) {
    for (Integers& g : t.along)
      if (!g.empty() && std::all_of(g.begin(), g.end(), [&](i64 v) { return v == g[0]; })) {
        t.start += g[0];
        g.clear();
      }
    const auto matters = [](const Integers& g) { return !g.empty(); };
    const auto n = std::count_if(t.along.begin(), t.along.end(), matters);
    if (n > 1) {
      shared.push_back(std::move(t));
    } else if (n == 0) {
      if (count(shape_) > 0) offset_ += t.table[t.start];
    } else {
      const auto a = static_cast<std::size_t>(std::find_if(t.along.begin(), t.along.end(), matters) - t.along.begin());
      axes[a].resize(t.along[a].size(), 0);
      for (std::size_t i = 0; i < axes[a].size(); ++i) axes[a][i] += t.table[t.start + t.along[a][i]];
    }
  }
  for (std::size_t a = 0; a < axes.size(); ++a) {
    if (axes[a].empty()) continue;
    Term& t = folded.emplace_back(Term{std::move(axes[a]), std::vector<Integers>(shape_.size())});
    t.along[a] = counted(static_cast<i64>(t.table.size()));
  }
  for (Term& t : shared) folded.push_back(std::move(t));
  terms_ = std::move(folded);
}

void Access::flatten() {
  Term all{positions(), {}};
  for (i64& p : all.table)
    if (p < 0) p = kOutside;
  const Integers step = strides(shape_);
  for (std::size_t a = 0; a < shape_.size(); ++a) all.along.push_back(counted(shape_[a], step[a]));
  terms_.clear();
  terms_.push_back(std::move(all));
  offset_ = 0;
}

bool Access::follows(std::size_t axis) const {
  return std::any_of(terms_.begin(), terms_.end(), [&](const Term& t) { return !t.along[axis].empty(); });
}
bool Access::shares(std::size_t a, std::size_t b) const {
  return std::any_of(terms_.begin(), terms_.end(),
                     [&](const Term& t) { return !t.along[a].empty() && !t.along[b].empty(); });
}

Integers Access::positions() const {
  Integers p(static_cast<std::size_t>(count(shape_)));
  if (p.empty()) return p;
  if (shape_.empty()) {
    p[0] = offset_;
    for (const Term& t : terms_) p[0] += t.table[t.start];
    return p;
  }
  const std::size_t last = shape_.size() - 1;
  Integers index(shape_.size(), 0);
  const i64 n = shape_[last];
  for (std::size_t at = 0; at < p.size(); at += static_cast<std::size_t>(n)) {
    plane(index, last, kNone, 0, 1, p.data() + at);
    for (std::size_t i = last; i-- > 0;) {
      if (++index[i] < shape_[i]) break;
      index[i] = 0;
    }
  }
  return p;
}

void Access::plane(std::span<const i64> index, std::size_t a, std::size_t b, i64 from, i64 to, i64* p) const {
  const i64 rows = shape_[a], columns = to - from;
  std::fill(p, p + rows * columns, offset_);
  for (const Term& t : terms_) {
    i64 at = t.start;
    for (std::size_t i = 0; i < shape_.size(); ++i)
      if (i != a && i != b && !t.along[i].empty()) at += t.along[i][index[i]];
    const i64* down = t.along[a].empty() ? nullptr : t.along[a].data();
    const i64* across = b == kNone || t.along[b].empty() ? nullptr : t.along[b].data() + from;
    const i64* table = t.table.data() + at;
    if (!down && !across) {
      for (i64 i = 0; i < rows * columns; ++i) p[i] += *table;
      continue;
    }
    for (i64 k = 0; k < rows; ++k)
      for (i64 j = 0; j < columns; ++j) p[k * columns + j] += table[(down ? down[k] : 0) + (across ? across[j] : 0)];
  }
}

}  // namespace lc
