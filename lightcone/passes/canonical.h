// Canonicalisation passes for kernels. Results stay bit-identical.
#pragma once

#include "lightcone/passes/compiler.h"

namespace lc {

// Replaces maxima over small windows by elementwise maxima of shifted views.
Graph unroll_windows(const Graph& g, PassLog& log);
// Returns true if unroll_windows() may find a window.
bool has_windows(const Graph& g);
// Copies every view that is an operand of an opaque kernel, a result or a state's next value, so that these are
// contiguous and complete.
Graph make_contiguous(const Graph& g);

}  // namespace lc
