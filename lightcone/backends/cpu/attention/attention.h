// softmax(scale * Q K^T, masked) V without materializing the scores: blocks of rows iterate over tiles of keys with a
// running maximum and a running sum (online softmax).
//
// A row is a query of any head that shares its keys with the others of the block, so grouped heads read each key once.
// Blocks, tiles and splits of the keys depend on sizes alone, so results have the same bits for any number of threads.
// Masked tiles are skipped if the result cannot differ.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "lightcone/backends/cpu/products/gemm.h"
#include "lightcone/lowering/attention.h"
#include "lightcone/passes/precision.h"

namespace lc {
class HostKernel;
}  // namespace lc

namespace lc::backends::cpu {

using lowering::AttentionStep;
using lowering::cache_bytes;
using lowering::CacheType;
using lowering::kAttentionAxes;
using lowering::kAttentionSteps;

inline constexpr int kAttentionRows = 32;  // maximum rows of a block
inline constexpr int kAttentionTile = 64;  // maximum keys of a tile

// Sizes and strides that all blocks of one run share.
struct AttentionProblem : lowering::AttentionScores {
  std::int64_t keys = 0, depth = 0, width = 0;                  // depth of Q and K, width of V
  std::int64_t q_depth = 0;                                     // strides in elements
  std::int64_t k_key = 0, k_depth = 0, v_key = 0, v_width = 0;  // between keys, and within a key
  std::int64_t k_scale_key = 0, v_scale_key = 0;
};

// A block: some rows times a range of keys [begin, end).
struct AttentionBlock {
  const AttentionProblem* problem = nullptr;
  std::int64_t rows = 0, begin = 0, end = 0;
  const std::byte *k = nullptr, *v = nullptr;
  const float *k_scale = nullptr, *v_scale = nullptr;  // a scale per key; null: 1
  const float* q[kAttentionRows];
  const std::byte* step[kAttentionSteps][kAttentionRows];
  float* out[kAttentionRows];
  float* partial = nullptr;  // replaces `out`: per row a weighted sum, the maximum, the sum of weights
  float* scratch = nullptr;
};

// Functions per instruction set.
struct AttentionTable {
  int rows, tile;  // rows of a block, keys of a tile
  void (*block)(const AttentionBlock& b);
};
extern const AttentionTable kAttentionGeneric, kAttentionAvx2, kAttentionAvx512, kAttentionAvx512Bf16, kAttentionNeon;

// Scratch of one worker, in floats.
constexpr std::int64_t attention_scratch(std::int64_t depth, std::int64_t width) {
  return (kAttentionRows + kAttentionTile) * (depth + width) + kAttentionRows * (kAttentionTile + 4) +
         2 * kAttentionTile + 64;
}

// Makes the kernel of a matched attention.
std::shared_ptr<HostKernel> attention_kernel(lowering::Attention match, const Target& target, Precision precision);

}  // namespace lc::backends::cpu
