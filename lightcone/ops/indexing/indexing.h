// Reading and writing by indices, beyond gather() and scatter(): torch.index_put and its relatives, reductions into
// places, diagonals, and what depends on data (nonzero, unique, masked_select) in a bounded form.
//
// Indices are integers, and negative ones count from the end, as torch's do. One that is out of range reads 0 and
// writes nothing (torch raises an error). Where several values are written to one place, the last one stays.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "lightcone/ops/ops.h"

namespace lc {

// ---- by indices -------------------------------------------------------------------------------
// A copy of a with values written at a[indices[0], indices[1], ...], as index() reads (or added, for accumulate): the
// indices broadcast to one shape, which takes the place of the first axes of a, and values broadcast to [indices...,
// the other axes of a] and have a's dtype. A bool index is an Error: where() and masked_scatter() write by masks.
Tensor index_put(Operand a, const std::vector<Tensor>& indices, Operand values, bool accumulate = false);
Tensor index_fill(Operand a, int axis, Operand index, Scalar value);  // index [m]: these slices of the axis are value
Tensor take(Operand a, Operand index);                                // a as one row: out has the shape of index
Tensor put(Operand a, Operand index, Operand source, bool accumulate = false);  // the reverse; as many elements
// gather() where a and indices broadcast beside the axis; without an axis a is one row and indices [m].
Tensor take_along_dim(Operand a, Operand indices);
Tensor take_along_dim(Operand a, Operand indices, int axis);

// ---- reductions into places -------------------------------------------------------------------
// a with src reduced into it, out[index[i, j, k], j, k] for axis 0: "sum", "prod", "mean", "amax" or "amin" of all that
// come to a place and, if include_self, of what was there. Places where nothing comes stay as they are. index has src's
// rank, is nowhere longer than src, and nowhere longer than a beside the axis. Means of integers round down.
// Derivatives are torch's: equal largest elements share.
Tensor scatter_reduce(Operand a, int axis, Operand index, Operand src, std::string_view reduce,
                      bool include_self = true);
// The same for whole slices: index [m], source like a with m along the axis; "prod", "mean", "amax" or "amin".
Tensor index_reduce(Operand a, int axis, Operand index, Operand source, std::string_view reduce,
                    bool include_self = true);
// a, where `mask` (bool, which broadcasts with a) is true the next element of source: in row-major order. Where source
// has too few elements 0 is written.
Tensor masked_scatter(Operand a, Operand mask, Operand source);

// ---- diagonals and slices ---------------------------------------------------------------------
Tensor diag(Operand a, int diagonal = 0);  // [n] -> a matrix with that diagonal; a matrix -> its diagonal
Tensor diag_embed(Operand a, int offset = 0, int axis1 = -2, int axis2 = -1);  // [.., n] -> [.., n + |offset|, ...]
Tensor diagonal_scatter(Operand a, Operand src, int offset = 0, int axis1 = 0, int axis2 = 1);  // src as diagonal()
Tensor select_scatter(Operand a, Operand src, int axis, std::int64_t index);  // src: a without the axis
Tensor slice_scatter(Operand a, Operand src, int axis = 0, std::int64_t start = 0, std::int64_t end = INT64_MAX,
                     std::int64_t step = 1);  // Python's rules, as slice()
// i64 [2, count]: rows and columns of the elements of a matrix on and below (above) a diagonal, row by row.
Tensor tril_indices(Graph& g, std::int64_t rows, std::int64_t columns, std::int64_t offset = 0,
                    const Tensor::At& at = Tensor::At::current());
Tensor triu_indices(Graph& g, std::int64_t rows, std::int64_t columns, std::int64_t offset = 0,
                    const Tensor::At& at = Tensor::At::current());

// ---- as many as there are ---------------------------------------------------------------------
// A graph has static shapes: each of these gives room for `capacity` results (none given: as many as a has elements)
// and says how many there are, `count` (i64 []), which may be more than the capacity: then the first ones are there.
struct Nonzero {
  Tensor
      indices;  // i64 [capacity, rank of a], in row-major order; behind the last one the shape of a, which is no index
  Tensor count;
};
Nonzero nonzero(Operand a, std::optional<Dim> capacity = {});  // NaN is not 0
inline Nonzero argwhere(Operand a, std::optional<Dim> capacity = {}) { return nonzero(a, capacity); }
struct Selected {
  Tensor values;  // [capacity]; 0 behind the last one
  Tensor count;
};
Selected masked_select(Operand a, Operand mask, std::optional<Dim> capacity = {});  // a and mask broadcast
struct Unique {
  Tensor values;   // [capacity]; 0 behind the last one
  Tensor inverse;  // i64 like a: where each element is in values
  Tensor counts;   // i64 [capacity]: how often each is in a; 0 behind the last one
  Tensor count;
};
// The different elements of all of a, in ascending order; NaN are different from each other, and last.
Unique unique(Operand a, std::optional<Dim> capacity = {});
// One of each row of equal neighbours.
Unique unique_consecutive(Operand a, std::optional<Dim> capacity = {});

}  // namespace lc
