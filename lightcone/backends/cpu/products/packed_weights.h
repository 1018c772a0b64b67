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
// Rows missing in the last sixteen have zeros for scales or weights.
#pragma once

#include <memory>

#include "lightcone/backends/cpu/products/gemm.h"

namespace lc {
class HostKernel;
}  // namespace lc

namespace lc::host {

struct PackedLayout {
  int block = 0;                                    // k of one header; 0: the type is not packed
  int header = 0, scales = 0, codes = 0, high = 0;  // bytes: of a block, then of a step
  static constexpr int rows = 16, step = 32;
  constexpr int step_bytes() const { return scales + codes + high; }
  constexpr int block_bytes() const { return header + (block > step ? block / step : 1) * step_bytes(); }
  constexpr std::int64_t group_bytes(std::int64_t k) const { return (k + block - 1) / block * block_bytes(); }
};
constexpr PackedLayout packed_layout(WeightType t) {
  switch (t) {
    case WeightType::F32: return {1, 0, 0, 64, 0};
    case WeightType::F16: return {1, 0, 0, 32, 0};
    case WeightType::BF16: return {2, 0, 0, 64, 0};
    case WeightType::I8: return {64, 0, 0, 512, 0};
    case WeightType::Q8_0: return {32, 32, 0, 512, 0};
    case WeightType::Q4_0: return {32, 32, 0, 256, 0};
    case WeightType::Q4_K: return {256, 256, 0, 256, 0};
    case WeightType::Q5_K: return {256, 256, 0, 256, 64};
    case WeightType::Q6_K: return {256, 32, 32, 256, 128};
    default: return {};
  }
}
constexpr bool packed_has_minima(WeightType t) { return t == WeightType::Q4_K || t == WeightType::Q5_K; }
constexpr std::int64_t packed_bytes(WeightType t, std::int64_t n, std::int64_t k) {
  return (n + PackedLayout::rows - 1) / PackedLayout::rows * packed_layout(t).group_bytes(k);
}

// [n, k] as the checkpoint has it, or f32 as [k, n] -> packed_bytes() bytes. `to` is `from`, or bf16 for f32.
std::shared_ptr<HostKernel> pack_kernel(WeightType from, WeightType to, std::int64_t n, std::int64_t k,
                                        bool transposed);

}  // namespace lc::host
