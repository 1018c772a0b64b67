// C++ twins of the primitives that kernels implement in PTX on a device: tensor cores, ldmatrix, asynchronous copies
// and conversions of 16-bit floats. Fragments are distributed over lanes as PTX defines for mma.sync and ldmatrix.
#pragma once

static inline unsigned lc_bits_of(float f) {
  unsigned u;
  __builtin_memcpy(&u, &f, 4);
  return u;
}

static inline float lc_float_of(unsigned u) {
  float f;
  __builtin_memcpy(&f, &u, 4);
  return f;
}

// Conversions round to nearest even; every NaN becomes 0x7fff, as by the device's cvt.rn.
static inline float lc_bf16_to_f32(unsigned short h) { return lc_float_of((unsigned)h << 16); }

static inline unsigned short lc_f32_to_bf16(float f) {
  const unsigned u = lc_bits_of(f);
  return f != f ? 0x7fff : (unsigned short)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

static inline float lc_f16_to_f32(unsigned short h) {
  const unsigned sign = (h & 0x8000u) << 16, magnitude = (h & 0x7fffu) << 13;
  if (magnitude >= 0x7c00u << 13) return lc_float_of(sign | magnitude | 0x7f800000u);
  return lc_float_of(sign | lc_bits_of(lc_float_of(magnitude) * 0x1p112f));  // exact for subnormal numbers, too
}

static inline unsigned short lc_f32_to_f16(float f) {
  const unsigned sign = lc_bits_of(f) >> 16 & 0x8000u, u = lc_bits_of(f) & 0x7fffffffu;
  if (f != f) return 0x7fff;
  if (u >= 0x47800000u) return (unsigned short)(sign | 0x7c00u);  // 2^16 and above
  if (u < 0x38800000u)  // below 2^-14: the unit in the last place of 0.5f is the smallest subnormal half
    return (unsigned short)(sign | (lc_bits_of(lc_float_of(u) + 0.5f) - 0x3f000000u));
  return (unsigned short)(sign | ((u - 0x38000000u + 0xfffu + (u >> 13 & 1)) >> 13));  // may carry into infinity
}

// Rounds to nearest, ties away from zero: cvt.rna.tf32.f32.
static inline float lc_round_to_tf32(unsigned u) {
  if ((u & 0x7fffffffu) > 0x7f800000u) return lc_float_of(0x7fffffffu);
  return lc_float_of((u + 0x1000u) & ~0x1fffu);
}

// One lane's part of d (16 x 8) += a (16 x K) * b (K x 8).
template <class T>
struct LcFragments {
  T d[4];
  unsigned a[4], b[2];
};

// Traits of the operand types: K, the number of operands per register, and the value of the i-th.
struct LcBf16Operands {
  typedef float Sum;
  enum { K = 16, in_register = 2 };
  static float value(unsigned r, int i) { return lc_bf16_to_f32((unsigned short)(r >> 16 * i)); }
};
struct LcF16Operands {
  typedef float Sum;
  enum { K = 16, in_register = 2 };
  static float value(unsigned r, int i) { return lc_f16_to_f32((unsigned short)(r >> 16 * i)); }
};
struct LcTf32Operands {
  typedef float Sum;
  enum { K = 8, in_register = 1 };
  static float value(unsigned r, int) { return lc_round_to_tf32(r); }
};
struct LcE4m3Operands {
  typedef float Sum;
  enum { K = 32, in_register = 4 };
  static float value(unsigned r, int i) {
    const unsigned b = r >> 8 * i & 255, e = b >> 3 & 15, m = b & 7, sign = b >> 7 << 31;
    if ((b & 127) == 127) return lc_float_of(sign | 0x7fc00000u);
    const float v = e ? lc_float_of((e + 120) << 23 | m << 20) : (float)m * 0x1p-9f;
    return sign ? -v : v;
  }
};
struct LcE5m2Operands {  // the upper half of an f16
  typedef float Sum;
  enum { K = 32, in_register = 4 };
  static float value(unsigned r, int i) { return lc_f16_to_f32((unsigned short)((r >> 8 * i & 255) << 8)); }
};
struct LcS8Operands {
  typedef unsigned Sum;  // sums wrap around
  enum { K = 32, in_register = 4 };
  static unsigned value(unsigned r, int i) { return (unsigned)(int)(signed char)(r >> 8 * i); }
};

// Multiplies for the whole warp. Lane 4 g + t holds rows g and g + 8 of a and column g of b; of both, the columns of
// its t-th register in each half of K. It holds columns 2 t and 2 t + 1 of rows g and g + 8 of d.
template <class OfA, class OfB>
static void lc_multiply(void* const* lanes) {
  typedef typename OfA::Sum Sum;
  enum { K = OfA::K, N = OfA::in_register };
  Sum a[16][K], b[K][8], d[16][8];
  for (int lane = 0; lane < 32; ++lane) {
    const LcFragments<Sum>& f = *(const LcFragments<Sum>*)lanes[lane];
    const int g = lane >> 2, t = lane & 3;
    for (int half = 0; half < 2; ++half)
      for (int i = 0; i < N; ++i) {
        const int k = half * K / 2 + t * N + i;
        a[g][k] = OfA::value(f.a[2 * half], i);
        a[g + 8][k] = OfA::value(f.a[2 * half + 1], i);
        b[k][g] = OfB::value(f.b[half], i);
      }
    for (int i = 0; i < 4; ++i) d[g + i / 2 * 8][2 * t + i % 2] = f.d[i];
  }
  typedef Sum Row __attribute__((vector_size(8 * sizeof(Sum)), aligned(4)));
  for (int i = 0; i < 16; ++i) {
    Row sum = *(const Row*)d[i];
    for (int k = 0; k < K; ++k) sum += a[i][k] * *(const Row*)b[k];
    *(Row*)d[i] = sum;
  }
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < 4; ++i)
      ((LcFragments<Sum>*)lanes[lane])->d[i] = d[(lane >> 2) + i / 2 * 8][2 * (lane & 3) + i % 2];
}

