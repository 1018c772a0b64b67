// Tile registers: eight tiles of 16 rows of 64 bytes. Tiles 0 to 3 are sums, 4 and 5 operands of A, 6 and 7 of B.
//
// `AmxTiles` uses the processor's tiles. `EmulatedTiles` computes the same in plain C++, so that loops over tiles can
// be tested on any processor.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "lightcone/backends/cpu/kernels/vectors/vector.inl.h"
#include "lightcone/core/dtype.h"

namespace lc::backends::cpu {
namespace {

// The bytes per row of A determine the k of a tile; B has a row for every four of these bytes.
struct TileShape {
  int a_row_bytes, rows = 16;  // rows of A and of the sums
  constexpr int b_rows() const { return a_row_bytes / 4; }
};

#if defined(__x86_64__) && defined(__AVX512F__)
// Inline assembly is used because GCC's intrinsics do not declare the memory they read and require literal tile
// numbers.
struct AmxTiles {
  struct alignas(64) Config {
    std::uint8_t palette = 1, start = 0, reserved[14] = {};
    std::uint16_t row_bytes[16] = {};
    std::uint8_t rows[16] = {};
  };
  static void begin(TileShape s) {
    Config c;
    for (int t = 0; t < 8; ++t) {
      c.row_bytes[t] = static_cast<std::uint16_t>(t == 4 || t == 5 ? s.a_row_bytes : 64);
      c.rows[t] = static_cast<std::uint8_t>(t >= 6 ? s.b_rows() : s.rows);
    }
    asm volatile("ldtilecfg %0" ::"m"(c));
  }
  // Other threads may then read what was written past the caches.
  static void end() { asm volatile("tilerelease\n\tsfence" ::: "memory"); }
  template <int T>
  static void zero() {
    asm volatile("tilezero %%tmm%c0" ::"i"(T));
  }
  template <int T>
  static void load(const void* p, std::int64_t stride) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(p), "r"(stride), "i"(T) : "memory");
  }
  // What is read once: it does not drive other lines out of L1.
  template <int T>
  static void load_once(const void* p, std::int64_t stride) {
    asm volatile("tileloaddt1 (%0,%1,1), %%tmm%c2" ::"r"(p), "r"(stride), "i"(T) : "memory");
  }
  template <int T>
  static void store(void* p, std::int64_t stride) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(p), "r"(stride), "i"(T) : "memory");
  }
  template <int C, int A, int B>
  static void dot_bf16() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(C), "i"(A), "i"(B));
  }
  template <int C, int A, int B>  // signed bytes of A, unsigned bytes of B
  static void dot_int8() {
    asm volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(C), "i"(A), "i"(B));
  }
};
#endif

// Rounds 32 numbers to bf16, at an address that 64 divides. Tiles take subnormal numbers for zeros, and so does the
// instruction.
inline void round_to_bf16(const float* from, void* to) {
#if defined(__AVX512BF16__)
  const __m512bh both = _mm512_cvtne2ps_pbh(_mm512_loadu_ps(from + 16), _mm512_loadu_ps(from));
  _mm512_store_si512(to, reinterpret_cast<__m512i>(both));
#else
  std::uint16_t half[32];
  for (int i = 0; i < 32; ++i)
    half[i] = f32_to_bf16(std::abs(from[i]) < 0x1p-126f ? std::copysign(0.0f, from[i]) : from[i]);
  std::memcpy(to, half, sizeof half);
#endif
}

struct EmulatedTiles {
  struct Tile {
    int rows, row_bytes;
    alignas(64) std::byte data[16][64];
    template <class T>
    T at(int row, int i) const {
      T v;
      std::memcpy(&v, data[row] + static_cast<std::size_t>(i) * sizeof(T), sizeof v);
      return v;
    }
    template <class T>
    void put(int row, int i, T v) {
      std::memcpy(data[row] + static_cast<std::size_t>(i) * sizeof(T), &v, sizeof v);
    }
  };
  static inline thread_local Tile tiles[8] = {};

  static void begin(TileShape s) {
    for (int t = 0; t < 8; ++t) tiles[t] = {t >= 6 ? s.b_rows() : s.rows, t == 4 || t == 5 ? s.a_row_bytes : 64, {}};
  }
  static void end() {
    for (Tile& t : tiles) t.rows = t.row_bytes = 0;
#if WIDTH == 16
    _mm_sfence();
#endif
  }
  template <int T>
  static void zero() {
    std::memset(tiles[T].data, 0, sizeof tiles[T].data);
  }
  template <int T>
  static void load(const void* p, std::int64_t stride) {
    for (int r = 0; r < tiles[T].rows; ++r)
      std::memcpy(tiles[T].data[r], static_cast<const std::byte*>(p) + r * stride,
                  static_cast<std::size_t>(tiles[T].row_bytes));
  }
  template <int T>
  static void load_once(const void* p, std::int64_t stride) {
    load<T>(p, stride);
  }
  template <int T>
  static void store(void* p, std::int64_t stride) {
    for (int r = 0; r < tiles[T].rows; ++r)
      std::memcpy(static_cast<std::byte*>(p) + r * stride, tiles[T].data[r],
                  static_cast<std::size_t>(tiles[T].row_bytes));
  }
  // Subnormal operands and results are zero. Sums of even and of odd k are separate until the end.
  static float flushed(float v) { return std::abs(v) < 0x1p-126f ? std::copysign(0.0f, v) : v; }
  static float operand(std::uint16_t bits) {
    return flushed(std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16));
  }
  // sum += a * b, rounded once. The product of two bf16 numbers is exact in f32 except at the ends of its range.
  static void add_products(float a, const float (&b)[16], float (&sum)[16]) {
    int ends = 0;
    float p[16];
    for (int n = 0; n < 16; ++n) {
      p[n] = a * b[n];
      ends |= (std::abs(p[n]) <= 0x1p-100f) & (p[n] != 0 || b[n] != 0);
      ends |= !(std::abs(p[n]) < 0x1p126f);
    }
    for (int n = 0; n < 16; ++n) sum[n] = flushed(ends && a != 0 ? std::fma(a, b[n], sum[n]) : p[n] + sum[n]);
  }
  template <int C, int A, int B>
  static void dot_bf16() {
    float b[32][16];
    for (int k = 0; k < 2 * tiles[B].rows; ++k)
      for (int n = 0; n < 16; ++n) b[k][n] = operand(tiles[B].at<std::uint16_t>(k / 2, 2 * n + k % 2));
    for (int m = 0; m < tiles[C].rows; ++m) {
      float sum[2][16] = {};
      for (int k = 0; k < tiles[A].row_bytes / 2; ++k)
        add_products(operand(tiles[A].at<std::uint16_t>(m, k)), b[k], sum[k % 2]);
      for (int n = 0; n < 16; ++n)
        tiles[C].put(m, n, flushed(flushed(tiles[C].at<float>(m, n)) + flushed(sum[0][n] + sum[1][n])));
    }
  }
  template <int C, int A, int B>
  static void dot_int8() {
    for (int m = 0; m < tiles[C].rows; ++m)
      for (int n = 0; n < 16; ++n) {
        auto sum = tiles[C].at<std::int32_t>(m, n);
        for (int k = 0; k < tiles[A].row_bytes; ++k)
          sum += tiles[A].at<std::int8_t>(m, k) * tiles[B].at<std::uint8_t>(k / 4, 4 * n + k % 4);
        tiles[C].put(m, n, sum);
      }
  }
};

}  // namespace
}  // namespace lc::backends::cpu
