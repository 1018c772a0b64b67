#include "lightcone/stablehlo/write/reading.h"

#include <algorithm>
#include <cstdlib>
#include <set>

#include "lightcone/codegen/symbols.h"
#include "lightcone/lowering/factors.h"

namespace lc::stablehlo {
namespace {

using i64 = std::int64_t;

// ---- splitting loops -------------------------------------------------------------------------------------------

struct Part {
  std::size_t loop;
  i64 unit;
};

class Cutter {
 public:
  Cutter(SizeTable& sizes, const Loops& loops) : sizes_(sizes), loops_(loops), cuts_(loops.size()) {}

  // Collects the positions where loops must be split for / and % in this expression to disappear.
  void look_at(const Dim& d) {
    for (const Dim::Term& t : d.terms())
      for (const Dim::Atom* f : t.factors) {
        if (f->kind == Dim::Kind::Symbol) continue;
        const auto by = f->b.constant();
        if (by && (f->kind == Dim::Kind::Div || f->kind == Dim::Kind::Mod))
          for (const Dim::Term& inner : f->a.terms()) cut(inner, *by);
        look_at(f->a), look_at(f->b);
      }
  }
  bool any() const {
    return std::ranges::any_of(cuts_, [](const auto& c) { return !c.empty(); });
  }
  // Returns the split loops; `now` gets the value of each original loop. Returns nullopt if splits do not divide one
  // another.
  std::optional<Loops> parts(int& made, std::vector<Dim>& now) const {
    Loops all;
    for (std::size_t k = 0; k < loops_.size(); ++k) {
      std::vector<i64> units(cuts_[k].rbegin(), cuts_[k].rend());
      units.push_back(1);
      if (units.size() == 1) {
        all.symbols.push_back(loops_.symbols[k]), all.extents.push_back(loops_.extents[k]);
        all.from.push_back(loops_.from[k]);
        now.push_back(loops_.symbols[k]);
        continue;
      }
      Dim whole = 0, outer = sizes_.dim(loops_.extents[k]);
      for (const i64 unit : units) {
        if (!(outer % Dim(unit) == Dim(0)) || made >= codegen::kExportParts.count) return std::nullopt;
        const Dim extent = outer / Dim(unit);
        all.extents.push_back(sizes_.of(extent));
        all.symbols.push_back(Dim::index(codegen::kExportParts[made++], extent));
        all.from.push_back(loops_.from[k]);
        whole = whole + all.symbols.back() * Dim(unit);
        outer = unit;
      }
      now.push_back(whole);
    }
    return all;
  }

 private:
  // Returns the loop that the atom divides, or of which it is a remainder, and the divisor.
  std::optional<Part> part_of(const Dim::Atom& a) const {
    if (a.kind == Dim::Kind::Symbol) {
      for (std::size_t k = 0; k < loops_.size(); ++k)
        if (loops_.symbols[k].name() == a.name) return Part{k, 1};
      return std::nullopt;
    }
    if (a.kind != Dim::Kind::Div && a.kind != Dim::Kind::Mod) return std::nullopt;
    const auto by = a.b.constant();
    const auto& terms = a.a.terms();
    if (!by || a.a.offset() != 0 || terms.size() != 1 || terms[0].coefficient != 1 || terms[0].factors.size() != 1)
      return std::nullopt;
    const auto inner = part_of(*terms[0].factors[0]);
    if (!inner) return std::nullopt;
    return Part{inner->loop, a.kind == Dim::Kind::Div ? inner->unit * *by : inner->unit};
  }
  void cut(const Dim::Term& term, i64 by) {
    const auto part = term.factors.size() == 1 ? part_of(*term.factors[0]) : std::nullopt;
    const i64 step = std::abs(term.coefficient);
    if (!part || step == 0 || by % step != 0) return;
    const i64 unit = part->unit * (by / step);
    const i64 extent = loops_.extents[part->loop];
    if (unit > 1 && (is_open(extent) || unit < extent)) cuts_[part->loop].insert(unit);
  }

