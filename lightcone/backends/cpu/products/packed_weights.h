// Weights repacked for streaming: sixteen rows side by side, so that a vector lane is a row.
//
// A product then reads one stream a thread and needs no horizontal sums. Packing happens once, when a
// parameter is loaded. For every 16 rows, along k:
//
//   block formats  block:  d f16[16]; Q4_K, Q5_K: d_min f16[16], u32[3][16] the file's scales and minima
//                  step of 32 k:  Q6_K: scales, two i8[16]; low nibbles u32[4][16], nibble j of word v for k = 8 v + j;
//                  Q5_K: the fifth bits u32[16]; Q6_K: upper bit pairs u32[2][16]
//                  Q8_0: codes + 128 as u8[8][16][4], k = 4 v + j: the order of the dot products of bytes
//   bf16           [k / 2][16][2]: the order of the dot products of pairs; an odd k ends with zeros
//   i8             codes + 128 as u8[k / 4][16][4], filled up to 64 k
//   f16, f32       [k][16]; f32 is what a matrix product's tile reads as it is
//
// Rows missing in the last sixteen have zeros for scales or weights. weight_formats.h has the sizes.
#pragma once

#include <memory>

#include "lightcone/backends/cpu/products/gemm.h"
#include "lightcone/backends/cpu/products/weight_formats.h"

namespace lc {
class HostKernel;
}  // namespace lc

namespace lc::backends::cpu {

// [n, k] as the checkpoint has it, or f32 as [k, n] -> packed_bytes() bytes. `to` is `from`, or bf16 for f32.
std::shared_ptr<HostKernel> pack_kernel(WeightType from, WeightType to, std::int64_t n, std::int64_t k,
                                        bool transposed);

}  // namespace lc::backends::cpu
