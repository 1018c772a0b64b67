// The CPU back end: a compiler that turns every node into kernels for this processor.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "lightcone/backends/cpu/jit.h"
#include "lightcone/codegen/machine.h"
#include "lightcone/runtime/compiler.h"
#include "lightcone/runtime/kernel.h"

namespace lc {

// How exact matrix products are, as torch.set_float32_matmul_precision has it. Sums are f32 always.
//   Highest  operands as they are; on a CPU with AMX f32 is split into three bf16, no less exact than f32
//   High     f32 split into two bf16 where that is faster (AMX), 16 bits of mantissa; otherwise as Highest
//   Medium   operands rounded to bf16 where the CPU multiplies it faster than f32, and f32 weights kept so; block
//            formats (Q8_0, Q4_K, ...) against activations rounded to 8 bits with a scale for every 32 (16), as
//            llama.cpp has it. Attention of prompts too rounds to bf16 where AVX-512 multiplies it faster. Up to four
//            rows (decoding) activations stay f32, but for Q8_0, Q4_0, Q4_K, Q5_K and Q6_K parameters: there a row
//            has the same bits alone and among many.
enum class Precision : std::uint8_t { Highest, High, Medium };

struct CpuOptions {
  int threads = 0;       // 0: all cores this process may use; 1: no thread is made
  bool compiler = true;  // false: run the kernel IR by its interpreter, no compiler needed
  // Convolutions by Winograd's F(4x4, 3x3) where that is faster. Its rounding errors are relative to the
  // largest numbers of a 6x6 tile of the image: false where an output must not feel pixels it does not read.
  bool winograd = true;
  Precision precision = Precision::Highest;
  // Elements a side of the tiles by which transposed operands are read; 0: what fits the caches, where that pays.
  std::int64_t tile_side = 0;
  // What the schedule needs to know of the processor; none: this one's profile (backends/cpu/machine.h).
  std::optional<Machine> machine = {};
  host::JitOptions jit = {};
};

// Kernels compiled by the system's C compiler or, where there is none or it does not work, by LLVM's library (cached
// on disk), or, without either, run by the interpreter of the kernel IR, some 14 times slower: Program::notes() says
// so. A compiler that was named (JitOptions, LIGHTCONE_CC) is not replaced: it works, or there is an Error. Matrix
// products by the library's own micro-kernels.
Compiler cpu(CpuOptions options = {});

// Several graphs lowered with one call of the compiler. `log` gets what was compiled, and notes.
std::vector<Graph> cpu_batch(std::vector<const Graph*> graphs, const CpuOptions& options = {}, PassLog* log = nullptr);

}  // namespace lc
