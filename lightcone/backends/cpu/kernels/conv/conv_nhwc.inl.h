// Channels-last convolutions in f32: the register tile of MR pixels x VECTORS vectors of output channels, and
// Winograd's transforms over WIDTH channels at once.
#include "lightcone/backends/cpu/kernels/conv/nhwc_tile.inl.h"
#include "lightcone/backends/cpu/kernels/conv/winograd.inl.h"

namespace lc::backends::cpu {
namespace {

struct NumberTaps {
  using Vector = vf;
  static Vector weights(const float* w) { return load(w); }
  static Vector repeated(const float* p) { return splat(*p); }
  static vf add(Vector a, Vector b, vf c) { return fma(a, b, c); }
};

// ---- Winograd ----------------------------------------------------------------------------------

bool filters_in(const float* w, i64 tap, i64 count, float* to, i64 stride) {
  vi bad = {};
  for (i64 i = 0; i < count * kNr; i += WIDTH) {
    vf half[3][kTile];
    for (int x = 0; x < 3; ++x) {
      const vf line[3] = {load(w + i + x * tap), load(w + i + (3 + x) * tap), load(w + i + (6 + x) * tap)};
      for (const vf& v : line) bad |= large(v);
      filter_line(line, half[x]);
    }
    for (int y = 0; y < kTile; ++y) {
      vf u[kTile];
      filter_line({half[0][y], half[1][y], half[2][y]}, u);
      for (int x = 0; x < kTile; ++x) store(to + i + (y * kTile + x) * stride, u[x]);
    }
  }
  return none(bad);
}

bool image_in(const float* const* at, i64 channels, float* to, i64 stride) {
  vi bad = {};
  for (i64 c = 0; c < channels; c += WIDTH) {
    const i64 n = std::min<i64>(WIDTH, channels - c);
    vf half[kTile][kTile];  // [column][row]
    for (int x = 0; x < kTile; ++x) {
      vf d[kTile];
      for (int y = 0; y < kTile; ++y) {
        const float* from = at[y * kTile + x] + c;
        d[y] = n == WIDTH ? load(from) : load_part(from, n);
        bad |= large(d[y]);
      }
      image_line(d, half[x]);
    }
    for (int y = 0; y < kTile; ++y) {
      vf v[kTile];
      image_line({half[0][y], half[1][y], half[2][y], half[3][y], half[4][y], half[5][y]}, v);
      for (int x = 0; x < kTile; ++x) {
        float* p = to + c + (y * kTile + x) * stride;
        if (n == WIDTH) store(p, v[x]);
        else store_part(p, v[x], n);
      }
    }
  }
  return none(bad);
}

void pixels_out(const float* from, i64 stride, i64 channels, float* const* at) {
  for (i64 c = 0; c < channels; c += WIDTH) {
    const i64 n = std::min<i64>(WIDTH, channels - c);
    vf half[kTile][kOut];
    for (int x = 0; x < kTile; ++x) {
      vf m[kTile];
      for (int y = 0; y < kTile; ++y) {
        const float* p = from + c + (y * kTile + x) * stride;
        m[y] = n == WIDTH ? load(p) : load_part(p, n);
      }
      out_line(m, half[x]);
    }
    for (int y = 0; y < kOut; ++y) {
      vf r[kOut];
      out_line({half[0][y], half[1][y], half[2][y], half[3][y], half[4][y], half[5][y]}, r);
      for (int x = 0; x < kOut; ++x) {
        float* p = at[y * kOut + x];
        if (!p) continue;
        if (n == WIDTH) store(p + c, r[x]);
        else store_part(p + c, r[x], n);
      }
    }
  }
}

}  // namespace

extern "C" {
void LC_ENTRY(conv_nhwc_tile)(const float* const* pixels, const TapRun* runs, i64 count, const float* weights,
                              const float* next, float* c, i64 c_row, i64 rows, i64 columns, bool add) {
  last_tile<NumberTaps>(pixels, runs, count, weights, next, c, c_row, rows, columns, add);
}
bool LC_ENTRY(conv_nhwc_filters_in)(const float* w, i64 tap, i64 count, float* to, i64 stride) {
  return filters_in(w, tap, count, to, stride);
}
bool LC_ENTRY(conv_nhwc_image_in)(const float* const* at, i64 channels, float* to, i64 stride) {
  return image_in(at, channels, to, stride);
}
void LC_ENTRY(conv_nhwc_pixels_out)(const float* from, i64 stride, i64 channels, float* const* at) {
  pixels_out(from, stride, channels, at);
}
void LC_ENTRY(conv_nhwc_widen_bf16)(const std::uint16_t* from, i64 n, float* to) {
  for (i64 i = 0; i < n; i += WIDTH) store(to + i, from_bf16(from + i));
}
void LC_ENTRY(conv_nhwc_widen_f16)(const std::uint16_t* from, i64 n, float* to) {
  for (i64 i = 0; i < n; i += WIDTH) store(to + i, from_half(from + i));
}
}

const NhwcTable TABLE = {MR,
                         kNr,
                         LC_ENTRY(conv_nhwc_tile),
                         LC_ENTRY(conv_nhwc_filters_in),
                         LC_ENTRY(conv_nhwc_image_in),
                         LC_ENTRY(conv_nhwc_pixels_out),
                         LC_ENTRY(conv_nhwc_widen_bf16),
                         LC_ENTRY(conv_nhwc_widen_f16)};

}  // namespace lc::backends::cpu
