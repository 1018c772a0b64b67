// Shapes of values, and views that keep every element.
#include <algorithm>

#include "lightcone/onnx/read/call.h"

namespace lc::onnx {
namespace {

Values shape_(Call& c) {
  const Shape s = c.value(0).tensor.defined() ? c.value(0).tensor.shape() : c.x(0).shape();
  const auto n = static_cast<std::int64_t>(s.size());
  const auto clamped = [&](std::int64_t k) { return std::clamp<std::int64_t>(k < 0 ? k + n : k, 0, n); };
  const std::int64_t begin = clamped(c.integer("start", 0)), end = clamped(c.integer("end", n));
  if (c.value(0).count) c.refuse("its operand has a size that depends on data");
  if (end <= begin) return {full(c.graph(), {0}, 0, DType::I64)};
  return {tensor_of(c, {s.begin() + begin, s.begin() + end})};
}
Values size_(Call& c) { return {c.graph().index({}, product(c.x().shape()), DType::I64)}; }

// Replaces 0 by the operand's extent at the same axis.
Shape requested(Call& c, const Tensor& x) {
  const bool allow_zero = c.flag("allowzero");
  std::vector<Dim> dims;
  if (c.opset >= 5) {
    dims = c.dims(1);
  } else {
    c.ignore("consumed_inputs");
    const Integers v = c.integers("shape");
    dims.assign(v.begin(), v.end());
  }
  for (std::size_t k = 0; k < dims.size(); ++k) {
    if (!(dims[k] == Dim(0)) || allow_zero) continue;
    if (k >= static_cast<std::size_t>(x.rank())) c.refuse(str_cat("copies axis ", k, " of ", str(x.shape())));
    dims[k] = x.extent(static_cast<int>(k));
  }
  return Shape(dims.begin(), dims.end());
}
Values reshape_(Call& c) {
  const Tensor x = c.x();
  Shape to = requested(c, x);
  const auto unknown = std::ranges::find(to, Dim(-1));
  if (unknown == to.end() && !(product(to) == product(x.shape()))) {
    // One of the extents may be a symbol that the number of elements decides.
    c.importer.same_extent(product(x.shape()), product(to));
  }
  if (unknown != to.end()) {
    Dim rest = 1;
    for (const Dim& d : to)
      if (!(d == Dim(-1))) rest = rest * d;
    if (rest == Dim(0)) c.refuse("has an extent of -1 beside one of 0");
    *unknown = product(x.shape()) / rest;
  }
  return {x.reshape(to)};
}
Values flatten_(Call& c) {
  const Tensor x = c.x();
  const std::int64_t given = c.integer("axis", 1);
  const int axis = given == x.rank() ? x.rank() : c.wrap(given, std::max(x.rank(), 1));
  const Shape s = x.shape();
  const Shape before(s.begin(), s.begin() + axis), after(s.begin() + axis, s.end());
  return {x.reshape({product(before), product(after)})};
}
Values transpose_(Call& c) {
  const Value& v = c.value(0);
  const Tensor x = v.tensor.defined() ? v.tensor : c.x();
  Integers order(static_cast<std::size_t>(x.rank()));
  for (int k = 0; k < x.rank(); ++k) order[static_cast<std::size_t>(k)] = x.rank() - 1 - k;
  order = c.integers("perm", order);
  if (order.size() != static_cast<std::size_t>(x.rank()))
    c.refuse(str_cat("has ", order.size(), " axes in perm, and its operand has ", x.rank()));
  c.wrap(order, x.rank());
  std::vector<int> axes;
  for (const std::int64_t a : order) axes.push_back(c.wrap(a, x.rank()));
  if (!v.count) return {x.permute(axes)};
  const auto moved = std::ranges::find(axes, v.count->axis) - axes.begin();
  return {Value(x.permute(axes), Value::Count{v.count->number, static_cast<int>(moved)})};
}

Integers axes_operand(Call& c, const Integers& otherwise) {
  if (c.opset >= 13) return c.has(1) ? c.integers(1) : otherwise;
  return c.integers("axes", otherwise);
}
Values squeeze_(Call& c) {
  const Tensor x = c.x();
  const bool has_axes = c.opset >= 13 ? c.has(1) : c.has_attribute("axes");
  Integers ones;
  for (int k = 0; k < x.rank(); ++k) {
    const Bounds b = x.extent(k).bounds();
    if (x.extent(k) == Dim(1)) ones.push_back(k);
    else if (!has_axes && b.lo <= 1 && b.hi >= 1)
      c.refuse(str_cat("has no axes, and whether it drops axis ", k, " of ", str(x.shape()),
                       " depends on a size that is open: give it a number"));
  }
  const std::vector<int> axes = c.wrap(axes_operand(c, ones), x.rank());
  Tensor r = x;
  for (auto a = axes.rbegin(); a != axes.rend(); ++a) {
    if (!(r.extent(*a) == Dim(1))) c.importer.same_extent(r.extent(*a), 1);
    r = r.squeeze(*a);
  }
  return {r};
}
Values unsqueeze_(Call& c) {
  const Tensor x = c.x();
  const Integers given = axes_operand(c, {});
  const std::vector<int> axes = c.wrap(given, x.rank() + static_cast<int>(given.size()));
  Tensor r = x;
  for (const int a : axes) r = r.unsqueeze(a);
  return {r};
}

Values expand_(Call& c) {
  const Tensor x = c.x();
  const std::vector<Dim> dims = c.dims(1);
  Shape to(dims.begin(), dims.end());
  const Shape from = x.shape();
  if (to.size() < from.size()) to.insert(to.begin(), from.size() - to.size(), 1);
  for (std::size_t k = 0; k < from.size(); ++k) {
    Dim& d = to[to.size() - from.size() + k];
    if (d == Dim(1) || d == Dim(-1)) d = from[k];
  }
  return {expand_to(c, x, to)};
}
Values tile_(Call& c) {
  Tensor x = c.x();
  const std::vector<Dim> times = c.dims(1);
  if (times.size() != static_cast<std::size_t>(x.rank())) c.refuse("needs a number for each axis");
  for (int k = 0; k < x.rank(); ++k) {
    const Dim n = times[static_cast<std::size_t>(k)], had = x.extent(k);
    if (n == Dim(1)) continue;
    Shape s = x.shape();
    Shape wide = s, whole = s;
    s.insert(s.begin() + k, 1);
    wide.insert(wide.begin() + k, n);
    whole[static_cast<std::size_t>(k)] = n * had;
    x = x.reshape(s).expand(wide).reshape(whole);
  }
  return {x};
}

// [n, c, h, w] with blocks of pixels as channels, and back.
Values depth_to_space(Call& c) {
  const Tensor x = c.x();
  if (x.rank() != 4) c.refuse("needs [n, c, h, w]");
  const std::int64_t b = c.integer("blocksize");
  if (b < 1 || b > INT32_MAX) c.refuse("has no block size, or a large one");
  const std::string_view mode = c.text("mode", "DCR");
  const Dim n = x.extent(0), d = x.extent(1) / Dim(b * b), h = x.extent(2), w = x.extent(3);
  if (mode == "DCR")
    return {x.reshape({n, b, b, d, h, w}).permute({0, 3, 4, 1, 5, 2}).reshape({n, d, h * Dim(b), w * Dim(b)})};
  if (mode == "CRD")
    return {x.reshape({n, d, b, b, h, w}).permute({0, 1, 4, 2, 5, 3}).reshape({n, d, h * Dim(b), w * Dim(b)})};
  c.refuse("has a mode that is not DCR or CRD");
}
Values space_to_depth(Call& c) {
  const Tensor x = c.x();
  if (x.rank() != 4) c.refuse("needs [n, c, h, w]");
  const std::int64_t b = c.integer("blocksize");
  if (b < 1 || b > INT32_MAX) c.refuse("has no block size, or a large one");
  if (c.text("mode", "DCR") != "DCR") c.refuse("has a mode that is not DCR");
  const Dim n = x.extent(0), d = x.extent(1), h = x.extent(2) / Dim(b), w = x.extent(3) / Dim(b);
  return {x.reshape({n, d, h, b, w, b}).permute({0, 3, 5, 1, 2, 4}).reshape({n, d * Dim(b * b), h, w})};
}

}  // namespace

void add_shapes(Operators& t) {
  const Operator rows[] = {
      {"", "DepthToSpace", 1, depth_to_space, "views"},
      {"", "Expand", 8, expand_, "expand"},
      {"", "Flatten", 1, flatten_, "reshape"},
      {"", "Reshape", 1, reshape_, "reshape"},
      {"", "Shape", 1, shape_, "extents, which stay expressions"},
      {"", "Size", 1, size_, "the product of the extents"},
      {"", "SpaceToDepth", 1, space_to_depth, "views"},
      {"", "Squeeze", 1, squeeze_, "squeeze"},
      {"", "Tile", 6, tile_, "expand"},
      {"", "Transpose", 1, transpose_, "permute"},
      {"", "Unsqueeze", 1, unsqueeze_, "unsqueeze"},
  };
  t.insert(t.end(), std::begin(rows), std::end(rows));
}

}  // namespace lc::onnx
