// The order of kernels, which is that of their nodes.
#pragma once

#include "lightcone/passes/compiler.h"

namespace lc::lowering {

// Where much memory depends on it, a state gets its next value as soon as that is possible and not where the graph
// happens to say it, behind all else: what a gradient was made of, and the gradient itself, need not be kept until
// then. A kernel that writes a state follows those that read its value of before, so that it may still write over it.
Graph schedule_state_updates(const Graph& g, PassLog& log);
bool has_large_updates(const Graph& g);

}  // namespace lc::lowering
