// The forms in which kernels want a graph, as passes: nothing here changes a number.
#pragma once

#include "lightcone/passes/compiler.h"

namespace lc::lowering {

// Maxima over small windows become elementwise maxima of shifted views.
Graph unroll_windows(const Graph& g, PassLog& log);
bool has_windows(const Graph& g);  // to unroll
// Operands of library kernels, results and next states become whole: a view of them becomes a copy.
Graph make_contiguous(const Graph& g);

}  // namespace lc::lowering
