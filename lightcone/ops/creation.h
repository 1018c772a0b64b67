// New tensors in a graph: constants, ranges, patterns. `in` is a Graph, a Session or any tensor of the graph. None of
// them takes memory: elements are computed where they are read.
#pragma once

#include "lightcone/ops/arguments.h"

namespace lc {

// A tensor of zeros; the default dtype is f32.
Tensor zeros(GraphOf in, const Shape& size, DType dtype = DType::F32);
// A tensor of ones.
Tensor ones(GraphOf in, const Shape& size, DType dtype = DType::F32);
Tensor empty(GraphOf in, const Shape& size, DType dtype = DType::F32);  // zeros: there is no uninitialised memory
// A tensor of `fill_value`; the default dtype is f32 for any number.
Tensor full(GraphOf in, const Shape& size, Scalar fill_value, DType dtype = DType::F32);
// Zeros with the shape of `a` and, unless given, its element type.
Tensor zeros_like(Operand a, std::optional<DType> dtype = {});
Tensor ones_like(Operand a, std::optional<DType> dtype = {});
Tensor empty_like(Operand a, std::optional<DType> dtype = {});
Tensor full_like(Operand a, Scalar fill_value, DType dtype);

// start, start + step, ... below end (above, for a negative step). As in PyTorch, integers give i64 and other numbers
// f32 unless dtype is given. Throws Error if the step is 0 or leads away from the end.
Tensor arange(GraphOf in, Scalar start, Scalar end, Scalar step = 1, std::optional<DType> dtype = {});
// 0, 1, ..., end - 1; `end` may be symbolic.
Tensor arange(GraphOf in, Dim end, DType dtype = DType::I64);
// `steps` evenly spaced numbers from start to end, both included.
Tensor linspace(GraphOf in, double start, double end, int steps, DType dtype = DType::F32);
// The identity matrix [n, n].
Tensor eye(GraphOf in, Dim n, DType dtype = DType::F32);
Tensor eye(GraphOf in, Dim n, Dim m, DType dtype = DType::F32);  // [n, m] with ones on the main diagonal

}  // namespace lc
