#include "lightcone/models/language/recurrent/row_blocks.h"

#include <cmath>

#include "lightcone/ops/ops.h"
#include "lightcone/ops/shape.h"

namespace lc {

Tensor RowBlocks::split(const Tensor& x, int axis) const {
  Shape s = x.shape();
  s[static_cast<std::size_t>(axis)] = count;
  s.insert(s.begin() + axis + 1, size);
  return x.pad(axis, 0, count * Dim(size) - rows).reshape(s);
}

Tensor RowBlocks::merged(const Tensor& x, int axis) const {
  Shape s = x.shape();
  s.erase(s.begin() + axis);
  s[static_cast<std::size_t>(axis)] = count * Dim(size);
  return x.reshape(s).slice(axis, 0, rows);
}

Tensor row_before(const Tensor& x, int axis) { return x.pad(axis, 1, 0).slice(axis, 0, x.extent(axis)); }

std::int64_t most_rows(const Tensor& x, int axis) { return x.extent(axis).bounds().hi; }

namespace {

// The states from all rows before, at once: the work grows with the square of the rows. With T_t, the sum of the steps
// up to t, h_t is the sum over s <= t of exp(rate (T_t - T_s)) u_s. step [..., rows, inner].
Tensor sums_at_once(const Tensor& step, const Tensor& u, const Tensor& rate) {
  const Dim rows = step.extent(-2);
  const Tensor total = cumsum(step, step.rank() - 2);
  // [..., rows t, rows s, inner, 1]
  const Tensor apart = (total.unsqueeze(-2) - total.unsqueeze(-3)).unsqueeze(-1);
  const Tensor t = step.graph().index({rows, rows, 1, 1}, Dim::index(0, rows));
  const Tensor s = step.graph().index({rows, rows, 1, 1}, Dim::index(1, rows));
  const Tensor left = exp(where(s <= t, apart * rate, -INFINITY));
  return sum(left * u.unsqueeze(-4), {-3});
}

}  // namespace

Tensor decaying_sums(const Tensor& step, const Tensor& u, const Tensor& rate) {
  constexpr int kRows = 1;
  if (most_rows(step, kRows) <= kRowsAtOnce) return sums_at_once(step, u, rate);
  const RowBlocks blocks(step.extent(kRows), kRowsAtOnce);
  const Tensor steps = blocks.split(step, kRows);                        // [batch, count, size, inner]
  const Tensor own = sums_at_once(steps, blocks.split(u, kRows), rate);  // [batch, count, size, inner, state]
  const Tensor total = cumsum(steps, kRows + 1);
  const auto last = [&](const Tensor& x) { return narrow(x, kRows + 1, kRowsAtOnce - 1, 1).squeeze(kRows + 1); };
  const Tensor carried = row_before(decaying_sums(last(total), last(own), rate), kRows);
  return blocks.merged(own + exp(total.unsqueeze(-1) * rate) * carried.unsqueeze(kRows + 1), kRows);
}

}  // namespace lc
