// Tensors that begin in a graph: constants, ranges, patterns. `in` is a Graph, a Session or any tensor of the graph.
// None of them takes memory: what is known of an element is computed where it is read.
#pragma once

#include "lightcone/ops/arguments.h"

namespace lc {

// Without a dtype they are f32, whatever the number.
Tensor zeros(GraphOf in, const Shape& size, DType dtype = DType::F32);
Tensor ones(GraphOf in, const Shape& size, DType dtype = DType::F32);
Tensor empty(GraphOf in, const Shape& size, DType dtype = DType::F32);  // zeros: nothing here is undefined
Tensor full(GraphOf in, const Shape& size, Scalar fill_value, DType dtype = DType::F32);
// Of the shape of `a` and, unless another is given, of its element type.
Tensor zeros_like(Operand a, std::optional<DType> dtype = {});
Tensor ones_like(Operand a, std::optional<DType> dtype = {});
Tensor empty_like(Operand a, std::optional<DType> dtype = {});
Tensor full_like(Operand a, Scalar fill_value, DType dtype);

// start, start + step, ... below end (above, for a negative step). As in torch whole numbers give i64 and others f32
// unless a dtype is given; an Error where the step is 0 or leads away from the end.
Tensor arange(GraphOf in, Scalar start, Scalar end, Scalar step = 1, std::optional<DType> dtype = {});
// 0, 1, ..., end - 1; `end` may be symbolic.
Tensor arange(GraphOf in, Dim end, DType dtype = DType::I64);
// `steps` numbers from start to end, both ends included.
Tensor linspace(GraphOf in, double start, double end, int steps, DType dtype = DType::F32);
Tensor eye(GraphOf in, Dim n, DType dtype = DType::F32);
Tensor eye(GraphOf in, Dim n, Dim m, DType dtype = DType::F32);  // [n, m]

}  // namespace lc
