// Rules for reduce: sums, extremes, and any other body, by halving.
#include <algorithm>
#include <array>
#include <numeric>

#include "lightcone/composites/composites.h"
#include "lightcone/ops/special/special.h"
#include "lightcone/stablehlo/read/reader.h"

namespace lc::stablehlo {

std::string simple_reducer(const Block& b) {
  if (b.arguments.size() != 2 || b.operations.empty() || b.operations.size() > 2) return {};
  const Operation& last = b.operations.back();
  if (last.name != "stablehlo.return" || last.operands.size() != 1) return {};
  if (b.operations.size() == 1) return last.operands[0] == b.arguments[1] ? "second" : "";
  const Operation& op = b.operations[0];
  if (op.results.size() != 1 || op.results[0] != last.operands[0] || op.operands.size() != 2) return {};
  const bool in_order = op.operands[0] == b.arguments[0] && op.operands[1] == b.arguments[1];
  const bool swapped = op.operands[0] == b.arguments[1] && op.operands[1] == b.arguments[0];
  constexpr std::array kCommute = {"stablehlo.add", "stablehlo.multiply", "stablehlo.maximum", "stablehlo.minimum",
                                   "stablehlo.and", "stablehlo.or",       "stablehlo.xor"};
  const bool commutes = std::ranges::find(kCommute, op.name) != kCommute.end();
  return (in_order || swapped) && commutes ? op.name : "";
}

namespace {

Tensor over(const Tensor& t, const std::vector<int>& axes, Tensor (*f)(Operand, int)) {
  Tensor r = t;
  std::vector<int> last_first = axes;
  std::ranges::sort(last_first, std::greater());
  for (const int a : last_first) r = f(r, a);
  return r;
}
Tensor product_over(Operand t, int axis) { return prim::cast(prod(t, axis), t->dtype()); }

// Maps values so that their minimum becomes a maximum.
Tensor reversed_order(const Tensor& t) {
  if (t.dtype() == DType::Bool) return logical_not(t);
  return is_float(t.dtype()) ? neg(t) : bitwise_not(t);
}

}  // namespace

Tensor reduced(const std::string& reducer, const Tensor& t, const std::vector<int>& axes) {
  const bool is_bool = t.dtype() == DType::Bool;
  if (reducer == "stablehlo.add" || (is_bool && reducer == "stablehlo.or")) {
    return over(is_narrow(t.dtype()) ? prim::cast(t, DType::F32) : t, axes, prim::sum_reduce);
  }
  if (reducer == "stablehlo.maximum") return over(t, axes, prim::max_reduce);
  if (reducer == "stablehlo.minimum" || (is_bool && (reducer == "stablehlo.and" || reducer == "stablehlo.multiply")))
    return reversed_order(over(reversed_order(t), axes, prim::max_reduce));
  if (reducer == "stablehlo.multiply")
    return over(is_narrow(t.dtype()) ? prim::cast(t, DType::F32) : t, axes, product_over);
  return {};
}

std::vector<Tensor> from_start(Reader& r, const Block& body, const Tensor& start, const Tensor& t) {
  const Node& n = start.node();
  const std::string how = simple_reducer(body);
  // Sums start at 0 and maxima below everything, so such a start value has no effect.
  const bool nothing = n.op == Op::Constant &&
                       ((how == "stablehlo.add" && n.value == 0) || (how == "stablehlo.maximum" && n.value == -kInf) ||
                        (how == "stablehlo.minimum" && n.value == kInf));
  const bool widened = start.dtype() != t.dtype();
  const Tensor from = widened ? prim::cast(start, t.dtype()) : start;
  const Tensor y = nothing ? t : r.elementwise(body, std::vector{to_shape(from, t.shape()), t}, widened)[0];
  return {widened ? prim::cast(y, start.dtype()) : y};
}

namespace {

std::vector<Tensor> fold_axis(Reader& r, const Block& body, std::vector<Tensor> xs, const std::vector<Tensor>& init,
                              int axis, bool widened) {
  const std::int64_t n = *xs[0].extent(axis).constant();
  std::int64_t whole = 1;
  while (whole < n) whole *= 2;
  const auto row = [&](const Tensor& scalar, const Tensor& like, std::int64_t length) {
    Shape s = like.shape();
    s[axis] = length;
    return to_shape(scalar, s);
  };
  // The start value has no effect on the result, so it pads the length to a power of two.
  for (std::size_t k = 0; k < xs.size(); ++k)
    if (n == 0) xs[k] = row(init[k], xs[k], 1);
    else if (whole > n) xs[k] = cat({xs[k], row(init[k], xs[k], whole - n)}, axis);
  for (std::int64_t half = whole / 2; half > 0; half /= 2) {
    std::vector<Tensor> pairs;
    for (const Tensor& x : xs) pairs.push_back(x.slice(axis, 0, half));
    for (const Tensor& x : xs) pairs.push_back(x.slice(axis, half, 2 * half));
    xs = r.elementwise(body, pairs, widened);
  }
  std::vector<Tensor> with_start;
  for (std::size_t k = 0; k < xs.size(); ++k) with_start.push_back(row(init[k], xs[k], 1));
  with_start.insert(with_start.end(), xs.begin(), xs.end());
  xs = r.elementwise(body, with_start, widened);
  for (Tensor& x : xs) x = x.squeeze(axis);
  return xs;
}

}  // namespace

// Halves are folded in f32 and rounded once, like sums of them.
std::vector<Tensor> fold(Reader& r, const Block& body, std::vector<Tensor> xs, std::vector<Tensor> init,
                         std::span<const int> axes) {
  std::vector<DType> types;
  for (const Tensor& x : xs) types.push_back(x.dtype());
  const bool widened = !axes.empty() && std::ranges::any_of(types, [](DType t) { return is_narrow(t); });
  for (std::size_t k = 0; k < xs.size(); ++k)
    if (widened && is_narrow(types[k]))
      xs[k] = prim::cast(xs[k], DType::F32), init[k] = prim::cast(init[k], DType::F32);
  for (const int a : axes) xs = fold_axis(r, body, xs, init, a, widened);
  for (std::size_t k = 0; k < xs.size(); ++k)
    if (xs[k].dtype() != types[k]) xs[k] = prim::cast(xs[k], types[k]);
  return xs;
}

namespace {

std::vector<Tensor> reduce(const Call& c) {
  const std::size_t n = c.in.size() / 2;
  if (n == 0 || c.in.size() != 2 * n) c.refuse("needs a start value for each operand");
  const Block& body = c.region(0, 2 * n, n);
  std::vector<int> axes;
  for (const std::int64_t d : c.integers("dimensions")) {
    if (d < 0 || d >= c.x().rank() || std::ranges::find(axes, static_cast<int>(d)) != axes.end())
      c.refuse(str_cat("there is no axis ", d, ", or it is there twice"));
    axes.push_back(static_cast<int>(d));
  }
  std::vector<Tensor> xs(c.in.begin(), c.in.begin() + static_cast<std::ptrdiff_t>(n)),
      init(c.in.begin() + static_cast<std::ptrdiff_t>(n), c.in.end());
  for (std::size_t k = 0; k < n; ++k)
    if (init[k].rank() != 0 || init[k].dtype() != xs[k].dtype() || !(xs[k].shape() == xs[0].shape()))
      c.refuse("operands and start values do not fit");
  if (const std::string reducer = simple_reducer(body); n == 1 && !reducer.empty() && reducer != "second")
    if (const Tensor t = reduced(reducer, xs[0], axes); t.defined()) return from_start(c.reader, body, init[0], t);
  std::ranges::sort(axes, std::greater());
  xs = fold(c.reader, body, xs, init, axes);
  if (axes.empty()) {
    std::vector<Tensor> pairs;
    for (std::size_t k = 0; k < n; ++k) pairs.push_back(to_shape(init[k], xs[k].shape()));
    pairs.insert(pairs.end(), xs.begin(), xs.end());
    return c.reader.elementwise(body, pairs);
  }
  return xs;
}

// Applies a body for scalars to whole tensors.
std::vector<Tensor> map(const Call& c) {
  for (const Tensor& t : c.in)
    if (!(t.shape() == c.x().shape())) c.refuse("operands have different shapes");
  return c.reader.elementwise(c.region(0, c.in.size(), 1), c.in);
}

std::vector<Tensor> top_k(const Call& c) {
  const std::int64_t k = c.integer("k", -1);
  if (c.x().rank() == 0 || k < 0 || k > extents(c.x()).back())
    c.refuse(str_cat("there are no ", k, " elements along the last axis"));
  const int last = c.x().rank() - 1;
  const Tensor key = is_float(c.x().dtype()) ? total_order(c.x()) : c.x();  // NaNs are ordered by sign
  const Tensor order = prim::argsort(key, last, true).slice(last, 0, k);
  return {prim::gather(c.x(), order, last), prim::cast(order, c.dtype(1))};
}

}  // namespace

void add_reductions(Rules& r) {
  r["stablehlo.reduce"] = reduce;
  r["stablehlo.map"] = map;
  r["chlo.top_k"] = top_k;
}

}  // namespace lc::stablehlo
