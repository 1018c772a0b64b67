// How exact matrix products are: a wish that every back end reads.
#pragma once

#include <cstdint>

namespace lc {

// How exact matrix products are, as torch.set_float32_matmul_precision has it. Sums are f32 always.
//   Highest  operands as they are; on a CPU with AMX f32 is split into three bf16 where that is faster, no less exact
//            than f32, for numbers of any size
//   High     f32 split into two bf16 where that is faster (AMX), 16 bits of mantissa; by CUDA's tensor cores TF32, 10
//   bits;
//            otherwise as Highest
//            (What is faster is decided for a program, by the bounds of its sizes, never by the batch at hand.)
//   Medium   operands rounded to bf16 where the CPU multiplies it faster than f32, and f32 weights kept so; block
//            formats (Q8_0, Q4_K, ...) against activations rounded to 8 bits with a scale for every 32 (16), as
//            llama.cpp has it. Attention of prompts too rounds to bf16 where AVX-512 multiplies it faster. Up to four
//            rows (decoding) activations stay f32, but for Q8_0, Q4_0, Q4_K, Q5_K and Q6_K parameters: there a row
//            has the same bits alone and among many.
enum class Precision : std::uint8_t { Highest, High, Medium };

}  // namespace lc
