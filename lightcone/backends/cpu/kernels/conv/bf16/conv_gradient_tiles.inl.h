// Gradients of filters on tile registers. TILES is a class of tiles.inl.h. A row of a register of the cotangent is one
// channel, and its words are pairs of images at some pixels; a row of a register of the image is such a word of 16
// channels. A tap is a shift of the image by whole pixels.
#include "lightcone/backends/cpu/kernels/abi/conv_abi.h"
#include "lightcone/backends/cpu/kernels/vectors/entry.inl.h"
#include "lightcone/backends/cpu/kernels/vectors/tiles.inl.h"
#include "lightcone/backends/cpu/kernels/vectors/vector.inl.h"

namespace lc::backends::cpu {
namespace {

constexpr int kTileBytes = 1024, kTileFloats = 256;

// The words of channels [c, c + WIDTH) of a pixel of images 2 * pair and 2 * pair + 1.
inline vf words(const ImagePixels& p, i64 pixel, i64 pair, i64 c) {
  const i64 there = p.channels - c < WIDTH ? p.channels - c : WIDTH;
  if (there <= 0 || 2 * pair >= p.images) return vf{};
  const float* even = p.from + 2 * pair * p.image + pixel * p.pixel + c;
  const vf odd = 2 * pair + 1 < p.images ? load_part(even + p.image, there) : vf{};
  return reinterpret_cast<vf>(bf16_words(load_part(even, there), odd));
}

void round_image(const ImagePixels& p, i64 pairs, std::byte* to, i64 to_pixel, i64 plane) {
  for (i64 x = 0; x < p.count; ++x, to += to_pixel)
    for (i64 c = 0; c < p.channels; c += 16)
      for (i64 pair = 0; pair < pairs; ++pair)
        for (i64 v = 0; v < 16; v += WIDTH)
          store(reinterpret_cast<float*>(to + c / 16 * plane + pair * 64 + v * 4), words(p, x, pair, c + v));
}

void round_cotangent(const ImagePixels& p, i64 pairs, std::byte* to, i64 plane) {
  for (i64 c = 0; c < (p.channels + 15) / 16 * 16; c += WIDTH)
    for (i64 w = 0; w < 16; w += WIDTH) {
      vf v[WIDTH];
      for (i64 i = 0; i < WIDTH; ++i) {
        const i64 x = (w + i) / pairs;
        v[i] = x < p.count ? words(p, x, (w + i) % pairs, c) : vf{};
      }
      transpose(v);
      std::byte* out = to + c / 16 * plane + c % 16 * 64 + w * 4;
      for (i64 e = 0; e < WIDTH; ++e) store(reinterpret_cast<float*>(out + e * 64), v[e]);
    }
}

// The steps of the cotangent stay in L1 for all taps; what the image has for them passes by.
void gradient_tiles(const std::byte* const* cotangent, const std::byte* const* image, const i64* at, i64 steps,
                    float* sums, bool add) {
  if (add) {
    TILES::load<0>(sums, 64), TILES::load<1>(sums + kTileFloats, 64);
    TILES::load<2>(sums + 2 * kTileFloats, 64), TILES::load<3>(sums + 3 * kTileFloats, 64);
  } else {
    TILES::zero<0>(), TILES::zero<1>(), TILES::zero<2>(), TILES::zero<3>();
  }
  for (i64 k = 0; k < steps; ++k) {
    TILES::load_once<6>(image[0] + at[k], 64);
    TILES::load<4>(cotangent[0] + k * kTileBytes, 64);
    TILES::dot_bf16<0, 4, 6>();
    TILES::load_once<7>(image[1] + at[k], 64);
    TILES::dot_bf16<1, 4, 7>();
    TILES::load<5>(cotangent[1] + k * kTileBytes, 64);
    TILES::dot_bf16<2, 5, 6>();
    TILES::dot_bf16<3, 5, 7>();
  }
  TILES::store<0>(sums, 64), TILES::store<1>(sums + kTileFloats, 64);
  TILES::store<2>(sums + 2 * kTileFloats, 64), TILES::store<3>(sums + 3 * kTileFloats, 64);
}

void put_gradient(const float* sums, i64 cotangents, i64 channels, float* out, i64 out_row, bool transposed) {
  const i64 rows = transposed ? channels : cotangents, columns = transposed ? cotangents : channels;
  for (i64 r = 0; r < rows; r += WIDTH)
    for (i64 c = 0; c < columns; c += WIDTH) {
      vf v[WIDTH];
      for (i64 i = 0; i < WIDTH; ++i) v[i] = load(transposed ? sums + (c + i) * 16 + r : sums + (r + i) * 16 + c);
      if (transposed) transpose(v);
      const i64 some = columns - c < WIDTH ? columns - c : WIDTH;
      for (i64 i = 0; i < WIDTH && r + i < rows; ++i) store_part(out + (r + i) * out_row + c, v[i], some);
    }
}

}  // namespace

extern "C" {
void LC_ENTRY(gradient_tiles_begin)(int words) { TILES::begin({4 * words}); }
void LC_ENTRY(gradient_tiles_end)() { TILES::end(); }
void LC_ENTRY(gradient_tiles_image)(const ImagePixels* p, i64 pairs, std::byte* to, i64 to_pixel, i64 plane) {
  round_image(*p, pairs, to, to_pixel, plane);
}
void LC_ENTRY(gradient_tiles_cotangent)(const ImagePixels* p, i64 pairs, std::byte* to, i64 plane) {
  round_cotangent(*p, pairs, to, plane);
}
void LC_ENTRY(gradient_tiles_tiles)(const std::byte* const* cotangent, const std::byte* const* image, const i64* at,
                                    i64 steps, float* sums, bool add) {
  gradient_tiles(cotangent, image, at, steps, sums, add);
}
void LC_ENTRY(gradient_tiles_put)(const float* sums, i64 cotangents, i64 channels, float* out, i64 out_row,
                                  bool transposed) {
  put_gradient(sums, cotangents, channels, out, out_row, transposed);
}
}

const GradientTilesTable TABLE = {LC_ISA_NAME,
                                  LC_ENTRY(gradient_tiles_begin),
                                  LC_ENTRY(gradient_tiles_end),
                                  LC_ENTRY(gradient_tiles_image),
                                  LC_ENTRY(gradient_tiles_cotangent),
                                  LC_ENTRY(gradient_tiles_tiles),
                                  LC_ENTRY(gradient_tiles_put)};

}  // namespace lc::backends::cpu
