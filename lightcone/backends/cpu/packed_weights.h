// Block weights repacked for streaming: sixteen rows side by side, so that a vector lane is a row.
//
// A decoder then needs no horizontal sums, reads scales of sixteen rows with one load, and makes
// weights of packed codes with a shift and a table lookup. Packing happens once, when a parameter is
// loaded. For every 16 rows, along k:
//
//   block:  d f16[16]; K formats with minima: d_min f16[16]
//   step of 32 k:  scales u8[16], minima u8[16] (Q6_K: two i8[16]); low nibbles u32[4][16], nibble j of
//                  word v for k = 8 v + j; Q5_K: the fifth bits u32[16]; Q6_K: upper bit pairs u32[2][16]
//
// Plain f32 is [k][16], and what a matrix product's tile reads as it is.
// Rows missing in the last sixteen have zeros for scales or values.
#pragma once

#include <memory>

#include "lightcone/backends/cpu/gemm.h"

namespace lc::host {

struct PackedLayout {
  int block = 0;                         // k of one header; 0: the type is not packed
  int header = 0, scales = 0, high = 0;  // bytes
  static constexpr int rows = 16, step = 32, nibbles = 256;
  constexpr int step_bytes() const { return scales + nibbles + high; }
  constexpr int block_bytes() const { return header + block / step * step_bytes(); }
  constexpr std::int64_t group_bytes(std::int64_t k) const { return k / block * block_bytes(); }
};
constexpr PackedLayout packed_layout(WeightType t) {
  switch (t) {
    case WeightType::F32: return {1, 64, 0, 0};
    case WeightType::Q4_0: return {32, 32, 0, 0};
    case WeightType::Q4_K: return {256, 64, 32, 0};
    case WeightType::Q5_K: return {256, 64, 32, 64};
    case WeightType::Q6_K: return {256, 32, 32, 128};
    default: return {};
  }
}
constexpr std::int64_t packed_bytes(WeightType t, std::int64_t n, std::int64_t k) {
  return (n + PackedLayout::rows - 1) / PackedLayout::rows * packed_layout(t).group_bytes(k);
}

// [n, k] in the checkpoint's blocks, or f32 as [n, k] or [k, n] -> packed_bytes() bytes.
std::shared_ptr<const Kernel> pack_kernel(WeightType t, std::int64_t n, std::int64_t k, bool transposed,
                                          std::shared_ptr<Parallel> p);

}  // namespace lc::host
