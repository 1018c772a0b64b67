// Small windows, compiled for each instruction set: over vectors of pixels, MR output rows at once, so that a row of
// the image is loaded once for all output rows that read it, and over vectors of channels.
#include <array>
#include <utility>

#include "lightcone/backends/cpu/kernels/abi/conv_abi.h"
#include "lightcone/backends/cpu/kernels/vectors/entry.inl.h"
#include "lightcone/backends/cpu/kernels/vectors/vector.inl.h"

namespace lc::backends::cpu {
namespace {

using Window = DepthwiseWindow;
constexpr int kRows = 8;      // output rows at a time
constexpr int kDown = 3;      // rows of taps at a time: their weights are in registers
constexpr int kTogether = 4;  // pixels at a time, channels-last

// ---- pixels side by side -----------------------------------------------------------------------

// Loads into a register. Without the barrier, GCC loads the value from memory again for each product.
inline vf loaded_once(const float* p) {
  vf v = load(p);
#if defined(__x86_64__)
  __asm__("" : "+v"(v));
#endif
  return v;
}

// Adds Q rows of taps. S is the number of image rows between output rows.
template <int R, int S, int Q>
inline void taps(vf (&acc)[R], const Window& w, i64 down, const float* from) {
  const float* weight = w.weights + down * w.across;
  for (i64 k = 0; k < w.across; ++k, ++weight) {
    const float* p = from + (down * w.pitch + w.at[k]);
    vf f[Q];
    LC_UNROLL
    for (int q = 0; q < Q; ++q) f[q] = splat(weight[q * w.across]);
    LC_UNROLL_BY(32)
    for (int i = 0; i < (R - 1) * S + Q; ++i, p += w.pitch) {
      const vf v = loaded_once(p);
      LC_UNROLL_BY(4)
      for (int q = 0; q < Q; ++q)
        if (i >= q && (i - q) % S == 0 && (i - q) / S < R) acc[(i - q) / S] = fma(f[q], v, acc[(i - q) / S]);
    }
  }
}

// Adds taps of any stride and dilation, without sharing loads.
template <int R>
inline void taps_apart(vf (&acc)[R], const Window& w, const float* from) {
  const float* weight = w.weights;
  for (i64 j = 0; j < w.down; ++j)
    for (i64 k = 0; k < w.across; ++k, ++weight) {
      const float* p = from + (j * w.dilation * w.pitch + w.at[k]);
      const vf f = splat(*weight);
      LC_UNROLL
      for (int r = 0; r < R; ++r, p += w.step * w.pitch) acc[r] = fma(f, load(p), acc[r]);
    }
}

template <int R, int S>
void rows_of(const Window& w, const float* from, float* out, i64 n) {
  const float* blocks = from;
  for (i64 x = (n - 1) / WIDTH * WIDTH; x >= 0; x -= WIDTH) {
    vf acc[R];
    LC_UNROLL
    for (int r = 0; r < R; ++r) acc[r] = splat(0.0f);
    from = blocks + x;
    if constexpr (S == 0) {
      taps_apart<R>(acc, w, from);
    } else {
      i64 j = 0;
      for (; j + kDown <= w.down; j += kDown) taps<R, S, kDown>(acc, w, j, from);
      if (w.down - j == 2) taps<R, S, 2>(acc, w, j, from);
      else if (w.down - j == 1) taps<R, S, 1>(acc, w, j, from);
    }
    // The last vector of a row may extend into the next row. That is safe because the next row is written later: rows
    // are written in order, and the vectors of a row from the last to the first.
    const bool whole = x + WIDTH <= n;
    LC_UNROLL
    for (int r = 0; r < R; ++r) {
      float* to = out + r * n + x;
      if (whole || (r + 1 < R && x + WIDTH <= 2 * n)) store(to, acc[r]);
      else store_part(to, acc[r], n - x);
    }
  }
}

using Rows = void (*)(const Window&, const float*, float*, i64);
template <int... R>
constexpr std::array<std::array<Rows, 3>, kRows> all_rows(std::integer_sequence<int, R...>) {
  return {std::array<Rows, 3>{rows_of<R + 1, 0>, rows_of<R + 1, 1>, rows_of<R + 1, 2>}...};
}

void rows(const Window& w, const float* from, float* out, i64 count, i64 n) {
  static constexpr auto table = all_rows(std::make_integer_sequence<int, kRows>());
  const bool shared = w.dilation == 1 && w.step <= 2;
  table[static_cast<std::size_t>(count - 1)][shared ? static_cast<std::size_t>(w.step) : 0](w, from, out, n);
}

#if WIDTH < 16
// Copies vectors of every second element. The last vector is left out, because its second load would read one element
// too many.
inline i64 copy_even(const float* from, i64 n, float* to) {
  i64 i = 0;
  for (; i + WIDTH < n; i += WIDTH) {
    const vf a = load(from + 2 * i), b = load(from + 2 * i + WIDTH);
#if WIDTH == 8
    store(to + i, __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14));
#else
    store(to + i, __builtin_shufflevector(a, b, 0, 2, 4, 6));
#endif
  }
  return i;
}
#endif

void copy(const DepthwiseRows& r, i64 count, float* to) {
  const float* from = r.from;
#if WIDTH == 16
  for (; count > 0; --count, from += r.row, to += r.to_row)
    for (i64 i = 0; i < r.n; i += WIDTH) {
      const i64 first = std::clamp<i64>(r.begin - i, 0, WIDTH);
      store(to + i, load_some(from + i * r.step, r.step, first, std::clamp<i64>(r.end - i, first, WIDTH)));
    }
#else
  const i64 n = r.end - r.begin;
  from += r.begin * r.step;
  for (; count > 0; --count, from += r.row, to += r.to_row) {
    for (i64 i = 0; i < r.n; i += WIDTH)
      if (i < r.begin || i + WIDTH > r.end) store(to + i, splat(0.0f));
    float* inside = to + r.begin;
    i64 i = 0;
    if (r.step == 1) {
      for (; i + WIDTH <= n; i += WIDTH) store(inside + i, load(from + i));
      if (i < n && n >= WIDTH) store(inside + n - WIDTH, load(from + n - WIDTH)), i = n;
      for (; i + 4 <= n; i += 4)
        *reinterpret_cast<v4_stored*>(inside + i) = *reinterpret_cast<const v4_stored*>(from + i);
    } else if (r.step == 2) {
      i = copy_even(from, n, inside);
    }
    for (; i < n; ++i) inside[i] = from[i * r.step];
  }
#endif
}

// ---- channels side by side ---------------------------------------------------------------------

// Computes P pixels of V vectors of channels; the last vector has `last` channels.
template <int P, int V, bool kWhole>
inline void pixels_of(const float* const* at, i64 stride, i64 first, const float* w, i64 nr, i64 count, float* out,
                      i64 out_row, i64 last) {
  vf acc[P][V];
  LC_UNROLL
  for (int p = 0; p < P; ++p) {
    LC_UNROLL
    for (int v = 0; v < V; ++v) acc[p][v] = splat(0.0f);
  }
  for (i64 t = 0; t < count; ++t, w += nr, at += stride) {
    vf f[V];
    LC_UNROLL
    for (int v = 0; v < V; ++v) f[v] = load(w + v * WIDTH);
    LC_UNROLL
    for (int p = 0; p < P; ++p) {
      const float* from = at[p] + first;
      LC_UNROLL
      for (int v = 0; v < V; ++v) {
        const vf x = kWhole || v + 1 < V ? load(from + v * WIDTH) : load_part(from + v * WIDTH, last);
        acc[p][v] = fma(f[v], x, acc[p][v]);
      }
    }
  }
  LC_UNROLL
  for (int p = 0; p < P; ++p) {
    LC_UNROLL
    for (int v = 0; v < V; ++v) {
      float* to = out + p * out_row + v * WIDTH;
      if (kWhole || v + 1 < V) store(to, acc[p][v]);
      else store_part(to, acc[p][v], last);
    }
  }
}

template <int P, int V>
inline void whole_or_part(const float* const* at, i64 stride, i64 first, const float* w, i64 nr, i64 count, float* out,
                          i64 out_row, i64 channels) {
  const i64 last = channels - (V - 1) * WIDTH;
  if (last == WIDTH) pixels_of<P, V, true>(at, stride, first, w, nr, count, out, out_row, last);
  else pixels_of<P, V, false>(at, stride, first, w, nr, count, out, out_row, last);
}

template <int P>
void pixels_for(const float* const* at, i64 stride, i64 first, const float* w, i64 nr, i64 count, float* out,
                i64 out_row, i64 channels) {
  constexpr i64 kVectors = 4;
  for (i64 c = 0; c < channels; c += kVectors * WIDTH) {
    const i64 n = std::min<i64>(kVectors * WIDTH, channels - c), vectors = (n + WIDTH - 1) / WIDTH;
    const auto of = vectors == 4   ? whole_or_part<P, 4>
                    : vectors == 3 ? whole_or_part<P, 3>
                    : vectors == 2 ? whole_or_part<P, 2>
                                   : whole_or_part<P, 1>;
    of(at, stride, first + c, w + c, nr, count, out + c, out_row, n);
  }
}

void pixels(const float* const* at, i64 stride, i64 first, const float* w, i64 nr, i64 count, float* out, i64 out_row,
            i64 n, i64 channels) {
  constexpr decltype(&pixels_for<1>) table[kTogether] = {pixels_for<1>, pixels_for<2>, pixels_for<3>, pixels_for<4>};
  table[n - 1](at, stride, first, w, nr, count, out, out_row, channels);
}

}  // namespace

extern "C" {
void LC_ENTRY(depthwise_rows)(const DepthwiseWindow* w, const float* from, float* out, i64 count, i64 n) {
  rows(*w, from, out, count, n);
}
void LC_ENTRY(depthwise_copy)(const DepthwiseRows* r, i64 count, float* to) { copy(*r, count, to); }
void LC_ENTRY(depthwise_pixels)(const float* const* at, i64 stride, i64 first, const float* weights, i64 nr, i64 taps,
                                float* out, i64 out_row, i64 count, i64 channels) {
  pixels(at, stride, first, weights, nr, taps, out, out_row, count, channels);
}
}

const DepthwiseTable TABLE = {
    WIDTH, kRows, kTogether, LC_ENTRY(depthwise_rows), LC_ENTRY(depthwise_copy), LC_ENTRY(depthwise_pixels)};

}  // namespace lc::backends::cpu
