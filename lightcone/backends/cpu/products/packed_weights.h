// Weights repacked for streaming: 16 rows are interleaved, so that a vector lane is a row.
//
// A product then reads one stream per thread and needs no horizontal sums. Packing happens once, when a parameter is
// loaded. The layout of every 16 rows, along k:
//
//   block formats  block:  d f16[16]; Q4_K, Q5_K: d_min f16[16], u32[3][16] the file's scales and minima
//                  step of 32 k:  Q6_K: scales, two i8[16]; low nibbles u32[4][16], nibble j of word v for k = 8 v + j;
//                  Q5_K: the fifth bits u32[16]; Q6_K: upper bit pairs u32[2][16]
//                  Q8_0: codes + 128 as u8[8][16][4], k = 4 v + j: the order of int8 dot-product instructions
//   bf16           [k / 2][16][2]: the order of bf16 dot-product instructions; an odd k is padded with zeros
//   i8             codes + 128 as u8[k / 4][16][4], padded to a multiple of 64 k
//   f16, f32       [k][16]; f32 microkernels read f32 in this layout
//
// Missing rows of the last group have zeros as scales or weights. weight_formats.h has the sizes.
#pragma once

#include <memory>

#include "lightcone/backends/cpu/products/gemm.h"
#include "lightcone/backends/cpu/products/weight_formats.h"

namespace lc {
class HostKernel;
}  // namespace lc

namespace lc::backends::cpu {

// Packs a weight [n, k] as stored in the checkpoint, or f32 stored as [k, n] (`transposed`), into packed_bytes() bytes.
// `to` equals `from`, or is bf16 for f32.
std::shared_ptr<HostKernel> pack_kernel(WeightType from, WeightType to, std::int64_t n, std::int64_t k,
                                        bool transposed);

}  // namespace lc::backends::cpu
