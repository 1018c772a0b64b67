// Rules for views: operations that only move elements, and queries of sizes.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "lightcone/stablehlo/read/reader.h"

namespace lc::stablehlo {
namespace {

// Returns extents given by an operand. Refuses the operation if they are unknown.
Integers told(const Call& c, std::size_t operand) {
  if (operand >= c.in.size()) c.refuse(str_cat("has no operand ", operand));
  const auto known = c.reader.known(c.in[operand]);
  if (!known) c.refuse("sizes depend on data: a graph has static shapes");
  return *known;
}

// Returns a result's shape: that of its type or, with unknown extents, the one in an operand.
Integers result_shape(const Call& c, std::size_t operand) {
  const Integers& s = c.results.at(0).shape;
  const bool known = std::ranges::find(s, kDynamic) == s.end();
  return known ? s : told(c, operand);
}

// In the body of a reducer, a scalar stays a scalar.
bool stays_scalar(const Call& c) { return c.lifted() && is_scalar(c.results.at(0)); }

std::vector<Tensor> broadcast_to_shape(const Call& c, const Integers& shape) {
  const Integers dims = c.integers("broadcast_dimensions");
  const Tensor x = c.x();
  if (static_cast<int>(dims.size()) != x.rank()) c.refuse("has not one broadcast dimension for each axis");
  std::vector<int> order(dims.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](int k) { return dims[k]; });
  Shape between(shape.size(), 1);
  std::int64_t before = -1;
  for (const int k : order) {
    const std::int64_t d = dims[k];
    if (d <= before || d >= static_cast<std::int64_t>(shape.size()))
      c.refuse("broadcast dimensions are not different axes of the result");
    before = d;
    const Dim n = x.extent(k);
    if (!(n == Dim(1)) && !(n == Dim(shape[d])))
      c.refuse(str_cat("axis ", k, " of ", lc::str(x.shape()), " does not fit axis ", d, " of the result"));
    between[d] = n;
  }
  return {x.permute(order).reshape(between).expand(shape_of(shape))};
}

std::vector<Tensor> broadcast_in_dim(const Call& c) {
  if (stays_scalar(c)) return {c.x()};
  return broadcast_to_shape(c, static_shape(c));
}
std::vector<Tensor> dynamic_broadcast_in_dim(const Call& c) { return broadcast_to_shape(c, result_shape(c, 1)); }
// Adds leading axes.
std::vector<Tensor> broadcast(const Call& c) {
  Shape s = shape_of(c.integers("broadcast_sizes"));
  Shape ones(s.size(), 1);
  for (const Dim& d : c.x().shape()) s.push_back(d), ones.push_back(d);
  return {c.x().reshape(ones).expand(s)};
}

std::vector<Tensor> reshaped(const Call& c, const Integers& to) {
  if (stays_scalar(c)) return {c.x()};
  if (!(product(c.x().shape()) == product(shape_of(to))))
    c.refuse(str_cat(lc::str(c.x().shape()), " has another number of elements than ", lc::str(shape_of(to))));
  return {c.x().reshape(shape_of(to))};
}
std::vector<Tensor> reshape_to(const Call& c) { return reshaped(c, static_shape(c)); }
std::vector<Tensor> dynamic_reshape(const Call& c) { return reshaped(c, result_shape(c, 1)); }

std::vector<Tensor> transpose_axes(const Call& c) {
  const Integers p = c.integers("permutation");
  Integers sorted = p, all(p.size());
  std::ranges::sort(sorted);
  std::iota(all.begin(), all.end(), 0);
  if (static_cast<int>(p.size()) != c.x().rank() || sorted != all)
    c.refuse("the permutation is none of the operand's axes");
  return {c.x().permute(std::vector<int>(p.begin(), p.end()))};
}

int axis_of(const Call& c, std::int64_t axis, int rank) {
  if (axis < 0 || axis >= rank) c.refuse(str_cat("there is no axis ", axis));
  return static_cast<int>(axis);
}

std::vector<Tensor> reverse(const Call& c) {
  Tensor x = c.x();
  for (const std::int64_t d : c.integers("dimensions")) x = x.flip(axis_of(c, d, x.rank()));
  return {x};
}

std::vector<Tensor> concatenate(const Call& c) {
  if (c.in.empty()) c.refuse("joins nothing");
  const int axis = axis_of(c, c.integer("dimension", 0), c.x().rank());
  std::vector<Tensor> parts;
  for (const Tensor& t : c.in)
    if (!(t.rank() == c.x().rank() && t.extent(axis) == Dim(0))) parts.push_back(t);
  if (parts.empty()) return {c.x()};
  return {parts.size() == 1 ? parts[0] : cat(parts, axis)};
}

std::vector<Tensor> pad_edges(const Call& c, const Integers& low, const Integers& high, const Integers& between) {
  const auto rank = static_cast<std::size_t>(c.x().rank());
  if (c.in.size() < 2 || c.in[1].rank() != 0) c.refuse("needs a scalar to pad with");
  if (low.size() != rank || high.size() != rank || between.size() != rank) c.refuse("has not one number for each axis");
  return {padded(c.x(), c.in[1], low, high, between)};
}
std::vector<Tensor> pad_constant(const Call& c) {
  return pad_edges(c, c.integers("edge_padding_low"), c.integers("edge_padding_high"), c.integers("interior_padding"));
}
std::vector<Tensor> dynamic_pad(const Call& c) { return pad_edges(c, told(c, 2), told(c, 3), told(c, 4)); }

std::vector<Tensor> iota_of(const Call& c, const Integers& shape) {
  const int axis = axis_of(c, c.integer("iota_dimension", 0), static_cast<int>(shape.size()));
  return {prim::cast(index_along(c.graph(), shape_of(shape), axis), c.dtype())};
}
std::vector<Tensor> iota(const Call& c) { return iota_of(c, static_shape(c)); }
std::vector<Tensor> dynamic_iota(const Call& c) { return iota_of(c, result_shape(c, 0)); }

std::vector<Tensor> dimension_size(const Call& c) {
  const int axis = axis_of(c, c.integer("dimension", 0), c.x().rank());
  return {full(c.graph(), {}, extents(c.x())[axis], DType::I32)};
}
// Returns the front of an axis; the elements after it are no longer part of the tensor.
std::vector<Tensor> set_dimension_size(const Call& c) {
  const int axis = axis_of(c, c.integer("dimension", 0), c.x().rank());
  const Integers size = told(c, 1);
  const std::int64_t extent = extents(c.x())[axis];
  if (size.size() != 1 || size[0] < 0 || size[0] > extent)
    c.refuse(str_cat("axis ", axis, " of ", extent, " elements cannot have a size outside of 0 to ", extent));
  return {c.x().slice(axis, 0, size[0])};
}

}  // namespace

