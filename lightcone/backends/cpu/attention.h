// softmax(scale * Q K^T, masked) V without the scores ever being in memory: blocks of rows walk over
// tiles of keys with a running maximum and a running sum (online softmax).
//
// A row is a query of any head that shares its keys with the others of the block, so grouped heads
// read each key once. Blocks, tiles and splits of the keys depend on sizes alone: the same bits for
// any number of threads. Masked tiles are skipped where that cannot be seen in the result.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "lightcone/backends/cpu/gemm.h"

namespace lc::host {

// How keys and values are stored. I8 may come with a scale for each key.
enum class CacheType : std::uint8_t { F32, F16, BF16, I8 };
constexpr std::int64_t cache_bytes(CacheType t) { return t == CacheType::F32 ? 4 : t == CacheType::I8 ? 1 : 2; }

inline constexpr int kAttentionSteps = 4;  // at most, between the two products
inline constexpr int kAttentionAxes = 8;   // at most, of the result
inline constexpr int kAttentionRows = 32;  // at most, in one block
inline constexpr int kAttentionTile = 64;  // keys at most, in one tile

// What happens to a score on its way into the softmax.
struct AttentionStep {
  enum Kind : std::uint8_t {
    Scale,  // times `value`
    Shift,  // plus `value`
    Bias,   // plus a number read from memory
    Mask,   // `value`, where what is read from memory says so
  };
  Kind kind = Scale;
  float value = 0;
  bool keep = true;      // Mask: scores stay where memory holds this
  std::int64_t key = 0;  // stride from a key to the next, in elements
};

struct AttentionProblem {
  std::int64_t keys = 0, depth = 0, width = 0;                  // depth of Q and K, width of V
  std::int64_t q_depth = 0;                                     // strides in elements
  std::int64_t k_key = 0, k_depth = 0, v_key = 0, v_width = 0;  // of one key, along one key
  std::int64_t k_scale_key = 0, v_scale_key = 0;
  CacheType k_type = CacheType::F32, v_type = CacheType::F32;
  float scale = 1;           // of a product, before the steps
  float exponent = 1;        // the softmax is of 2^(exponent * score)
  int steps = 0, skips = 0;  // from step `skips` on a masked score stays minus infinity
  std::array<AttentionStep, kAttentionSteps> step;
};

// Some rows against a range of keys.
struct AttentionBlock {
  const AttentionProblem* problem = nullptr;
  std::int64_t rows = 0, begin = 0, end = 0;
  const std::byte *k = nullptr, *v = nullptr;
  const float *k_scale = nullptr, *v_scale = nullptr;  // of a key; null: 1
  const float* q[kAttentionRows];
  const std::byte* step[kAttentionSteps][kAttentionRows];
  float* out[kAttentionRows];
  float* partial = nullptr;  // instead of `out`: a row's weighted sum, its maximum, its sum of weights
  float* scratch = nullptr;
};

// One instruction set's functions.
struct AttentionTable {
  int rows, tile;  // of a block, keys of a tile
  void (*block)(const AttentionBlock& b);
};
extern const AttentionTable kAttentionGeneric, kAttentionAvx2, kAttentionAvx512, kAttentionAvx512Bf16, kAttentionNeon;

// Floats of scratch of one worker.
constexpr std::int64_t attention_scratch(std::int64_t depth, std::int64_t width) {
  return (kAttentionRows + kAttentionTile) * (depth + width) + kAttentionRows * (kAttentionTile + 4) +
         2 * kAttentionTile + 64;
}

}  // namespace lc::host
