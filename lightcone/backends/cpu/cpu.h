// The CPU back end: a compiler that turns every node of a graph into kernels for this processor.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "lightcone/backends/cpu/jit/jit.h"
#include "lightcone/backends/cpu/target/target.h"
#include "lightcone/codegen/machine.h"
#include "lightcone/device/kernel.h"
#include "lightcone/passes/compiler.h"
#include "lightcone/passes/precision.h"

namespace lc {

// Options of cpu().
struct CpuOptions {
  int threads = 0;       // 0: one per core available to this process; 1: no thread is created
  bool compiler = true;  // false: the kernel IR is interpreted and no compiler is needed
  // Use Winograd's F(4x4, 3x3) for convolutions if it is faster. Its rounding errors are relative to the largest value
  // of a 6x6 tile of the image, so set it to false if an output must not depend on pixels outside its window.
  bool winograd = true;
  // Arithmetic of matrix products and convolutions.
  Precision precision = Precision::Highest;
  // Side of the tiles, in elements, in which loops read transposed operands; 0: chosen by the cache sizes where tiling
  // pays.
  std::int64_t tile_side = 0;
  // The processor for which kernels are selected and compiled; unset: this one. Kernels for a processor with extensions
  // that this one lacks (see backends::cpu::runs_here()) can be inspected, but running them throws Error.
  std::optional<backends::cpu::Target> target = {};
  // The machine profile that the schedule uses; unset: the profile of this machine (backends/cpu/machine.h).
  std::optional<Machine> machine = {};
  // Options of the C compiler and its cache.
  backends::cpu::JitOptions jit = {};
};

// Returns the compiler of the CPU back end. Loops are compiled by the system's C compiler or, if there is none or it
// does not work, by LLVM's library; compiled kernels are cached on disk. Without either, loops are interpreted, 2 to 18
// times slower, and Program::notes() reports it. A compiler that the user named (JitOptions, LIGHTCONE_CC) is never
// replaced: Error is thrown if it does not work. Matrix products use the library's own microkernels. Throws Error if
// options.threads is negative.
Compiler cpu(CpuOptions options = {});

// Lowers several graphs with one call of the compiler. `log`, if not null, receives counts of compiled units and notes.
std::vector<Graph> cpu_batch(std::vector<const Graph*> graphs, const CpuOptions& options = {}, PassLog* log = nullptr);

}  // namespace lc
