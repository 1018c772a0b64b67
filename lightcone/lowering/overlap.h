// Lets kernels run while others exchange numbers with other ranks (XLA's asynchronous collectives and latency-hiding
// scheduler).
#pragma once

#include "lightcone/passes/compiler.h"

namespace lc::lowering {

// Splits each kernel that has halves (device/halves.h). Its start stays at its place, its wait moves down to the first
// reader of the result; at the latest it stands before a kernel that overwrites one of its operands. Readers on which no
// other exchange depends move to the end. What is under way at once is bounded: a start of more waits for the oldest.
// Halves between which nothing runs stay one kernel. The order of the starts is that of the kernels in `g`.
Graph overlap_exchanges(const Graph& g, PassLog& log);
// Returns true if the graph has a kernel with halves.
bool has_exchanges(const Graph& g);

}  // namespace lc::lowering
