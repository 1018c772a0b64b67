// Rules for slices of tensors, at constant or computed indices.
#include <algorithm>

#include "lightcone/composites/composites.h"
#include "lightcone/ops/indexing/indexing.h"
#include "lightcone/stablehlo/read/reader.h"

namespace lc::stablehlo {
namespace {

std::vector<Tensor> slice_static(const Call& c, const Integers& start, const Integers& limit, const Integers& stride) {
  Tensor x = c.x();
  const auto rank = static_cast<std::size_t>(x.rank());
  if (start.size() != rank || limit.size() != rank || stride.size() != rank)
    c.refuse("has not one number for each axis");
  const Integers n = extents(x);
  for (std::size_t k = 0; k < rank; ++k) {
    if (start[k] < 0 || limit[k] < start[k] || limit[k] > n[k] || stride[k] < 1)
      c.refuse(str_cat("[", start[k], ":", limit[k], ":", stride[k], "] is no piece of an axis of ", n[k]));
    x = x.slice(static_cast<int>(k), start[k], limit[k], stride[k]);
  }
  return {x};
}
std::vector<Tensor> slice(const Call& c) {
  const Integers start = c.integers("start_indices");
  return slice_static(c, start, c.integers("limit_indices"), c.integers("strides", start.size(), 1));
}
std::vector<Tensor> real_dynamic_slice(const Call& c) {
  std::vector<Integers> numbers;
  for (std::size_t k = 1; k < 4; ++k) {
    const auto known = k < c.in.size() ? c.reader.known(c.in[k]) : std::nullopt;
    if (!known) c.refuse("places depend on data: a graph has static shapes");
    numbers.push_back(*known);
  }
  return slice_static(c, numbers[0], numbers[1], numbers[2]);
}

// ---- at computed indices --------------------------------------------------------------------------

struct Start {
  std::optional<std::int64_t> known;
  Tensor computed;  // i64 []
};

// Returns the start of a piece of `size`, clamped so that the piece is within the axis.
Start start_of(const Call& c, const Tensor& at, std::int64_t size, std::int64_t extent) {
  if (at.rank() != 0 || is_float(at.dtype())) c.refuse("places are integers");
  if (size < 0 || size > extent) c.refuse(str_cat("a piece of ", size, " does not fit an axis of ", extent));
  if (size == extent) return {0, {}};
  if (const auto v = c.reader.known(at); v && v->size() == 1)
    return {std::clamp<std::int64_t>((*v)[0], 0, extent - size), {}};
  const Tensor t = at.dtype() == DType::U64 ? prim::cast(prim::minimum(at, full_like(at, extent)), DType::I64)
                                            : prim::cast(at, DType::I64);
  return {{}, prim::minimum(prim::maximum(t, full_like(t, 0)), full_like(t, extent - size))};
}

Tensor places(const Tensor& start, std::int64_t size) {
  const Shape s = {size};
  return prim::add(index_along(start.graph(), s, 0), to_shape(start, s));
}

std::vector<Tensor> dynamic_slice(const Call& c) {
  const Integers n = extents(c.x()), size = c.integers("slice_sizes", n.size(), 0);
  if (c.in.size() != n.size() + 1) c.refuse("has not one place for each axis");
  Tensor x = c.x();
  for (std::size_t k = 0; k < n.size(); ++k) {
    const int axis = static_cast<int>(k);
    const Start start = start_of(c, c.in[k + 1], size[k], n[k]);
    x = start.known ? x.slice(axis, *start.known, *start.known + size[k])
                    : index_select(x, axis, places(start.computed, size[k]));
  }
  return {x};
}

// Returns x with u written into it. A slice of x along the first axis that u does not fill is updated recursively and
// put back.
Tensor updated(const Tensor& x, const Tensor& u, const std::vector<Start>& start, int axis) {
  for (; axis < x.rank() && x.extent(axis) == u.extent(axis); ++axis) {
  }
  if (axis == x.rank()) return u;
  const Start& at = start[axis];
  const std::int64_t size = *u.extent(axis).constant();
  if (at.known) {
    const Tensor piece = updated(x.slice(axis, *at.known, *at.known + size), u, start, axis + 1);
    return prim::slice_scatter(x, piece, axis, *at.known);
  }
  const Tensor rows = places(at.computed, size);
  bool more = false;
  for (int a = axis + 1; a < x.rank(); ++a) more |= !(x.extent(a) == u.extent(a));
  return index_copy(x, axis, rows, more ? updated(index_select(x, axis, rows), u, start, axis + 1) : u);
}

std::vector<Tensor> dynamic_update_slice(const Call& c) {
  const Integers n = extents(c.x());
  if (c.in.size() != n.size() + 2 || c.in[1].rank() != c.x().rank()) c.refuse("has not one place for each axis");
  if (c.in[1].dtype() != c.x().dtype()) c.refuse("operands have different element types");
  const Integers size = extents(c.in[1]);
  std::vector<Start> start;
  for (std::size_t k = 0; k < n.size(); ++k) start.push_back(start_of(c, c.in[k + 2], size[k], n[k]));
  if (std::ranges::find(size, 0) != size.end()) return {c.x()};
  return {updated(c.x(), c.in[1], start, 0)};
}

}  // namespace

void add_slices(Rules& r) {
  r["stablehlo.slice"] = slice;
  r["stablehlo.real_dynamic_slice"] = real_dynamic_slice;
  r["stablehlo.dynamic_slice"] = dynamic_slice;
  r["stablehlo.dynamic_update_slice"] = dynamic_update_slice;
}

}  // namespace lc::stablehlo
