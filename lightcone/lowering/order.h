// The order of kernels, which is the order of their nodes.
#pragma once

#include "lightcone/passes/compiler.h"

namespace lc::lowering {

// Moves large state updates right after the last node that they depend on, so that gradients and their operands can be
// freed early instead of living until the end of the graph. A kernel that writes a state also follows all readers of
// the state's previous value, so that it may overwrite it in place.
Graph schedule_state_updates(const Graph& g, PassLog& log);
// Returns true if the graph has an update that schedule_state_updates() would consider.
bool has_large_updates(const Graph& g);

// Lets kernels run while others exchange numbers with other ranks (XLA's asynchronous collectives and latency-hiding
// scheduler). Splits each kernel that has halves (device/halves.h). Its start stays at its place, its wait moves down
// to the first reader of the result; at the latest it stands before a kernel that overwrites one of its operands.
// Readers on which no other exchange depends move to the end. What is under way at once is bounded: a start of more
// waits for the oldest. Halves between which nothing runs stay one kernel. The order of the starts is that of the
// kernels in `g`.
Graph overlap_exchanges(const Graph& g, PassLog& log);
// Returns true if the graph has a kernel with halves.
bool has_exchanges(const Graph& g);

}  // namespace lc::lowering
