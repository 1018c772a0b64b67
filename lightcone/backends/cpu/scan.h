// Loops (ops/loop.h) on the CPU: the body is compiled once, and one kernel runs its kernels step after step. What
// depends on captured values alone, as packed weights do, is computed before the first step.
#pragma once

#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/passes/compiler.h"

namespace lc::backends::cpu {

// Gives each of them its kernel; the bodies are compiled by generic() and cpu(options).
Graph compile_loops(const Graph& g, PassLog& log, const CpuOptions& options, int workers);

}  // namespace lc::backends::cpu
