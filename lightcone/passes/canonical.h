// Canonicalisation passes for kernels. Results stay bit-identical, except for sums over windows, which are added in
// another order.
#pragma once

#include "lightcone/passes/compiler.h"

namespace lc {

// Replaces maxima and sums over small windows by elementwise maxima and sums of shifted views.
Graph unroll_windows(const Graph& g, PassLog& log);
// Returns true if unroll_windows() may find a window.
bool has_windows(const Graph& g);
// Copies every view that is an operand of an opaque kernel, a result or a state's next value, so that these are
// contiguous and complete.
Graph make_contiguous(const Graph& g);

}  // namespace lc
