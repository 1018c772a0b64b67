// Constants, ranges and patterns.
#include <algorithm>
#include <cmath>

#include "lightcone/onnx/read/call.h"
#include "lightcone/onnx/read/extents.h"

namespace lc::onnx {
namespace {

Values constant_(Call& c) {
  Graph& g = c.graph();
  if (c.has_attribute("value")) {
    const std::string_view name = c.node.outputs.empty() ? std::string_view() : c.node.outputs[0];
    Value v = c.importer.constant(c.tensor("value"), name);
    return {v};
  }
  if (c.has_attribute("value_int")) return {g.constant(c.integer("value_int"), DType::I64)};
  if (c.has_attribute("value_float")) return {g.constant(c.number("value_float", 0), DType::F32)};
  if (c.has_attribute("value_ints")) {
    const Integers v = c.integers("value_ints");
    return {tensor_of(c, {v.begin(), v.end()})};
  }
  if (c.has_attribute("value_floats")) {
    std::vector<Tensor> each;
    for (const double v : c.numbers("value_floats")) each.push_back(g.constant(v, DType::F32).reshape({1}));
    if (each.empty()) return {zeros(g, {0})};
    return {concat(each, 0)};
  }
  c.refuse("holds strings or a sparse tensor, which are not supported");
}

Values constant_of_shape(Call& c) {
  const std::vector<Dim> dims = c.dims(0);
  const Shape shape(dims.begin(), dims.end());
  if (!c.has_attribute("value")) return {zeros(c.graph(), shape)};
  const Tensor v = c.importer.constant(c.tensor("value"), {}).tensor;
  if (!v.defined()) c.refuse("has a value of a type that is not supported");
  return {v.reshape(Shape(shape.size(), 1)).expand(shape)};
}

Values range(Call& c) {
  const Tensor start = c.x(0), step = c.x(2);
  if (is_float(start.dtype())) {
    const double a = c.number(0), b = c.number(1), d = c.number(2);
    if (d == 0) c.refuse("has a step of 0");
    const double n = std::max(std::ceil((b - a) / d), 0.0);
    if (!(n < 1e9)) c.refuse("has too many elements");
    const Tensor k = arange(c.graph(), Dim(static_cast<std::int64_t>(n)), start.dtype());
    return {k * step.reshape({}) + start.reshape({})};
  }
  const Dim a = c.dim(0), b = c.dim(1);
  const std::int64_t d = c.integer(2);
  if (d == 0) c.refuse("has a step of 0");
  const Dim length = d > 0 ? (b - a + Dim(d - 1)) / Dim(d) : (a - b - Dim(d) - 1) / (Dim(0) - Dim(d));
  const Dim n = length.bounds().lo >= 0 ? length : max(length, 0);
  return {prim::cast(c.graph().index({n}, a + Dim::index(0, n) * Dim(d), DType::I64), start.dtype())};
}

Values eye_like(Call& c) {
  const Tensor x = c.x();
  if (x.rank() != 2) c.refuse("needs a matrix");
  const DType t = c.has_attribute("dtype") ? c.dtype("dtype", ElementType::Float) : x.dtype();
  const std::int64_t k = c.integer("k", 0);
  const Dim i = Dim::index(0, x.extent(0)), j = Dim::index(1, x.extent(1));
  const Tensor row = x.graph().index(x.shape(), i + Dim(k), DType::I64), column = x.graph().index(x.shape(), j);
  return {eq(row, column).to(t)};
}

Values one_hot_(Call& c) {  // indices, depth, [off, on]
  const Tensor indices = c.x(0), values = c.x(2);
  const std::vector<Dim> depth = c.importer.known().integers(c.x(1).to(DType::I64)).value_or(std::vector<Dim>());
  if (depth.size() != 1) c.refuse("needs a depth that is known when the model is read");
  const int axis = c.axis("axis", -1, indices.rank() + 1);
  Shape shape = indices.shape();
  shape.insert(shape.begin() + axis, depth[0]);
  const Tensor whole = indices.to(DType::I64);
  const Tensor wrapped = where(whole < 0, whole + c.graph().index({}, depth[0]), whole);
  const Tensor at = wrapped.unsqueeze(axis).expand(shape);
  const Tensor hit = eq(at, c.graph().index(shape, Dim::index(axis, depth[0])));
  const Tensor off = values.select(0, 0), on = values.select(0, 1);
  const auto all = broadcast(c, {hit, on, off});
  return {where(all[0], all[1], all[2])};
}

}  // namespace

void add_constants(Operators& t) {
  const Operator rows[] = {
      {"", "Constant", 1, constant_, "a constant, or a parameter with the file's bytes"},
      {"", "ConstantOfShape", 9, constant_of_shape, "full"},
      {"", "EyeLike", 9, eye_like, "eye"},
      {"", "OneHot", 9, one_hot_, "where"},
      {"", "Range", 11, range, "arange"},
  };
  t.insert(t.end(), std::begin(rows), std::end(rows));
}

}  // namespace lc::onnx
