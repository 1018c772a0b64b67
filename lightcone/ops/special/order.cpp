// Order statistics, searches and counts.
#include "lightcone/composites/composites.h"
#include "lightcone/ops/internal.h"
#include "lightcone/ops/special/special.h"

namespace lc {
using namespace detail;
#define LC_SCOPE(name) const OpScope scope(name, a.at)

namespace {

Tensor place(const Tensor& like, int axis) {
  return like.graph().index(like.shape(), Dim::index(axis, like.extent(axis)));
}
Tensor extent_like(const Tensor& like, const Dim& n) { return like.graph().index(like.shape(), n); }
void not_empty(const Operand& a, int axis, const char* op) {
  if (a->extent(axis) == Dim(0)) throw Error(op, str_cat("axis ", axis, " of ", str(a->shape()), " has no elements"));
}
Tensor nans(const Tensor& a, int axis) {  // number of NaNs, i64 with extent 1
  return prim::sum_reduce(prim::cast(isnan(a), DType::I64), axis).unsqueeze(axis);
}
// Returns element `k` (i64, extent 1) of each sorted row and its original index.
Extreme at_rank(const Tensor& a, int axis, const Tensor& order, const Tensor& k, bool keepdim) {
  const Tensor from = prim::gather(order, k, axis), value = prim::gather(a, from, axis);
  if (keepdim) return {value, from};
  return {value.squeeze(axis), from.squeeze(axis)};
}

Extreme middle(const Operand& a, int axis, bool keepdim, bool without_nan) {
  const char* op = without_nan ? "nanmedian" : "median";
  if (is_number(a, axis)) return number_of(middle(Operand(row_of(a), a.at), 0, keepdim, without_nan));
  axis = wrap_axis(axis, a->rank(), a->shape(), op);
  not_empty(a, axis, op);
  const Tensor broken = nans(a, axis), n = extent_like(broken, a->extent(axis));
  const Tensor left = prim::add(n, neg(broken)), zero = full_like(n, 0);
  const auto half = [&](const Tensor& count) {
    return prim::div(prim::maximum(add(count, -1), zero), full_like(count, 2));
  };
  // NaNs sort last: the first of them is at index `left`
  const Tensor k = without_nan ? half(left) : prim::where(prim::less_than(zero, broken), left, half(n));
  return at_rank(a, axis, prim::argsort(a, axis), k, keepdim);
}

// The median of all elements; equal elements split its gradient.
Tensor middle_of_all(const Operand& a, bool without_nan) {
  const Tensor x = a->reshape({product(a->shape())});
  const Tensor y = prim::contiguous(middle(Operand(x, a.at), 0, false, without_nan).values);
  if (!is_float(x.dtype())) return y;
  return with_vjp(y, {x}, [](const VjpCall& c) -> std::vector<Tensor> {
    const Tensor &x = c.x(), y = c.y().reshape({1}).expand(x.shape());
    const Tensor hit = logical_or(prim::equal(x, y), logical_and(isnan(x), isnan(y)));
    const Tensor count = prim::sum_reduce(prim::cast(hit, x.dtype()), 0);
    return {prim::where(hit, prim::div(c.g(), count).reshape({1}).expand(x.shape()), full_like(x, 0))};
  });
}

}  // namespace

Tensor median(Operand a) {
  LC_SCOPE("median");
  return middle_of_all(a, false);
}
Tensor nanmedian(Operand a) {
  LC_SCOPE("nanmedian");
  return middle_of_all(a, true);
}
Extreme median(Operand a, int axis, bool keepdim) {
  LC_SCOPE("median");
  return middle(a, axis, keepdim, false);
}
Extreme nanmedian(Operand a, int axis, bool keepdim) {
  LC_SCOPE("nanmedian");
  return middle(a, axis, keepdim, true);
}
Extreme kthvalue(Operand a, std::int64_t k, int axis, bool keepdim) {
  LC_SCOPE("kthvalue");
  LC_RETURN_IF_NUMBER(a, axis, kthvalue(a, k, 0, keepdim));
  axis = wrap_axis(axis, a->rank(), a->shape(), "kthvalue");
  if (k < 1 || provably_below(a->extent(axis), k))
    throw Error("kthvalue",
                str_cat("k is ", k, ", axis ", axis, " of ", str(a->shape()), " has ", a->extent(axis), " elements"));
  Shape s = a->shape();
  s[axis] = 1;
  const Tensor at = full(a->graph(), s, static_cast<double>(k - 1), DType::I64);
  return at_rank(a, axis, prim::argsort(a, axis), at, keepdim);
}
Extreme mode(Operand a, int axis, bool keepdim) {
  LC_SCOPE("mode");
  LC_RETURN_IF_NUMBER(a, axis, mode(a, 0, keepdim));
  axis = wrap_axis(axis, a->rank(), a->shape(), "mode");
  not_empty(a, axis, "mode");
  // compares each element with every other one of its row
  const Dim n = a->extent(axis);
  Shape s = a->shape();
  s.insert(s.begin() + axis, n);
  const Tensor mine = a->unsqueeze(axis + 1).expand(s), other = a->unsqueeze(axis).expand(s);
  const Tensor count = prim::sum_reduce(prim::cast(prim::equal(mine, other), DType::I64), axis + 1);
  const Tensor most = prim::max_reduce(count, axis).unsqueeze(axis).expand(count.shape());
  const Tensor often = prim::equal(count, most);
  // the smallest of the most frequent values, then its last occurrence
  const Tensor order = prim::argsort(a, axis), rank = prim::argsort(order, axis);
  const Tensor none = extent_like(rank, n);
  const Tensor first = amin(prim::where(often, rank, none), {axis}, true);
  const Tensor value = prim::gather(a, prim::gather(order, first, axis), axis).expand(a->shape());
  const Tensor hit = logical_or(prim::equal(a, value), prim::equal(rank, first.expand(rank.shape())));
  const Tensor last = prim::max_reduce(prim::where(hit, place(rank, axis), full_like(rank, -1)), axis).unsqueeze(axis);
  const Extreme r{prim::gather(a, last, axis), last};
  if (keepdim) return r;
  return {r.values.squeeze(axis), r.indices.squeeze(axis)};
}

namespace {

enum class Between { Linear, Lower, Higher, Nearest, Midpoint };
Between between(std::string_view name, const char* op) {
  if (name == "linear") return Between::Linear;
  if (name == "lower") return Between::Lower;
  if (name == "higher") return Between::Higher;
  if (name == "nearest") return Between::Nearest;
  if (name == "midpoint") return Between::Midpoint;
  throw Error(op, str_cat("interpolation is \"linear\", \"lower\", \"higher\", \"nearest\" or \"midpoint\", not \"",
                          name, "\""));
}

// q is a vector; its axis comes first in the result.
Tensor quantiles(const Tensor& a, const Tensor& q, int axis, bool keepdim, Between how, bool without_nan) {
  // moves the axis to the end, followed by one for q
  const int r = a.rank();
  const Tensor x = movedim(a, axis, -1), sorted_order = prim::argsort(x, r - 1);
  const Tensor sorted = prim::gather(x, sorted_order, r - 1);
  Shape s = x.shape();
  s.back() = q.extent(0);
  const DType type = a.dtype();
  const auto number = [&](const Tensor& t) { return prim::cast(t, type); };
  const Tensor by_q = expand_to(q, s), broken = nans(x, r - 1).expand(s), n = extent_like(broken, x.extent(r - 1));
  const Tensor left = without_nan ? prim::add(n, neg(broken)) : n, zero = full_like(left, 0);
  const Tensor rank = prim::mul(by_q, number(prim::maximum(add(left, -1), zero)));
  const Tensor whole = how == Between::Nearest ? round(rank) : how == Between::Higher ? ceil(rank) : floor(rank);
  const auto at = [&](const Tensor& t) { return prim::gather(sorted, prim::cast(t, DType::I64), r - 1); };
  Tensor y = at(whole);
  if (how == Between::Linear || how == Between::Midpoint) {
    const Tensor above = at(ceil(rank)), distance = prim::add(above, neg(y));
    const Tensor weight = how == Between::Midpoint ? full_like(rank, 0.5) : prim::add(rank, neg(whole));
    const Tensor from_below = prim::add(y, prim::mul(weight, distance));
    const Tensor from_above = prim::add(above, prim::mul(add(weight, -1), distance));
    y = prim::where(prim::less_than(weight, full_like(weight, 0.5)), from_below, from_above);
  }
  const Tensor is_q = logical_and(full_like(by_q, 0) <= by_q, by_q <= full_like(by_q, 1));
  const Tensor some = without_nan ? prim::less_than(zero, left) : prim::equal(broken, zero);
  y = movedim(prim::where(logical_and(is_q, some), y, full_like(y, kNaN)), -1, 0);
  return keepdim ? y.unsqueeze(axis + 1) : y;
}

Tensor quantile_of(const Operand& a, const Tensor& q, std::optional<int> axis, bool keepdim, std::string_view name,
                   bool without_nan) {
  const char* op = without_nan ? "nanquantile" : "quantile";
  const OpScope scope(op, a.at);
  if (axis && is_number(a, *axis)) return quantile_of(a, q, std::nullopt, false, name, without_nan);
  const Between how = between(name, op);
  if (!is_float(a->dtype())) throw Error(op, str_cat("needs a floating type, not ", lc::name(a->dtype())));
  if (q.rank() > 1) throw Error(op, "q has rank 0 or 1, not " + str(q.shape()));
  if (q.dtype() != a->dtype())
    throw Error(op, str_cat("q is ", lc::name(q.dtype()), ", the tensor ", lc::name(a->dtype())));
  const DType half = a->dtype(), exact = is_narrow(half) ? DType::F32 : half;
  const Tensor x = prim::cast(a, exact), row = axis ? x : x.reshape({product(x.shape())});
  const int along = axis ? wrap_axis(*axis, a->rank(), a->shape(), op) : 0;
  not_empty(Operand(row, a.at), along, op);
  Tensor y = quantiles(row, prim::cast(q.rank() ? q : q.reshape({1}), exact), along, keepdim && axis, how, without_nan);
  if (keepdim && !axis) {
    Shape s(static_cast<std::size_t>(a->rank()), 1);
    s.insert(s.begin(), y.extent(0));
    y = y.reshape(s);
  }
  return prim::cast(q.rank() ? y : y.squeeze(0), half);
}

Tensor numbers(const Operand& a, const std::vector<double>& q, const char* op) {
  const OpScope scope(op, a.at);
  std::vector<Tensor> parts;
  for (const double v : q) {
    if (!(v >= 0 && v <= 1)) throw Error(op, str_cat("q is in [0, 1], not ", v));
    parts.push_back(full(a->graph(), {}, v, a->dtype()));
  }
  if (parts.empty()) return full(a->graph(), {0}, 0, a->dtype());
  return stack(parts, 0);
}

}  // namespace

Tensor quantile(Operand a, Operand q, std::optional<int> axis, bool keepdim, std::string_view interpolation) {
  return quantile_of(a, q, axis, keepdim, interpolation, false);
}
Tensor quantile(Operand a, double q, std::optional<int> axis, bool keepdim, std::string_view interpolation) {
  return quantile_of(a, numbers(a, {q}, "quantile").squeeze(0), axis, keepdim, interpolation, false);
}
Tensor quantile(Operand a, const std::vector<double>& q, std::optional<int> axis, bool keepdim,
                std::string_view interpolation) {
  return quantile_of(a, numbers(a, q, "quantile"), axis, keepdim, interpolation, false);
}
Tensor nanquantile(Operand a, Operand q, std::optional<int> axis, bool keepdim, std::string_view interpolation) {
  return quantile_of(a, q, axis, keepdim, interpolation, true);
}
Tensor nanquantile(Operand a, double q, std::optional<int> axis, bool keepdim, std::string_view interpolation) {
  return quantile_of(a, numbers(a, {q}, "nanquantile").squeeze(0), axis, keepdim, interpolation, true);
}

Tensor searchsorted(Operand sorted, Operand values, bool right) {
  const OpScope scope("searchsorted", sorted.at);
  if (sorted->rank() == 0) throw Error("searchsorted", "needs a sorted axis, not a scalar");
  const DType type = promote(sorted->dtype(), values->dtype());
  const Tensor row = prim::cast(sorted, type);
  Tensor v = prim::cast(values, type);
  if (row.rank() == 1) {
    v = v.reshape({product(v.shape())});
  } else {
    Shape x = row.shape(), y = v.shape();
    if (!x.empty() && !y.empty()) x.back() = y.back();
    if (x != y)
      throw Error("searchsorted",
                  str_cat(str(sorted->shape()), " and values ", str(values->shape()), " differ before the last axis"));
  }
  const int axis = row.rank() - 1;
  const Dim n = row.extent(axis);
  // Counts elements before v by binary search, largest steps first. NaN compares false with everything.
  Tensor count = full(v.graph(), v.shape(), 0, DType::I64);
  const Tensor size = v.graph().index(v.shape(), n);
  std::int64_t step = 1;
  while (step * 2 <= n.bounds().hi) step *= 2;
  for (; step > 0 && n.bounds().hi > 0; step /= 2) {
    const Tensor probe = add(count, static_cast<double>(step - 1));
    const Tensor there = prim::gather(row, probe, axis);
    const Tensor behind =
        right ? prim::less_than(v, there) : logical_or(prim::less_than(v, there), prim::equal(v, there));
    const Tensor go = logical_and(prim::less_than(probe, size), logical_not(behind));
    count = prim::where(go, add(count, static_cast<double>(step)), count);
  }
  return count.reshape(values->shape());
}
Tensor bucketize(Operand values, Operand boundaries, bool right) {
  const OpScope scope("bucketize", values.at);
  if (boundaries->rank() != 1) throw Error("bucketize", "the boundaries have rank 1, not " + str(boundaries->shape()));
  return searchsorted(boundaries, values, right);
}
Tensor isin(Operand elements, Operand test_elements, bool invert) {
  const OpScope scope("isin", elements.at);
  const DType type = promote(elements->dtype(), test_elements->dtype());
  const Tensor v = prim::cast(elements, type), flat = v.reshape({product(v.shape())});
  const Tensor among = prim::cast(test_elements, type);
  const Tensor row = sort(among.reshape({product(among.shape())})).values;
  // NaNs, which sort last and equal nothing, are searched as infinity; an index past the end reads 0.
  const Tensor place = searchsorted(is_float(type) ? prim::where(isnan(row), full_like(row, kInf), row) : row, flat);
  const Tensor there = prim::less_than(place, place.graph().index(place.shape(), row.extent(0)));
  const Tensor found = logical_and(there, prim::equal(prim::gather(row, place, 0), flat)).reshape(v.shape());
  return invert ? logical_not(found) : found;
}

Tensor histc(Operand a, std::int64_t bins, double min, double max) {
  LC_SCOPE("histc");
  LC_RETURN_IF_HALF(a, histc(a, bins, min, max));
  if (!is_float(a->dtype())) throw Error("histc", str_cat("needs a floating type, not ", name(a->dtype())));
  if (bins < 1) throw Error("histc", str_cat(bins, " bins"));
  if (!(min <= max)) throw Error("histc", str_cat("from ", min, " to ", max));
  const Tensor x = a->reshape({product(a->shape())});
  Tensor low = full(x.graph(), {1}, min, x.dtype()), high = full(x.graph(), {1}, max, x.dtype());
  if (min == max && !(x.extent(0) == Dim(0))) {
    low = amin(x, {0}, true), high = amax(x, {0}, true);
    const Tensor empty = prim::equal(low, high);
    low = prim::where(empty, add(low, -1), low), high = prim::where(empty, add(high, 1), high);
  }
  const auto wide = [&](const Tensor& t) { return t.expand(x.shape()); };
  const Tensor share = prim::div(full_like(low, static_cast<double>(bins)), prim::add(high, neg(low)));
  const Tensor at = prim::cast(prim::mul(prim::add(x, neg(wide(low))), wide(share)), DType::I64);
  const Tensor inside = logical_and(wide(low) <= x, x <= wide(high));
  const Tensor bin =
      prim::where(inside, prim::minimum(at, full_like(at, static_cast<double>(bins - 1))), full_like(at, -1));
  const Tensor counts = prim::scatter_add(full(x.graph(), {bins}, 0, DType::I64), bin, full_like(bin, 1), 0);
  return prim::cast(counts, x.dtype());
}

namespace {
void check_ids(const Operand& ids, const Dim& length) {
  if (ids->rank() != 1 || is_float(ids->dtype()) || ids->dtype() == DType::Bool)
    throw Error("bincount", str_cat("needs a vector of integers, not ", name(ids->dtype()), " ", str(ids->shape())));
  if (length.bounds().hi < 0) throw Error("bincount", str_cat("a length of ", length));
}
}  // namespace
Tensor bincount(Operand ids, Dim length) {
  const OpScope scope("bincount", ids.at);
  check_ids(ids, length);
  const Tensor at = prim::cast(ids, DType::I64);
  return prim::scatter_add(full(at.graph(), {length}, 0, DType::I64), at, full_like(at, 1), 0);
}
Tensor bincount(Operand ids, Operand weights, Dim length) {
  const OpScope scope("bincount", ids.at);
  check_ids(ids, length);
  if (weights->shape() != ids->shape())
    throw Error("bincount", str_cat("weights ", str(weights->shape()), " for ids ", str(ids->shape())));
  const DType type = weights->dtype() == DType::F32 ? DType::F32 : DType::F64;
  const Tensor at = prim::cast(ids, DType::I64), w = prim::cast(weights, type);
  return prim::scatter_add(full(at.graph(), {length}, 0, type), at, w, 0);
}

}  // namespace lc
