// Precision: the accuracy of matrix products, requested of every back end.
#pragma once

#include <cstdint>

namespace lc {

// The accuracy of matrix products, like torch.set_float32_matmul_precision. Accumulation is always in f32.
//   Highest  Operands keep their precision. On a CPU with AMX, f32 is split into three bf16 where that is faster; this
//            is no less accurate than f32, for numbers of any size. Large weights of products that always have 256
//            rows or more are kept split, in 6.1 bytes a number.
//   High     f32 is split into two bf16 where that is faster (AMX): 16 bits of mantissa. CUDA's tensor cores use TF32
//            with 10 bits. Other devices use Highest.
//   Medium   Operands are rounded to bf16 where the CPU multiplies it faster than f32; f32 weights are kept so. With
//            AMX that includes the convolutions of a training step and their gradients.
//            Block formats (Q8_0, Q4_K, ...) are multiplied with activations rounded to 8 bits, with one scale per 32
//            (16) values, as in llama.cpp. Attention over prompts also rounds to bf16 where AVX-512 multiplies it
//            faster. For up to four rows (decoding) activations stay f32, except with Q8_0, Q4_0, Q4_K, Q5_K and Q6_K
//            parameters, for which a row has the same bits alone and in a batch. With AMX a program that may get 32
//            rows multiplies five rows and more by such parameters in bf16, and a row has other bits alone.
// Whether a method is faster is decided per program, from the bounds of its sizes, never from the current batch.
enum class Precision : std::uint8_t { Highest, High, Medium };

}  // namespace lc