template <class OfA, class OfB = OfA, class T>
static inline void lc_mma(T (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  LcFragments<typename OfA::Sum> f;
  __builtin_memcpy(f.d, d, sizeof d);
  __builtin_memcpy(f.a, a, sizeof a);
  __builtin_memcpy(f.b, b, sizeof b);
  lc_scheduler->full_warp_exchange(&f, lc_multiply<OfA, OfB>);
  __builtin_memcpy(d, f.d, sizeof d);
}

// m16n8k16 with f32 sums
static inline void lc_mma_bf16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  lc_mma<LcBf16Operands>(d, a, b);
}
static inline void lc_mma_f16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  lc_mma<LcF16Operands>(d, a, b);
}
// m16n8k8; operands are the bits of f32 and are rounded
static inline void lc_mma_tf32(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  lc_mma<LcTf32Operands>(d, a, b);
}
// m16n8k32 with f32 sums here; some devices add with fewer bits
#define LC_MMA_F8(A, B, OF_A, OF_B)                                                                 \
  static inline void lc_mma_##A##_##B(float(&d)[4], const unsigned(&a)[4], const unsigned(&b)[2]) { \
    lc_mma<OF_A, OF_B>(d, a, b);                                                                    \
  }
LC_MMA_F8(e4m3, e4m3, LcE4m3Operands, LcE4m3Operands)
LC_MMA_F8(e4m3, e5m2, LcE4m3Operands, LcE5m2Operands)
LC_MMA_F8(e5m2, e4m3, LcE5m2Operands, LcE4m3Operands)
LC_MMA_F8(e5m2, e5m2, LcE5m2Operands, LcE5m2Operands)
#undef LC_MMA_F8
// m16n8k32 with s32 sums
static inline void lc_mma_s8(int (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  lc_mma<LcS8Operands>(d, a, b);
}

// Loads four 8 x 8 matrices of 16-bit numbers. Lane 8 i + j passes the address of row j of matrix i. Lane 4 j + t
// receives columns 2 t and 2 t + 1 of row j; transposed, rows 2 t and 2 t + 1 of column j.
struct LcMatrixRows {
  const unsigned short* row;
  unsigned r[4];
};

template <bool transposed>
static void lc_load_matrices(void* const* lanes) {
  for (int lane = 0; lane < 32; ++lane)
    if ((unsigned long)((LcMatrixRows*)lanes[lane])->row & 15)
      lc_scheduler->fault("ldmatrix: a row is not aligned to 16 bytes");
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < 4; ++i) {
      const int j = lane >> 2, t = lane & 3;
      auto at = [&](int row, int column) { return (unsigned)((LcMatrixRows*)lanes[8 * i + row])->row[column]; };
      ((LcMatrixRows*)lanes[lane])->r[i] =
          transposed ? at(2 * t, j) | at(2 * t + 1, j) << 16 : at(j, 2 * t) | at(j, 2 * t + 1) << 16;
    }
}

template <bool transposed>
static inline void lc_ldmatrix(unsigned (&r)[4], const void* shared) {
  LcMatrixRows m = {(const unsigned short*)shared, {}};
  lc_scheduler->full_warp_exchange(&m, lc_load_matrices<transposed>);
  __builtin_memcpy(r, m.r, sizeof r);
}
static inline void lc_ldmatrix4(unsigned (&r)[4], const void* shared) { lc_ldmatrix<false>(r, shared); }
static inline void lc_ldmatrix4_trans(unsigned (&r)[4], const void* shared) { lc_ldmatrix<true>(r, shared); }

static inline void lc_copy16_async(void* shared, const void* global) { lc_scheduler->copy_async(shared, global, 16); }
static inline void lc_copy_commit() { lc_scheduler->copy_commit(); }
template <int N>
static inline void lc_copy_wait() {
  lc_scheduler->copy_wait(N);
}
