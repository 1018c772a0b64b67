// Rounds an image to pairs of bf16, and gathers pairs.
#include <algorithm>

#include "lightcone/backends/cpu/kernels/abi/conv_abi.h"
#include "lightcone/backends/cpu/kernels/dense/dense.inl.h"
#include "lightcone/backends/cpu/kernels/vectors/entry.inl.h"

namespace lc::backends::cpu {
namespace {

inline vf rounded_pairs(vf even, vf odd) { return reinterpret_cast<vf>(bf16_words(even, odd)); }

inline void put(std::uint32_t* to, vf v, i64 n) {
#if WIDTH == 16
  store_part(reinterpret_cast<float*>(to), v, n);
#else
  std::memcpy(to, &v, static_cast<std::size_t>(n) * 4);
#endif
}

// Rows of channels are software-prefetched, because they are in different pages, across which hardware does not
// prefetch.
constexpr i64 kAhead = 4;
void round(const float* image, const i64* from, i64 count, i64 step, i64 n, std::uint32_t* to, i64 row, i64 column,
           i64 group) {
  for (i64 k = 0; k < count; ++k) {
    const i64 ahead = k + kAhead < count ? from[2 * kAhead] : from[0];
    const float *even = image + *from++, *odd = image + (*from == kNoChannel ? 0 : *from);
    const bool both = *from++ != kNoChannel;
    const float* next = image + ahead;
    for (i64 i = 0, m = 0; i < n; i += m) {
      const i64 lane = (column + i) % WIDTH, c = column + i;
      m = std::min(WIDTH - lane, n - i);
      __builtin_prefetch(next + i * step);
      __builtin_prefetch(next + (odd - even) + i * step);
      const vf second = both ? load_some(odd + i * step, step, 0, m) : vf{};
      put(to + c / kGroup * group + k * row + c % kGroup, rounded_pairs(load_some(even + i * step, step, 0, m), second),
          m);
    }
  }
}

void gather(const std::uint32_t* from, const i64* at, i64 count, i64 n, std::uint32_t* to) {
  if (n == kGroup)
    for (i64 k = 0; k < count; ++k) std::memcpy(to + k * kGroup, from + at[k], kGroup * 4);
  else
    for (i64 k = 0; k < count; ++k)
#if WIDTH == 16
      store_part(reinterpret_cast<float*>(to + k * kGroup), load_part(reinterpret_cast<const float*>(from + at[k]), n),
                 n);
#else
      std::memcpy(to + k * kGroup, from + at[k], static_cast<std::size_t>(n) * 4);
#endif
}

void move(const float* from, i64 from_row, i64 rows, i64 n, float* to, i64 to_row) {
  for (i64 r = 0; r < rows; ++r, from += from_row, to += to_row)
    for (i64 i = 0; i < n; i += WIDTH) {
      const i64 m = std::min<i64>(WIDTH, n - i);
      store_part(to + i, load_part(from + i, m), m);
    }
}

}  // namespace

extern "C" {
void LC_ENTRY(conv_nchw_bf16_round)(const float* image, const i64* from, i64 count, i64 step, i64 n, std::uint32_t* to,
                                    i64 row, i64 column, i64 group) {
  round(image, from, count, step, n, to, row, column, group);
}
void LC_ENTRY(conv_nchw_bf16_gather)(const std::uint32_t* from, const i64* at, i64 count, i64 n, std::uint32_t* to) {
  gather(from, at, count, n, to);
}
void LC_ENTRY(conv_nchw_bf16_move)(const float* from, i64 from_row, i64 rows, i64 n, float* to, i64 to_row) {
  move(from, from_row, rows, n, to, to_row);
}
}

const NchwBf16Table TABLE = {LC_ENTRY(conv_nchw_bf16_round), LC_ENTRY(conv_nchw_bf16_gather),
                             LC_ENTRY(conv_nchw_bf16_move)};

}  // namespace lc::backends::cpu
