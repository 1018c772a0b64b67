// argsort: the indices that sort an axis, stable, NaN last (torch.argsort).
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "lightcone/composites/internal.h"
#include "lightcone/core/op_eval.h"

namespace lc {
namespace {

using namespace prim;
using namespace definitions;

std::vector<TensorType> infer_argsort(const Attributes& a, OperandTypes in) {
  axis_exists(axis_of(a), in[0].shape);
  return {{DType::I64, in[0].shape}};
}

// Computes the stable rank of each element in its row, then inverts that permutation.
std::vector<Tensor> define_argsort(const Attributes& a, std::span<const Tensor> in) {
  const int axis = axis_of(a);
  const bool descending = a.integer("descending") != 0;
  const Dim len = in[0].extent(axis);
  Tensor x = in[0].unsqueeze(axis + 1), y = in[0].unsqueeze(axis);  // [.., i, j, ..]
  Shape s = x.shape();
  s[axis + 1] = len;
  x = x.expand(s);
  y = y.expand(s);
  const auto less = [](const Tensor& u, const Tensor& v) {
    if (!is_float(u.dtype())) return less_than(u, v);
    return or_(less_than(u, v), and_(is_nan(v), not_(is_nan(u))));
  };
  const Tensor below = descending ? less(x, y) : less(y, x), above = descending ? less(y, x) : less(x, y);
  const Tensor i = index_of(x, axis, DType::I64), j = index_of(x, axis + 1, DType::I64);
  const Tensor first = or_(below, and_(and_(not_(below), not_(above)), less_than(j, i)));
  const Tensor rank = sum_reduce(cast(first, DType::I64), axis + 1);
  const Tensor hit = hits(rank, axis, len);
  return {sum_reduce(mul(cast(hit, DType::I64), index_of(hit, axis, DType::I64)), axis)};
}

// Marks positions of a sorted row as unknown if elements before and after them may exchange.
void mark_ties(const Value& in, const AxisView& rows, i64 o, i64 i, std::span<const i64> order, bool descending,
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
  // Largest bound so far and smallest bound to come, for exact elements (ties keep their order) and for inexact ones (a
  // tie already counts). NaN: there are none.
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

Value evaluate_argsort(const Evaluation& e) {
  const Node& n = e.node;
  const Value& in = *e.in[0];
  Value out = make_value(DType::I64, in.shape);
  if (!in.shift.empty()) out.shift.resize(out.size());
  const AxisView rows(in.shape, axis_of(n.attributes));
  const bool descending = n.attributes.integer("descending") != 0;
  std::vector<i64> order(static_cast<std::size_t>(rows.length));
  for (i64 o = 0; o < rows.outer; ++o)
    for (i64 i = 0; i < rows.inner; ++i) {
      std::iota(order.begin(), order.end(), 0);
      const auto less = [&](i64 a, i64 b) {
        const std::size_t p = rows.at(o, descending ? b : a, i), q = rows.at(o, descending ? a : b, i);
        if (!is_float(in.dtype)) return on_integers(Op::LessThan, in.dtype)(in.i[p], in.i[q], 0) != 0;
        if (std::isnan(in.f[q])) return !std::isnan(in.f[p]);
        return in.f[p] < in.f[q];
      };
      std::stable_sort(order.begin(), order.end(), less);
      for (i64 k = 0; k < rows.length; ++k) out.i[rows.at(o, k, i)] = order[k];
      if (!in.shift.empty()) mark_ties(in, rows, o, i, order, descending, out);
    }
  return out;
}

}  // namespace

namespace builtin {
const CompositeRef& argsort() {
  static const CompositeRef c = std::make_shared<const Composite>(Composite{.name = "argsort",
                                                                            .arity = 1,
                                                                            .infer = infer_argsort,
                                                                            .define = define_argsort,
                                                                            .reference = reference(evaluate_argsort),
                                                                            .vjp = no_vjp});
  return c;
}
}  // namespace builtin

namespace prim {
Tensor argsort(Operand a, int axis, bool descending) {
  return along(builtin::argsort(), {a}, a, axis, {{"descending", std::int64_t{descending}}});
}
}  // namespace prim

}  // namespace lc
