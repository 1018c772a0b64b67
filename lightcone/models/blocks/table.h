// Small tables of numbers in a graph: frequencies of RoPE, slopes of ALiBi.
#pragma once

#include <vector>

#include "lightcone/core/tensor.h"

namespace lc {

// The values as f64 [values.size()]. Numbers above 0 with equal ratios are computed from their position, others are
// chosen by it, so a table takes no memory and needs no input. Throws Error for an empty table.
Tensor table_of(Graph& g, const std::vector<double>& values);

}  // namespace lc
