// Composites that move elements: gather, scatter, sort, block formats.
#include <algorithm>
#include <array>
#include <numeric>

#include "lightcone/core/graph_impl.h"
#include "lightcone/core/quant.h"
#include "lightcone/reference/internal.h"

namespace lc {
namespace {

Shift shift_at(const Value& v, std::size_t k) { return v.shift.empty() ? kNoShift : v.shift[k]; }

// Copies element `from` of a to `to` of b, whatever the dtype.
void copy_element(const Value& a, std::size_t from, Value& b, std::size_t to) {
  if (is_float(b.dtype)) b.f[to] = a.f[from];
  else b.i[to] = a.i[from];
  if (!b.shift.empty()) b.shift[to] = shift_at(a, from);
}

bool sampled(Operands in) {
  return std::any_of(in.begin(), in.end(), [](const Value* v) { return !v->shift.empty(); });
}

Value gather(const Node& n, Operands in, const Ints& shape) {
  Value out = make_value(n.dtype, shape);
  if (sampled(in)) out.shift.resize(out.size());
  const Rows data(in[0]->shape, n.axis), idx(shape, n.axis);
  const auto read = [&](i64 o, i64 j, i64 i) {
    return j >= 0 && j < data.length ? in[0]->at(data.at(o, j, i)) : 0.0;
  };
  idx.each([&](i64 o, i64 k, i64 i) {
    const std::size_t to = idx.at(o, k, i);
    const i64 j = in[1]->i[to];
    if (j >= 0 && j < data.length) copy_element(*in[0], data.at(o, j, i), out, to);
    const Shift moved = shift_at(*in[1], to);
    if (exact(moved)) return;
    for (std::size_t l = 0; l < kSamples; ++l) {  // a sample that reads another place
      if (moved[l] == 0) continue;
      const i64 other = std::isnan(moved[l]) ? 0 : j + std::llround(moved[l]);
      const bool inside = other >= 0 && other < data.length;
      const double more = inside ? shift_at(*in[0], data.at(o, other, i))[l] : 0;
      out.shift[to][l] = std::isnan(moved[l]) ? kNaN : apart(read(o, other, i) + more, out.at(to));
    }
  });
  return out;
}

Value scatter(const Node& n, Operands in, const Way& way) {
  Value out = *in[0];
  const bool adds = n.op == Op::ScatterAdd && is_float(n.dtype);
  if (out.shift.empty() && (sampled(in) || (way.noise && adds))) out.shift.resize(out.size());
  const Rows base(in[0]->shape, n.axis), idx(in[1]->shape, n.axis);
  bool undecided = false;
  idx.each([&](i64 o, i64 k, i64 i) {
    const std::size_t from = idx.at(o, k, i);
    const i64 j = in[1]->i[from];
    undecided = undecided || !exact(shift_at(*in[1], from));
    if (j < 0 || j >= base.length) return;
    const std::size_t to = base.at(o, j, i);
    if (n.op == Op::Scatter) {
      copy_element(*in[2], from, out, to);
    } else if (is_float(n.dtype)) {
      const double term = in[2]->f[from], before = out.f[to];
      out.f[to] = rounded(n.dtype, before + term, way.rounding);
      if (!way.noise) return;
      Shift& s = out.shift[to];
      const Shift t = shift_at(*in[2], from);
      for (std::size_t l = 0; l < kSamples; ++l) s[l] = apart(before + s[l] + (term + t[l]), out.f[to]);
      round_samples(n.dtype, unit_of_sum(n.dtype) * 2, out.f[to], std::fabs(before) + std::fabs(term),
                    way.bits(out.size() + from), s);
    } else {
      out.i[to] = wrapped(n.dtype, eval::add(out.i[to], in[2]->i[from]));
      if (!exact(shift_at(*in[2], from))) out.shift[to] = kUnknown;
    }
  });
  if (undecided) std::fill(out.shift.begin(), out.shift.end(), kUnknown);
  return out;
}

Value slice_scatter(const Node& n, Operands in, const Bindings& env) {
  Value out = *in[0];
  if (sampled(in)) out.shift.resize(out.size());
  const Rows base(in[0]->shape, n.axis), src(in[1]->shape, n.axis);
  const i64 start = n.index.eval(env);
  if (start < 0 || start + src.length > base.length)
    throw Error("slice_scatter", cat("[", start, ", ", start + src.length, ") leaves an axis of ", base.length));
  src.each([&](i64 o, i64 k, i64 i) { copy_element(*in[1], src.at(o, k, i), out, base.at(o, start + k, i)); });
  return out;
}

// Which places of a sorted row are certain: those that nothing on one side can pass to the other.
void mark_ties(const Value& in, const Rows& rows, i64 o, i64 i, std::span<const i64> order, bool descending,
               Value& out) {
  const std::size_t length = order.size();
  const auto bound = [&](std::size_t k, int side) {
    const std::size_t at = rows.at(o, order[k], i);
    const double x = std::isnan(in.at(at)) ? kInf : in.at(at);
    const double far = spread(in.shift[at].data());
    if (std::isinf(far)) return side * kInf;
    return (descending ? -x : x) + side * kReach * far;
  };
  const auto moved = [&](std::size_t k) -> std::size_t { return !exact(in.shift[rows.at(o, order[k], i)]); };
  // The most of what came and the least of what follows, of exact elements, whose ties their places decide, and of
  // others, which may not even tie. NaN: there are none.
  using Pair = std::array<double, 2>;
  std::vector<Pair> least(length + 1, Pair{kNaN, kNaN});
  for (std::size_t k = length; k-- > 0;) {
    least[k] = least[k + 1];
    double& least_now = least[k][moved(k)];
    least_now = std::fmin(least_now, bound(k, -1));
  }
  Pair most{kNaN, kNaN};
  for (std::size_t k = 0, first = 0; k < length; ++k) {
    double& most_now = most[moved(k)];
    most_now = std::fmax(most_now, bound(k, 1));
    const Pair& next = least[k + 1];
    if (most[0] > next[0] || most[0] >= next[1] || most[1] >= next[0] || most[1] >= next[1]) continue;
    for (std::size_t p = first; k > first && p <= k; ++p) out.shift[rows.at(o, static_cast<i64>(p), i)] = kUnknown;
    first = k + 1;
  }
}

Value argsort(const Node& n, const Value& in) {
  Value out = make_value(DType::I64, in.shape);
  if (!in.shift.empty()) out.shift.resize(out.size());
  const Rows rows(in.shape, n.axis);
  std::vector<i64> order(static_cast<std::size_t>(rows.length));
  for (i64 o = 0; o < rows.outer; ++o)
    for (i64 i = 0; i < rows.inner; ++i) {
      std::iota(order.begin(), order.end(), 0);
      const auto less = [&](i64 a, i64 b) {
        const std::size_t p = rows.at(o, n.mode ? b : a, i), q = rows.at(o, n.mode ? a : b, i);
        if (!is_float(in.dtype)) return in.i[p] < in.i[q];
        if (std::isnan(in.f[q])) return !std::isnan(in.f[p]);
        return in.f[p] < in.f[q];
      };
      std::stable_sort(order.begin(), order.end(), less);
      for (i64 k = 0; k < rows.length; ++k) out.i[rows.at(o, k, i)] = order[static_cast<std::size_t>(k)];
      if (!in.shift.empty()) mark_ties(in, rows, o, i, order, n.mode != 0, out);
    }
  return out;
}

Value dequantize(const Node& n, const Value& in, const Ints& shape) {
  const QuantInfo& q = info(static_cast<QuantFormat>(n.mode));
  Value out = make_value(DType::F32, shape);
  for (std::size_t k = 0; k < out.size(); ++k) {
    const auto block = static_cast<i64>(k) / q.elements;
    const i64* p = in.i.data() + block * q.bytes;
    out.f[k] = quant_value(q.format, static_cast<i64>(k) % q.elements, [&](i64 at) { return p[at]; });
  }
  const auto inexact = [](const Shift& s) { return !exact(s); };
  if (std::any_of(in.shift.begin(), in.shift.end(), inexact)) out.shift.assign(out.size(), kUnknown);
  return out;
}

}  // namespace

Value structured(const Node& n, Operands in, const Ints& shape, const Bindings& env, const Way& way) {
  switch (n.op) {
    case Op::Gather: return gather(n, in, shape);
    case Op::Scatter:
    case Op::ScatterAdd: return scatter(n, in, way);
    case Op::SliceScatter: return slice_scatter(n, in, env);
    case Op::ArgSort: return argsort(n, *in[0]);
    default: return dequantize(n, *in[0], shape);
  }
}

}  // namespace lc