Tensor padded(const Tensor& t, const Tensor& with, const Integers& low, const Integers& high, const Integers& between) {
  const bool by_zero = with.node().op == Op::Constant && with.node().value == 0 && !std::signbit(with.node().value);
  Tensor x = t, inside = full(t.graph(), t.shape(), 1, DType::Bool);
  for (int a = 0; a < t.rank(); ++a) {
    const auto k = static_cast<std::size_t>(a);
    if (between[k] < 0 || between[k] >= (std::int64_t{1} << 31))
      throw Error("", "interior padding is negative or too large");
    constexpr std::int64_t kFar = std::int64_t{1} << 48;  // no axis is longer
    const std::int64_t n = *x.extent(a).constant(), step = between[k] + 1;
    if (n > kFar / step || std::min(low[k], high[k]) < -kFar || std::max(low[k], high[k]) > kFar)
      throw Error("", str_cat("padding of axis ", a, " makes more than 2^48 elements, or cuts as many"));
    const std::int64_t spread = n == 0 ? 0 : (n - 1) * step + 1, length = spread + low[k] + high[k];
    if (length < 0) throw Error("", str_cat("axis ", a, " would have ", length, " elements"));
    for (Tensor* part : {&x, &inside}) {
      Tensor& p = *part;
      if (step > 1 && n > 0) {  // each element with its gap after it, as an axis of its own
        Shape s = p.shape();
        s[k] = n * step;
        p = p.unsqueeze(a + 1).pad(a + 1, 0, step - 1).reshape(s).slice(a, 0, spread);
      }
      const std::int64_t cut_front = std::max<std::int64_t>(0, -low[k]), cut_back = std::max<std::int64_t>(0, -high[k]);
      const std::int64_t front = std::max<std::int64_t>(0, low[k]), back = std::max<std::int64_t>(0, high[k]);
      if (front || back) p = p.pad(a, front, back);
      if (cut_front || cut_back) p = p.slice(a, cut_front, spread + front + back - cut_back);
    }
  }
  const auto positive = [](const Integers& v) { return std::ranges::any_of(v, [](std::int64_t n) { return n > 0; }); };
  if (by_zero || !(positive(low) || positive(high) || positive(between))) return x;
  return prim::where(inside, x, to_shape(with, x.shape()));
}

void add_shapes(Rules& r) {
  r["stablehlo.broadcast_in_dim"] = broadcast_in_dim;
  r["stablehlo.dynamic_broadcast_in_dim"] = dynamic_broadcast_in_dim;
  r["stablehlo.broadcast"] = broadcast;
  r["stablehlo.reshape"] = reshape_to;
  r["stablehlo.dynamic_reshape"] = dynamic_reshape;
  r["stablehlo.transpose"] = transpose_axes;
  r["stablehlo.reverse"] = reverse;
  r["stablehlo.concatenate"] = concatenate;
  r["stablehlo.pad"] = pad_constant;
  r["stablehlo.dynamic_pad"] = dynamic_pad;
  r["stablehlo.iota"] = iota;
  r["stablehlo.dynamic_iota"] = dynamic_iota;
  r["stablehlo.get_dimension_size"] = dimension_size;
  r["stablehlo.set_dimension_size"] = set_dimension_size;
}

}  // namespace lc::stablehlo
