// Loops (ops/loop.h) on the CPU. The body is compiled once, and one kernel runs the body's kernels step after step.
// Values that depend on captured values alone, such as packed weights, are computed before the first step.
#pragma once

#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/passes/compiler.h"

namespace lc::backends::cpu {

// Gives each loop composite of `g` its kernel. Bodies are compiled by generic() and cpu(options).
Graph compile_loops(const Graph& g, PassLog& log, const CpuOptions& options, int workers);

}  // namespace lc::backends::cpu
