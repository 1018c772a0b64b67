// Rows of a text in blocks, so that a recurrence over them costs as much as there are rows: within a block each row
// reads the rows before it at once, and one state is carried from block to block, by the same recurrence over the
// blocks.
#pragma once

#include <cstdint>

#include "lightcone/core/tensor.h"

namespace lc {

// How an axis of rows is divided. Rows that are appended to fill the last block are zeros; a recurrence is causal, so
// none before them reads them.
struct RowBlocks {
  Dim rows, count;
  std::int64_t size;

  RowBlocks(const Dim& rows, std::int64_t size) : rows(rows), count((rows + (size - 1)) / Dim(size)), size(size) {}
  // [..., rows, ...] -> [..., count, size, ...], where `axis` counts from the front.
  Tensor split(const Tensor& x, int axis) const;
  // [..., count, size, ...] -> [..., rows, ...], where `axis` is that of the count.
  Tensor merged(const Tensor& x, int axis) const;
};

// [..., rows, ...] -> the same, where each row is the one before it and the first is zeros.
Tensor row_before(const Tensor& x, int axis);
// The most rows that an axis may have.
std::int64_t most_rows(const Tensor& x, int axis);

// The states h_t = exp(rate step_t) h_(t-1) + u_t from h_(-1) = 0. step is [batch, rows, inner], u [batch, rows, inner,
// state] and rate [inner, state] -> [batch, rows, inner, state].
Tensor decaying_sums(const Tensor& step, const Tensor& u, const Tensor& rate);

// The largest number of rows that read each other at once.
constexpr std::int64_t kRowsAtOnce = 16;

}  // namespace lc
