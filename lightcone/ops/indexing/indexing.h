// Reading and writing by index beyond gather() and scatter(): torch.index_put and related functions, reducing scatters,
// diagonals, and functions with data-dependent sizes (nonzero, unique, masked_select) in a bounded form.
//
// Indices are integers; negative ones count from the end, as in PyTorch. An out-of-range index reads 0 and writes
// nothing (PyTorch raises an error). If several values are written to one position, the last one wins.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "lightcone/ops/ops.h"

namespace lc {

// ---- by indices -------------------------------------------------------------------------------

// A copy of a with values written (or added, if accumulate) at a[indices[0], indices[1], ...], positions as in index().
// The indices broadcast to one shape, which replaces the first axes of a; values have a's dtype and broadcast to
// [indices..., the other axes of a]. Throws Error for a bool index; where() and masked_scatter() write by masks.
Tensor index_put(Operand a, const std::vector<Tensor>& indices, Operand values, bool accumulate = false);
// Sets the slices index [m] of an axis to value.
Tensor index_fill(Operand a, int axis, Operand index, Scalar value);
// Reads elements of a, flattened; the result has the shape of index.
Tensor take(Operand a, Operand index);
// Writes (or adds) to elements of a, flattened; source has as many elements as index.
Tensor put(Operand a, Operand index, Operand source, bool accumulate = false);
// gather() with a and indices broadcast except along the axis. Without an axis, a is flattened and indices are [m].
Tensor take_along_dim(Operand a, Operand indices);
Tensor take_along_dim(Operand a, Operand indices, int axis);

// ---- reducing scatters ------------------------------------------------------------------------

// Reduces src into a: out[index[i, j, k], j, k] for axis 0 is the "sum", "prod", "mean", "amax" or "amin" of all values
// for a position, including a's own if include_self. Positions without values are unchanged. index has src's rank, is
// nowhere longer than src and, except along the axis, nowhere longer than a. Means of integers round down. Equal maxima
// split the gradient, as in PyTorch.
Tensor scatter_reduce(Operand a, int axis, Operand index, Operand src, std::string_view reduce,
                      bool include_self = true);
// The same for whole slices: index is [m] and source like a with m along the axis; "prod", "mean", "amax" or "amin".
Tensor index_reduce(Operand a, int axis, Operand index, Operand source, std::string_view reduce,
                    bool include_self = true);
// A copy of a with elements where `mask` (bool, broadcast with a) is true replaced by consecutive elements of source,
// in row-major order. If source is too short, 0 is written.
Tensor masked_scatter(Operand a, Operand mask, Operand source);

// ---- diagonals and slices ---------------------------------------------------------------------
Tensor diag(Operand a, int diagonal = 0);  // a vector to a diagonal matrix; a matrix to its diagonal
Tensor diag_embed(Operand a, int offset = 0, int axis1 = -2, int axis2 = -1);  // [.., n] -> [.., n + |offset|, ...]
Tensor diagonal_scatter(Operand a, Operand src, int offset = 0, int axis1 = 0, int axis2 = 1);  // src as diagonal()
Tensor select_scatter(Operand a, Operand src, int axis, std::int64_t index);  // src has a's shape without the axis
Tensor slice_scatter(Operand a, Operand src, int axis = 0, std::int64_t start = 0, std::int64_t end = INT64_MAX,
                     std::int64_t step = 1);  // Python's slicing rules, as slice()
// Rows and columns, i64 [2, count], of the elements on and below a diagonal of a matrix, in row-major order.
Tensor tril_indices(Graph& g, std::int64_t rows, std::int64_t columns, std::int64_t offset = 0,
                    const Tensor::At& at = Tensor::At::current());
// Like tril_indices(), for elements on and above the diagonal.
Tensor triu_indices(Graph& g, std::int64_t rows, std::int64_t columns, std::int64_t offset = 0,
                    const Tensor::At& at = Tensor::At::current());

// ---- data-dependent sizes ---------------------------------------------------------------------
// Graphs have static shapes, so each of these functions has room for `capacity` results (default: the number of
// elements of a). `count` (i64 scalar) is the number found; if it exceeds the capacity, the first ones are returned.
struct Nonzero {
  // i64 [capacity, rank of a], in row-major order; rows after the last hold the shape of a, which is out of range
  Tensor indices;
  Tensor count;
};
Nonzero nonzero(Operand a, std::optional<Dim> capacity = {});  // counts NaN as nonzero
inline Nonzero argwhere(Operand a, std::optional<Dim> capacity = {}) { return nonzero(a, capacity); }
struct Selected {
  Tensor values;  // [capacity]; 0 after the last
  Tensor count;
};
Selected masked_select(Operand a, Operand mask, std::optional<Dim> capacity = {});  // a and mask broadcast
struct Unique {
  Tensor values;   // [capacity]; 0 after the last
  Tensor inverse;  // i64 like a: index of each element in values
  Tensor counts;   // i64 [capacity]: number of occurrences; 0 after the last
  Tensor count;
};
// The distinct elements of a, flattened, in ascending order. NaNs are distinct from each other and come last.
Unique unique(Operand a, std::optional<Dim> capacity = {});
// torch.unique(a, dim=dim): the distinct slices of an axis in lexicographic order, NaNs of equal places being equal:
// values [.., n, ..] -> [.., capacity, ..], inverse i64 [n]; the capacity is n by default. Each slice is compared with
// each other one, which takes n^2 times the elements of a slice.
Unique unique_dim(Operand a, int dim, std::optional<Dim> capacity = {});
// Keeps one element of each run of equal consecutive elements.
Unique unique_consecutive(Operand a, std::optional<Dim> capacity = {});

}  // namespace lc
