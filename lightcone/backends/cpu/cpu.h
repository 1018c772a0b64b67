// The CPU back end: a compiler that turns every node into kernels for this processor.
#pragma once

#include <memory>
#include <vector>

#include "lightcone/backends/cpu/jit.h"
#include "lightcone/runtime/compiler.h"
#include "lightcone/runtime/kernel.h"

namespace lc {

struct CpuOptions {
  int threads = 0;       // 0: all cores this process may use; 1: no thread is made
  bool compiler = true;  // false: run the kernel IR by its interpreter, no compiler needed
  host::JitOptions jit = {};
};

// Kernels compiled by the system's C compiler or, where there is none, by LLVM's library (cached on
// disk), or, without either, run by the interpreter of the kernel IR; matrix products by the library's own
// micro-kernels.
Compiler cpu(CpuOptions options = {});

// Several graphs lowered with one call of the compiler.
std::vector<Graph> cpu_batch(std::vector<const Graph*> graphs, const CpuOptions& options = {});

}  // namespace lc
