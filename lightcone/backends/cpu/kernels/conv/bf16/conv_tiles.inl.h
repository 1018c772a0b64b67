// Convolutions on tile registers. TILES is a class of tiles.inl.h. A row of a register of the image is 32 channels of a
// pixel, neighbouring rows are neighbouring pixels, and a tap is a shift.
#include <cstring>

#include "lightcone/backends/cpu/kernels/abi/conv_abi.h"
#include "lightcone/backends/cpu/kernels/vectors/entry.inl.h"
#include "lightcone/backends/cpu/kernels/vectors/tiles.inl.h"
#include "lightcone/backends/cpu/kernels/vectors/vector.inl.h"

namespace lc::backends::cpu {
namespace {

constexpr int kTileBytes = 1024, kTileFloats = 256;

// Two registers of pixels times two of output channels.
void tile_pair(const std::byte* const* pixels, const i64* at, i64 steps, i64 step, const std::byte* w, float* sums,
               bool add, TilesAhead& ahead) {
  if (add) {
    TILES::load<0>(sums, 64), TILES::load<1>(sums + kTileFloats, 64);
    TILES::load<2>(sums + 2 * kTileFloats, 64), TILES::load<3>(sums + 3 * kTileFloats, 64);
  } else {
    TILES::zero<0>(), TILES::zero<1>(), TILES::zero<2>(), TILES::zero<3>();
  }
  for (i64 k = 0; k < steps; ++k, w += 2 * kTileBytes) {
    TILES::load<6>(w, 64);
    TILES::load<4>(pixels[0] + at[k], step);
    TILES::dot_bf16<0, 4, 6>();
    TILES::load<7>(w + kTileBytes, 64);
    TILES::dot_bf16<1, 4, 7>();
    TILES::load<5>(pixels[1] + at[k], step);
    TILES::dot_bf16<2, 5, 6>();
    if (ahead.from < ahead.end) {
      for (i64 i = 0; i < ahead.step; i += 64) __builtin_prefetch(ahead.from + i, 0, 2);
      ahead.from += ahead.step;
    }
    TILES::dot_bf16<3, 5, 7>();
  }
  TILES::store<0>(sums, 64), TILES::store<1>(sums + kTileFloats, 64);
  TILES::store<2>(sums + 2 * kTileFloats, 64), TILES::store<3>(sums + 3 * kTileFloats, 64);
}

void round_pixels(const float* from, i64 from_pixel, i64 n, i64 channels, std::byte* to, i64 plane) {
  for (i64 p = 0; p < n; ++p, from += from_pixel, to += 64) {
    i64 c = 0;
    for (; c + 32 <= channels; c += 32) round_to_bf16(from + c, to + c / 32 * plane);
    if (c == channels) continue;
    float rest[32] = {};
    std::memcpy(rest, from + c, static_cast<std::size_t>(channels - c) * 4);
    round_to_bf16(rest, to + c / 32 * plane);
  }
}

void round_few(const float* from, i64 from_pixel, i64 channel, i64 n, i64 channels, std::byte* to) {
  for (i64 p = 0; p < n; p += WIDTH, from += WIDTH * from_pixel, to += WIDTH * 8) {
    const i64 some = std::min<i64>(WIDTH, n - p);
    vf c[4] = {};
    for (i64 k = 0; k < channels; ++k) {
      if (from_pixel == 1) c[k] = load_part(from + k * channel, some);
      else
        for (i64 i = 0; i < some; ++i) c[k][i] = from[i * from_pixel + k * channel];
    }
    const auto low = reinterpret_cast<vf>(bf16_words(c[0], c[1])), high = reinterpret_cast<vf>(bf16_words(c[2], c[3]));
    auto* out = reinterpret_cast<float*>(to);
    store_part(out, lanes(low, high, [](int i) { return i % 2 * WIDTH + i / 2; }), std::min<i64>(WIDTH, 2 * some));
    if (2 * some > WIDTH)
      store_part(out + WIDTH, lanes(low, high, [](int i) { return i % 2 * WIDTH + (WIDTH + i) / 2; }),
                 2 * some - WIDTH);
  }
}

void put_pixels(const float* sums, i64 first, i64 rows, i64 columns, float* out, i64 out_row, bool streamed) {
#if WIDTH == 16
  if (streamed && columns == 32 && reinterpret_cast<std::uintptr_t>(out) % 64 == 0 && out_row % 16 == 0) {
    for (i64 r = first; r < rows; ++r, out += out_row) {
      _mm512_stream_ps(out, _mm512_load_ps(sums + r * 16));
      _mm512_stream_ps(out + 16, _mm512_load_ps(sums + kTileFloats + r * 16));
    }
    return;
  }
#endif
  static_cast<void>(streamed);
  const auto low = static_cast<std::size_t>(columns < 16 ? columns : 16) * 4,
             all = static_cast<std::size_t>(columns) * 4;
  for (i64 r = first; r < rows; ++r, out += out_row) {
    std::memcpy(out, sums + r * 16, low);
    std::memcpy(out + 16, sums + kTileFloats + r * 16, all - low);
  }
}

// Every row-th of n <= WIDTH numbers.
vf every(const float* from, i64 row, i64 n) {
#if WIDTH == 16
  const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const __m512i at = _mm512_mullo_epi32(lane, _mm512_set1_epi32(static_cast<int>(row)));
  const auto mask = static_cast<__mmask16>((1u << n) - 1);
  return reinterpret_cast<vf>(_mm512_mask_i32gather_ps(_mm512_setzero_ps(), mask, at, from, 4));
#else
  alignas(64) float v[WIDTH] = {};
  for (i64 i = 0; i < n; ++i) v[i] = from[i * row];
  return load(v);
#endif
}
float as_float(bf16 v) { return bf16_to_f32(v.bits); }
float as_float(f16 v) { return f16_to_f32(v.bits); }
template <class T>
vf every(const T* from, i64 row, i64 n) {
  alignas(64) float v[WIDTH] = {};
  for (i64 i = 0; i < n; ++i) v[i] = as_float(from[i * row]);
  return load(v);
}

template <class T>
void round_filters(const void* numbers, const i64* at, i64 row, i64 rows, std::byte* to) {
  const T* from = static_cast<const T*>(numbers);
  for (i64 p = 0; p < 16; ++p, at += 2)
    for (i64 r = 0; r < 32; r += WIDTH) {
      const i64 n = rows <= r ? 0 : rows - r < WIDTH ? rows - r : WIDTH;
      const auto numbers = [&](i64 offset) {
        return offset == kNoChannel ? vf{} : every(from + offset + r * row, row, n);
      };
      store(reinterpret_cast<float*>(to + r / 16 * kTileBytes + p * 64 + r % 16 * 4),
            reinterpret_cast<vf>(bf16_words(numbers(at[0]), numbers(at[1]))));
    }
}

}  // namespace

extern "C" {
void LC_ENTRY(conv_tiles_begin)(int rows, int row_bytes) { TILES::begin({row_bytes, rows}); }
void LC_ENTRY(conv_tiles_end)() { TILES::end(); }
void LC_ENTRY(conv_tiles_tiles)(const std::byte* const* pixels, i64 pairs, const i64* at, i64 steps, i64 step,
                                const std::byte* weights, float* sums, bool add, TilesAhead* ahead) {
  for (i64 p = 0; p < pairs; ++p, pixels += 2, sums += 4 * kTileFloats)
    tile_pair(pixels, at, steps, step, weights, sums, add, *ahead);
}
void LC_ENTRY(conv_tiles_round)(const float* from, i64 from_pixel, i64 n, i64 channels, std::byte* to, i64 plane) {
  round_pixels(from, from_pixel, n, channels, to, plane);
}
void LC_ENTRY(conv_tiles_round_few)(const float* from, i64 from_pixel, i64 channel, i64 n, i64 channels,
                                    std::byte* to) {
  round_few(from, from_pixel, channel, n, channels, to);
}
void LC_ENTRY(conv_tiles_put)(const float* sums, i64 first, i64 rows, i64 columns, float* out, i64 out_row,
                              bool streamed) {
  put_pixels(sums, first, rows, columns, out, out_row, streamed);
}
void LC_ENTRY(conv_tiles_filters_f32)(const void* from, const i64* at, i64 row, i64 rows, std::byte* to) {
  round_filters<float>(from, at, row, rows, to);
}
void LC_ENTRY(conv_tiles_filters_bf16)(const void* from, const i64* at, i64 row, i64 rows, std::byte* to) {
  round_filters<bf16>(from, at, row, rows, to);
}
void LC_ENTRY(conv_tiles_filters_f16)(const void* from, const i64* at, i64 row, i64 rows, std::byte* to) {
  round_filters<f16>(from, at, row, rows, to);
}
}

const ConvTilesTable TABLE = {LC_ISA_NAME,
                              LC_ENTRY(conv_tiles_begin),
                              LC_ENTRY(conv_tiles_end),
                              LC_ENTRY(conv_tiles_tiles),
                              LC_ENTRY(conv_tiles_round),
                              LC_ENTRY(conv_tiles_round_few),
                              LC_ENTRY(conv_tiles_put),
                              LC_ENTRY(conv_tiles_filters_f32),
                              LC_ENTRY(conv_tiles_filters_bf16),
                              LC_ENTRY(conv_tiles_filters_f16)};

}  // namespace lc::backends::cpu