  SizeTable& sizes_;
  const Loops& loops_;
  std::vector<std::set<i64>> cuts_;
};

// Returns the extent of a loop.
Dim extent_of(const Dim& symbol) { return symbol.terms()[0].factors[0]->a; }

Loops given(SizeTable& sizes, const std::vector<Dim>& symbols) {
  Loops l;
  for (std::size_t k = 0; k < symbols.size(); ++k)
    if (symbols[k].name()) {
      l.symbols.push_back(symbols[k]);
      l.extents.push_back(sizes.of(extent_of(symbols[k])));
      l.from.push_back(k);
    }
  return l;
}

// Splits loops until no split can remove a / or % from the indices.
std::optional<Loops> cut_loops(SizeTable& sizes, Loops loops, std::vector<View::Position>& at) {
  int made = 0;
  for (int round = 0; round < 4; ++round) {
    Cutter cutter(sizes, loops);
    for (const View::Position& p : at) {
      for (const Dim& d : p.index) cutter.look_at(d);
      cutter.look_at(p.valid);
    }
    if (!cutter.any()) break;
    std::vector<Dim> now;
    auto parts = cutter.parts(made, now);
    if (!parts) return std::nullopt;
    const auto in_parts = [&](const std::string& name) -> std::optional<Dim> {
      for (std::size_t k = 0; k < loops.size(); ++k)
        if (loops.symbols[k].name() == name) return now[k];
      return std::nullopt;
    };
    for (View::Position& p : at) {
      for (Dim& d : p.index) d = d.substitute(in_parts);
      p.valid = p.valid.substitute(in_parts);
    }
    loops = std::move(*parts);
  }
  return loops;
}

// ---- sums of steps ---------------------------------------------------------------------------------------------

struct Steps {
  i64 offset;
  Sizes step;
};
std::optional<Steps> steps(const Dim& d, const Loops& loops) {
  const auto l = lowering::linear(d, loops.symbols);
  if (!l || !l->offset.constant()) return std::nullopt;
  Steps s{*l->offset.constant(), {}};
  for (const Dim& stride : l->strides) {
    if (!stride.constant()) return std::nullopt;
    s.step.push_back(*stride.constant());
  }
  return s;
}

bool is_zero(const Sizes& s) {
  return std::ranges::all_of(s, [](i64 v) { return v == 0; });
}

// A loop along which the operand does not move, and outside of whose [lo, hi) only padding is read.
struct Mask {
  std::size_t loop;
  i64 lo, hi;
};

// Adds the bound f >= 0 on what is read: an end of an axis, or of a loop.
bool bound(const Steps& f, const Loops& loops, Reading& r, std::vector<Mask>& masks) {
  if (is_zero(f.step)) {
    r.nothing = r.nothing || f.offset < 0;
    return true;
  }
  Sizes back;
  for (const i64 s : f.step) back.push_back(-s);
  for (AxisReading& a : r.axes) {
    if (a.windows && a.step == f.step && a.offset <= f.offset) return true;  // low padding
    if (is_open(a.extent)) continue;
    if (a.step == f.step) return a.lo = std::max(a.lo, a.offset - f.offset), true;
    if (a.step == back) return a.hi = std::min(a.hi, a.offset + f.offset + 1), true;
  }
  std::optional<std::size_t> loop;
  for (std::size_t k = 0; k < loops.size(); ++k) {
    if (f.step[k] == 0) continue;
    if (loop || std::abs(f.step[k]) != 1) return false;
    loop = k;
  }
  if (is_open(loops.extents[*loop])) return false;
  for (const AxisReading& a : r.axes)
    if (a.step[*loop] != 0) return false;
  auto mask = std::ranges::find(masks, *loop, &Mask::loop);
  if (mask == masks.end()) mask = masks.insert(mask, {*loop, 0, loops.extents[*loop]});
  if (f.step[*loop] > 0) mask->lo = std::max(mask->lo, -f.offset);
  else mask->hi = std::min(mask->hi, f.offset + 1);
  return true;
}

// Whether f >= 0 says that an open axis ends, index < extent, or less than that.
bool ends_open_axis(const Dim& f, const View::Position& p, const Shape& base, const Reading& r) {
  for (std::size_t i = 0; i < base.size(); ++i)
    if (r.axes[i].windows && (f - (base[i] - p.index[i] - 1)).constant().value_or(-1) >= 0) return true;
  return false;
}

// Adds the conditions of padding: a product of comparisons.
bool bounds(const View::Position& p, const Shape& base, const Loops& loops, Reading& r) {
  const Dim& valid = p.valid;
  if (valid == Dim(1)) return true;
  if (valid == Dim(0)) return r.nothing = true;
  if (valid.offset() != 0 || valid.terms().size() != 1 || valid.terms()[0].coefficient != 1) return false;
  std::vector<Mask> masks;
  for (const Dim::Atom* a : valid.terms()[0].factors) {
    if (a->kind != Dim::Kind::Less) return false;
    if (ends_open_axis(a->b - a->a - 1, p, base, r)) continue;
    const auto f = steps(a->b - a->a - 1, loops);
    if (!f || !bound(*f, loops, r, masks)) return false;
  }
  for (const Mask& m : masks) {
    if (m.hi <= m.lo) return r.nothing = true;
    AxisReading a{m.hi - m.lo, -m.lo, Sizes(loops.size(), 0), 0, m.hi - m.lo};
    a.step[m.loop] = 1;
    r.axes.push_back(std::move(a));
    ++r.repeated;
  }
  return true;
}

// Returns true if the loops read each element of the axis once, in order.
bool reads_whole(SizeTable& sizes, const AxisReading& a, const Loops& loops) {
  Dim reach = 1;
  const auto by = a.loops();
  for (std::size_t k = by.size(); k-- > 0;) {
    if (!(reach == Dim(a.step[by[k]]))) return false;
    reach = reach * sizes.dim(loops.extents[by[k]]);
  }
  return a.offset == 0 && reach == sizes.dim(a.extent);
}

// Whether an open axis is read at step * place + dilation * tap - padding.
bool reads_windows(const SizeTable& sizes, const AxisReading& a, const Loops& loops) {
  const auto by = a.loops();
  if (!sizes.open_windows || by.size() != 2 || a.offset > 0) return false;
  const auto open = std::ranges::count_if(by, [&](std::size_t k) { return is_open(loops.extents[k]); });
  return open == 1 && a.step[by[0]] > 0 && a.step[by[1]] > 0;
}

std::optional<Reading> reading_of(SizeTable& sizes, const View::Position& p, const Shape& base, const Loops& loops) {
  Reading r;
  for (std::size_t i = 0; i < base.size(); ++i) {
    const i64 extent = sizes.of(base[i]);
    const auto s = steps(p.index[i], loops);
    if (!s) return std::nullopt;
    r.axes.push_back({extent, s->offset, s->step, 0, extent});
    AxisReading& a = r.axes.back();
    const bool open =
        is_open(extent) || std::ranges::any_of(a.loops(), [&](std::size_t k) { return is_open(loops.extents[k]); });
    if (!open || reads_whole(sizes, a, loops)) continue;
    a.windows = is_open(extent) && reads_windows(sizes, a, loops);
    if (!a.windows) return std::nullopt;
  }
  if (!bounds(p, base, loops, r)) return std::nullopt;
  return r;
}

}  // namespace

std::vector<std::size_t> AxisReading::loops() const {
  std::vector<std::size_t> all;
  for (std::size_t k = 0; k < step.size(); ++k)
    if (step[k] != 0) all.push_back(k);
  std::ranges::stable_sort(all, [&](std::size_t a, std::size_t b) { return std::abs(step[a]) > std::abs(step[b]); });
  return all;
}

std::vector<std::size_t> Reading::loops() const {
  std::vector<std::size_t> all;
  for (const AxisReading& a : axes)
    for (const std::size_t k : a.loops()) all.push_back(k);
  return all;
}

std::optional<Readings> read_in_loops(SizeTable& sizes, const std::vector<Dim>& symbols, std::vector<View::Position> at,
                                      std::span<const Shape> bases) {
  auto loops = cut_loops(sizes, given(sizes, symbols), at);
  if (!loops) return std::nullopt;
  Readings all{std::move(*loops), {}};
  for (std::size_t k = 0; k < at.size(); ++k) {
    auto r = reading_of(sizes, at[k], bases[k], all.loops);
    if (!r) return std::nullopt;
    all.operands.push_back(std::move(*r));
  }
  return all;
}

bool is_plain(const AxisReading& axis, const Loops& loops) {
  const auto by = axis.loops();
  if (is_open(axis.extent)) return !axis.windows;  // it is read whole
  for (std::size_t k = 0; k + 1 < by.size(); ++k) {
    const i64 outer = std::abs(axis.step[by[k]]), inner = std::abs(axis.step[by[k + 1]]);
    if (outer % inner != 0 || outer / inner < loops.extents[by[k + 1]]) return false;
  }
  return true;
}

bool is_plain(const Reading& reading, const Loops& loops) {
  auto all = reading.loops();
  std::ranges::sort(all);
  return std::ranges::adjacent_find(all) == all.end() &&
         std::ranges::all_of(reading.axes, [&](const AxisReading& a) { return is_plain(a, loops); });
}

// ---- placing ---------------------------------------------------------------------------------------------------

Inside inside(const AxisReading& a, i64 start, i64 end) {
  const i64 hi = std::max<i64>(0, std::min(a.hi, a.extent)), lo = std::clamp<i64>(a.lo, 0, hi);
  Inside in{std::clamp(start, lo, hi), 0, 0, 0};
  in.end = std::clamp(end, in.begin, hi);
  if (in.begin == in.end) in.low = end - start;
  else in.low = in.begin - start, in.high = end - in.end;
  return in;
}

namespace {

// The operations on one axis, in this order: slice, pad, take every step-th element, split, slice each part, reverse
// some.
struct AxisPlan {
  i64 begin = 0, end = 0, low = 0, high = 0, step = 1;
  Sizes split, kept;
  std::vector<Placed::Item> items;
  std::vector<bool> reversed;
};

// Returns the plan for an open axis, which is only split.
AxisPlan plan_of_whole(const AxisReading& a, const Loops& loops) {
  AxisPlan p;
  p.end = a.extent;
  for (const std::size_t k : a.loops()) {
    p.split.push_back(loops.extents[k]);
    p.items.push_back({false, k});
    p.reversed.push_back(false);
  }
  p.kept = p.split;
  return p;
}

AxisPlan plan_of(const AxisReading& a, const Loops& loops) {
  if (is_open(a.extent)) return plan_of_whole(a, loops);
  AxisPlan p;
  const auto by = a.loops();
  i64 start = a.offset, count = 1;
  for (std::size_t k = 0; k < by.size(); ++k) {
    const i64 step = a.step[by[k]], n = loops.extents[by[k]];
    if (step < 0) start += step * (n - 1);
    p.split.push_back(k == 0 ? n : std::abs(a.step[by[k - 1]] / step));
    p.kept.push_back(n);
    p.items.push_back({false, by[k]});
    p.reversed.push_back(step < 0);
    count *= p.split.back();
  }
  if (!by.empty()) p.step = std::abs(a.step[by.back()]);
  const i64 want = start + p.step * (count - 1) + 1;  // elements after the last one read do not matter
  const Inside in = inside(a, start, want);
  p.begin = in.begin, p.end = in.end, p.low = in.low, p.high = in.high;
  return p;
}

// Returns the plan for a window's axis, which is never open.
AxisPlan plan_of(const Kept& k) {
  const i64 extent = k.end - k.begin + k.low + k.high;
  return {.begin = k.begin,
          .end = k.end,
          .low = k.low,
          .high = k.high,
          .split = {extent},
          .kept = {extent},
          .items = {{true, k.axis}},
          .reversed = {false}};
}

ValueId cut_and_pad(Builder& b, ValueId x, const std::vector<AxisPlan>& plans) {
  Sizes begin, end, low, high, step, padded;
  bool pads = false;
  for (const AxisPlan& p : plans) {
    begin.push_back(p.begin), end.push_back(p.end), low.push_back(p.low), high.push_back(p.high);
    step.push_back(p.step), padded.push_back(is_open(p.end) ? p.end : p.end - p.begin + p.low + p.high);
    pads = pads || p.low > 0 || p.high > 0;
  }
  if (!pads) return b.slice(x, begin, end, step);
  const Sizes none(plans.size(), 0), ones(plans.size(), 1);
  x = b.slice(x, begin, end, ones);
  x = b.pad(x, b.splat(b.element(x), {}, 0), low, high);
  return b.slice(x, none, padded, step);
}

}  // namespace

Placed place(Builder& b, ValueId x, const Reading& r, const Loops& loops, std::span<const Kept> kept) {
  if (r.repeated > 0) {
    Sizes to;
    std::vector<std::size_t> axes;
    for (const AxisReading& a : r.axes) to.push_back(a.extent);
    for (std::size_t i = 0; i + r.repeated < to.size(); ++i) axes.push_back(i);
    x = b.broadcast(x, to, axes);
  }
  std::vector<AxisPlan> plans;
  for (std::size_t i = 0; i < r.axes.size(); ++i) {
    const auto k = std::ranges::find(kept, i, &Kept::axis);
    plans.push_back(k == kept.end() ? plan_of(r.axes[i], loops) : plan_of(*k));
  }
  Placed p;
  Sizes split, extents;
  std::vector<std::size_t> reversed;
  for (const AxisPlan& a : plans)
    for (std::size_t k = 0; k < a.items.size(); ++k) {
      if (a.reversed[k]) reversed.push_back(p.items.size());
      p.items.push_back(a.items[k]);
      split.push_back(a.split[k]), extents.push_back(a.kept[k]);
    }
  p.value = b.reshape(cut_and_pad(b, x, plans), split);
  p.value = b.slice(p.value, Sizes(split.size(), 0), extents, Sizes(split.size(), 1));
  p.value = b.reverse(p.value, reversed);
  return p;
}

ValueId permute_and_broadcast(Builder& b, const Placed& p, const std::vector<Placed::Item>& order, const Loops& loops) {
  std::vector<std::size_t> permutation, axes;
  Sizes to;
  for (const Placed::Item& item : order) {
    const auto at = std::ranges::find(p.items, item);
    if (at != p.items.end()) {
      permutation.push_back(static_cast<std::size_t>(at - p.items.begin()));
      axes.push_back(to.size());
      to.push_back(b.shape(p.value)[permutation.back()]);
    } else {
      to.push_back(loops.extents[item.at]);
    }
  }
  check(permutation.size() == p.items.size(), "an axis of an operand has no place");
  return b.broadcast(b.transpose(p.value, permutation), to, axes);
}

}  // namespace lc::stablehlo
