// Keeps values in bf16 that are read by kernels alone that would round them.
#pragma once

#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/passes/compiler.h"

namespace lc::backends::cpu {

// At Precision::Medium convolutions, and products on tile registers, round what they read to bf16. Values that nothing
// else reads are rounded where they are computed instead, so that half the bytes are written and read. Maxima and
// selections may lie between: rounding is monotonic, so the results have the same bits. XLA has a pass of this name.
Graph bf16_propagation(const Graph& g, PassLog& log, const CpuOptions& options);
// Returns false if there is nothing to keep, which is cheaper to tell.
bool may_propagate_bf16(const Graph& g, Precision precision, const Target& target);

}  // namespace lc::backends::cpu
