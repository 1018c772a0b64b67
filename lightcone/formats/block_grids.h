// Codebooks of ggml's block formats: the numbers that a code of few bits stands for. They are constants of the formats;
// ggml-common.h of https://github.com/ggml-org/ggml (MIT) is their source.
#pragma once

#include "lightcone/macros_off.h"

#include <cstdint>
#include <string_view>

namespace lc {

// A code names a level or, with a grid, an entry of `width` neighbours: number j of entry e is
// levels[grid[e] >> j * bits mod 2^bits].
struct QuantBook {
  std::string_view name = {};
  int width = 0, bits = 4, entries = 0;  // width 0: there is no book; entries 0: no grid
  std::int8_t levels[16] = {};
  const std::uint16_t* grid = nullptr;
  const std::uint64_t* numbers = nullptr;  // the entries as bytes, number 0 the lowest

  // The number of value k, whose code is `code`.
  constexpr int number(int code, int k) const {
    return levels[entries ? grid[code] >> (k % width * bits) & ((1 << bits) - 1) : code];
  }
};

namespace quant {
extern const std::uint16_t kGridIq1[2048], kGridIq2Xxs[256], kGridIq2Xs[512], kGridIq2S[1024], kGridIq3Xxs[256],
    kGridIq3S[512];
template <int N>
struct Numbers {
  std::uint64_t entries[N];
};
extern const Numbers<2048> kNumbersIq1;
extern const Numbers<1024> kNumbersIq2S;
extern const Numbers<512> kNumbersIq2Xs, kNumbersIq3S;
extern const Numbers<256> kNumbersIq2Xxs, kNumbersIq3Xxs;
inline constexpr QuantBook kIq4{
    "iq4", 1, 4, 0, {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}},
    kFp4{"fp4", 1, 4, 0, {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}},  // FP4 (E2M1), doubled
    kIq1{"iq1", 8, 2, 2048, {-8, 0, 8}, kGridIq1, kNumbersIq1.entries},
    kIq2Xxs{"iq2_xxs", 8, 2, 256, {8, 25, 43}, kGridIq2Xxs, kNumbersIq2Xxs.entries},
    kIq2Xs{"iq2_xs", 8, 2, 512, {8, 25, 43}, kGridIq2Xs, kNumbersIq2Xs.entries},
    kIq2S{"iq2_s", 8, 2, 1024, {8, 25, 43}, kGridIq2S, kNumbersIq2S.entries},
    kIq3Xxs{"iq3_xxs", 4, 3, 256, {4, 12, 20, 28, 36, 44, 52, 62}, kGridIq3Xxs, kNumbersIq3Xxs.entries},
    kIq3S{"iq3_s", 4, 3, 512, {1, 3, 5, 7, 9, 11, 13, 15}, kGridIq3S, kNumbersIq3S.entries};
}  // namespace quant

}  // namespace lc
#include "lightcone/macros_on.h"
