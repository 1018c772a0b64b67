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

}  // namespace lc::lowering
