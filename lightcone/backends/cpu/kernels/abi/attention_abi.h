// The interface of attention's microkernels: one block of rows times a range of keys, and the parts of the gradients.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lightcone/formats/cache_type.h"

namespace lc::backends::cpu {

inline constexpr int kAttentionRows = 32;   // maximum rows of a block
inline constexpr int kAttentionTile = 64;   // maximum keys of a tile
inline constexpr int kAttentionBlocks = 4;  // maximum blocks that share tiles of keys and values
inline constexpr int kScoreSteps = 4;       // maximum steps between the two products

// One operation on a score between the first product and the softmax.
struct ScoreStep {
  enum Kind : std::uint8_t {
    Scale,  // score * value
    Shift,  // score + value
    Bias,   // score + a number read from memory
    Mask,   // select(condition read from memory, score, value); `keep` gives the polarity
  };
  Kind kind = Scale;
  float value = 0;
  bool keep = true;      // Mask: the condition under which a score is kept
  std::int64_t key = 0;  // stride between keys, in elements
};

// Types, sizes and strides in elements that all blocks of one run share.
struct AttentionProblem {
  CacheType k_type = CacheType::F32, v_type = CacheType::F32;
  float scale = 1;           // factor of Q * K, applied before the steps
  float exponent = 1;        // weights are 2^(exponent * score), normalised
  int steps = 0, skips = 0;  // from step `skips` on, all steps are masks with -inf, so a masked score ends as -inf
  ScoreStep step[kScoreSteps];
  std::int64_t keys = 0, depth = 0, width = 0;  // depth of Q and K, width of V
  std::int64_t q_depth = 0;
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
  const std::byte* step[kScoreSteps][kAttentionRows];
  float* out[kAttentionRows];
  float* partial = nullptr;  // replaces `out`: per row a weighted sum, the maximum, the sum of weights
  float* scratch = nullptr;  // attention_scratch() floats
};

// Floats of a row of weighted sums: whole rows of tile registers.
constexpr std::int64_t padded_width(std::int64_t width) { return (width + 15) / 16 * 16; }
// Scratch of one worker, in floats: what blocks have of their own, and what they share.
constexpr std::int64_t attention_scratch(std::int64_t depth, std::int64_t width) {
  const std::int64_t block = kAttentionRows * (kAttentionTile + depth + padded_width(width) + 3);
  return kAttentionBlocks * block + kAttentionTile * (depth + width + 1) + 128;
}

// Functions per instruction set.
struct AttentionTable {
  int rows, tile, together;  // rows of a block, keys of a tile, and blocks that share tiles
  // Computes up to `together` blocks with the same keys and values. Which blocks are computed together changes no bit.
  void (*blocks)(const AttentionBlock* b, int count);
};
extern const AttentionTable kAttentionGeneric, kAttentionAvx2, kAttentionAvx512, kAttentionAvx512Bf16, kAttentionNeon;
// Many rows on tile registers, from this depth on.
extern const AttentionTable kAttentionAmx, kAttentionEmulated;
inline constexpr std::int64_t kLeastDepthOnTiles = 16;

// Functions per instruction set for the gradients.
struct AttentionGradientsTable {
  int mr, nr, width;  // rows and columns of a tile; vector lanes
  // C[rows <= mr, columns] (+)= A * B. A's element (r, k) is a[r * a_row + k * a_step].
  // B's row k begins at b + k * b_row.
  void (*products)(const float* a, std::int64_t a_row, std::int64_t a_step, const float* b, std::int64_t b_row,
                   std::int64_t depth, float* c, std::int64_t c_row, std::int64_t rows, std::int64_t columns, bool add);
  // Turns n scores, a multiple of `width`, into probabilities proportional to 2^(exponent * (score - maximum)). Returns
  // their sum before normalization.
  float (*weigh)(float* scores, std::int64_t n, float exponent);
  // slope = p * (slope - sum of p * slope) * scale.
  void (*slopes)(const float* p, float* slope, std::int64_t n, float scale);
};
extern const AttentionGradientsTable kAttentionGradientsGeneric, kAttentionGradientsAvx2, kAttentionGradientsAvx512;

}  // namespace lc::backends::cpu
