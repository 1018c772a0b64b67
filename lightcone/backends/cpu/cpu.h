// The CPU back end: a compiler that turns every node into kernels for this processor.
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

struct CpuOptions {
  int threads = 0;       // 0: all cores this process may use; 1: no thread is made
  bool compiler = true;  // false: run the kernel IR by its interpreter, no compiler needed
  // Convolutions by Winograd's F(4x4, 3x3) where that is faster. Its rounding errors are relative to the
  // largest numbers of a 6x6 tile of the image: false where an output must not feel pixels it does not read.
  bool winograd = true;
  Precision precision = Precision::Highest;
  // Elements a side of the tiles by which transposed operands are read; 0: what fits the caches, where that pays.
  std::int64_t tile_side = 0;
  // The processor that kernels are chosen and compiled for; none: this one. What is compiled for one that has more than
  // this one (backends::cpu::runs_here()) may be looked at; running it is an Error.
  std::optional<backends::cpu::Target> target = {};
  // What the schedule needs to know of the processor; none: this one's profile (backends/cpu/machine.h).
  std::optional<Machine> machine = {};
  backends::cpu::JitOptions jit = {};
};

// Kernels compiled by the system's C compiler or, where there is none or it does not work, by LLVM's library (cached
// on disk), or, without either, run by the interpreter of the kernel IR, 2 to 18 times slower: Program::notes() says
// so. A compiler that was named (JitOptions, LIGHTCONE_CC) is not replaced: it works, or there is an Error. Matrix
// products by the library's own micro-kernels.
Compiler cpu(CpuOptions options = {});

// Several graphs lowered with one call of the compiler. `log` gets what was compiled, and notes.
std::vector<Graph> cpu_batch(std::vector<const Graph*> graphs, const CpuOptions& options = {}, PassLog* log = nullptr);

}  // namespace lc
