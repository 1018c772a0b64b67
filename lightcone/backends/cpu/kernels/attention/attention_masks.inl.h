// The steps between the scores of a tile and the softmax: scales, shifts, biases and masks.
#pragma once

#include "lightcone/backends/cpu/kernels/abi/attention_abi.h"
#include "lightcone/backends/cpu/kernels/vectors/vector.inl.h"

namespace lc::backends::cpu {
namespace {

// Location of a tile's scores: row r of key j is p[r * row + j * key].
struct Scores {
  float* p;
  i64 row, key;
};

// How many keys of a tile the masks keep for each row.
struct Kept {
  int keys[kScoreSteps][kAttentionRows];
  bool nothing;  // no row keeps a key, and no later step unmasks one
};

// Counts the nonzero bytes among n.
int set_bytes(const std::byte* p, i64 n) {
  int set = 0;
  i64 j = 0;
#if WIDTH == 16
  for (; j + 64 <= n; j += 64) {
    const __m512i v = _mm512_loadu_si512(p + j);
    set += __builtin_popcountll(_mm512_test_epi8_mask(v, v));
  }
#elif WIDTH == 8 && defined(__AVX2__)
  for (; j + 32 <= n; j += 32) {
    const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + j));
    set += 32 - __builtin_popcount(
                    static_cast<unsigned>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(v, _mm256_setzero_si256()))));
  }
#endif
  for (; j < n; ++j) set += p[j] != std::byte{0};
  return set;
}

int count_unmasked(const ScoreStep& s, const std::byte* p, i64 n) {
  int set = 0;
  if (s.key == 1) set = set_bytes(p, n);
  else
    for (i64 j = 0; j < n; ++j) set += p[j * s.key] != std::byte{0};
  return s.keep ? set : static_cast<int>(n) - set;
}

void look_at_masks(const AttentionBlock& b, i64 j0, i64 n, Kept& k) {
  k.nothing = false;
  for (int i = 0; i < b.problem->steps; ++i) {
    const ScoreStep& s = b.problem->step[i];
    if (s.kind != ScoreStep::Mask) continue;
    int all = 0;
    for (i64 r = 0; r < b.rows; ++r) {
      const bool again = r > 0 && b.step[i][r] == b.step[i][r - 1];  // heads of a group share a mask
      k.keys[i][r] = again ? k.keys[i][r - 1] : count_unmasked(s, b.step[i][r] + j0 * s.key, n);
      all += k.keys[i][r];
    }
    if (all == 0 && i >= b.problem->skips) k.nothing = true;
  }
}

void mask_row(const ScoreStep& s, const std::byte* p, int keys, i64 n, float* to, i64 stride) {
  if (keys == n) return;
  i64 j = 0;
#if WIDTH == 16
  for (; s.key == 1 && j + 32 <= n; j += 32) {
    const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + j));
    std::uint32_t hide = _mm256_test_epi8_mask(v, v);
    if (s.keep) hide = ~hide;
    for (; hide; hide &= hide - 1) to[(j + __builtin_ctz(hide)) * stride] = s.value;
  }
#endif
  for (; j < n; ++j)
    if ((p[j * s.key] != std::byte{0}) != s.keep) to[j * stride] = s.value;
}

#if WIDTH == 16
// Masks all rows, each of them a lane. Bits of 32 keys of a row become those of 16 rows of a key.
void mask_lanes(const AttentionBlock& b, int step, i64 j0, i64 n, const Kept& k, Scores at) {
  constexpr i64 kKeys = 32;
  const ScoreStep& s = b.problem->step[step];
  const int* const kept = k.keys[step];
  for (i64 r = 0; r < b.rows; r += WIDTH) {
    const i64 rows = std::min<i64>(WIDTH, b.rows - r);
    if (std::all_of(kept + r, kept + r + rows, [&](int keys) { return keys == n; })) continue;
    for (i64 j = 0; j < n; j += kKeys) {
      const i64 keys = std::min<i64>(kKeys, n - j);
      const auto there = static_cast<std::uint32_t>((std::uint64_t{1} << keys) - 1);
      alignas(64) std::uint32_t hide[WIDTH] = {};
      for (i64 i = 0; i < rows; ++i) {
        const __m256i v = _mm256_maskz_loadu_epi8(there, b.step[step][r + i] + j0 + j);
        const std::uint32_t set = _mm256_test_epi8_mask(v, v);
        hide[i] = (s.keep ? ~set : set) & there;
      }
      const __m512i bits = _mm512_load_si512(hide);
      for (i64 t = 0; t < keys; ++t)
        _mm512_mask_storeu_ps(at.p + r + (j + t) * at.key, _mm512_test_epi32_mask(bits, _mm512_set1_epi32(1 << t)),
                              _mm512_set1_ps(s.value));
    }
  }
}
#endif

void apply_steps(const AttentionBlock& b, i64 j0, i64 n, const Kept& k, Scores at) {
  for (int i = 0; i < b.problem->steps; ++i) {
    const ScoreStep& s = b.problem->step[i];
#if WIDTH == 16
    if (s.kind == ScoreStep::Mask && s.key == 1 && at.row == 1) {
      mask_lanes(b, i, j0, n, k, at);
      continue;
    }
#endif
    for (i64 r = 0; r < b.rows; ++r) {
      float* to = at.p + r * at.row;
      const std::byte* from = b.step[i][r];
      switch (s.kind) {
        case ScoreStep::Scale:
          for (i64 j = 0; j < n; ++j) to[j * at.key] *= s.value;
          break;
        case ScoreStep::Shift:
          for (i64 j = 0; j < n; ++j) to[j * at.key] += s.value;
          break;
        case ScoreStep::Bias:
          for (i64 j = 0; j < n; ++j) to[j * at.key] += reinterpret_cast<const float*>(from)[(j0 + j) * s.key];
          break;
        case ScoreStep::Mask: mask_row(s, from + j0 * s.key, k.keys[i][r], n, to, at.key); break;
      }
    }
  }
}

}  // namespace
}  // namespace lc::backends::cpu
