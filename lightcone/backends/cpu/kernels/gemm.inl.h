// The micro-kernels, written once with GCC's vector types and compiled for each instruction set:
// WIDTH floats a vector, MR x (2 * WIDTH) accumulators.
#include <algorithm>
#include <cstring>

#include "lightcone/backends/cpu/gemm.h"
#include "lightcone/core/dtype.h"
#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace lc::host {
namespace {

using i64 = std::int64_t;
typedef float vf __attribute__((vector_size(WIDTH * 4), aligned(4), may_alias));
typedef std::int32_t vi __attribute__((vector_size(WIDTH * 4)));
typedef std::uint16_t vh __attribute__((vector_size(WIDTH * 2), aligned(2), may_alias));
typedef std::int8_t vb __attribute__((vector_size(WIDTH), aligned(1), may_alias));
typedef std::uint8_t vu __attribute__((vector_size(WIDTH), aligned(1), may_alias));

inline vf load(const float* p) { return *reinterpret_cast<const vf*>(p); }
inline void store(float* p, vf v) { *reinterpret_cast<vf*>(p) = v; }
inline vf splat(float v) {  // not vf{} + v: that is an addition, because of -0
#if WIDTH == 16
  return reinterpret_cast<vf>(_mm512_set1_ps(v));
#elif WIDTH == 8 && defined(__AVX__)
  return reinterpret_cast<vf>(_mm256_set1_ps(v));
#else
  vf r;
  for (int i = 0; i < WIDTH; ++i) r[i] = v;
  return r;
#endif
}
inline vf fma(vf a, vf b, vf c) {
#if defined(__AVX512F__) && WIDTH == 16
  return reinterpret_cast<vf>(
      _mm512_fmadd_ps(reinterpret_cast<__m512>(a), reinterpret_cast<__m512>(b), reinterpret_cast<__m512>(c)));
#elif defined(__FMA__) && WIDTH == 8
  return reinterpret_cast<vf>(
      _mm256_fmadd_ps(reinterpret_cast<__m256>(a), reinterpret_cast<__m256>(b), reinterpret_cast<__m256>(c)));
#else
  return a * b + c;
#endif
}
inline float sum(vf v) {  // in a fixed order
  float t[WIDTH];
  std::memcpy(t, &v, sizeof t);
  for (int half = WIDTH / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) t[i] += t[i + half];
  return t[0];
}
inline vf from_bytes(const std::int8_t* p) {
#if WIDTH == 16
  return reinterpret_cast<vf>(
      _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))));
#elif WIDTH == 8 && defined(__AVX2__)
  return reinterpret_cast<vf>(
      _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)))));
#else
  vf v;
  for (int i = 0; i < WIDTH; ++i) v[i] = static_cast<float>(p[i]);
  return v;
#endif
}
inline vf from_half(const std::uint16_t* p) {
#if WIDTH == 16
  return reinterpret_cast<vf>(_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))));
#elif WIDTH == 8 && defined(__F16C__)
  return reinterpret_cast<vf>(_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
#else
  vf v;
  for (int i = 0; i < WIDTH; ++i) v[i] = f16_to_f32(p[i]);
  return v;
#endif
}
inline vf from_bf16(const std::uint16_t* p) {
#if WIDTH == 16
  return reinterpret_cast<vf>(
      _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))), 16));
#elif WIDTH == 8 && defined(__AVX2__)
  return reinterpret_cast<vf>(
      _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))), 16));
#else
  vf v;
  for (int i = 0; i < WIDTH; ++i) v[i] = bf16_to_f32(p[i]);
  return v;
#endif
}
inline float half(const void* p) {
  std::uint16_t h;
  std::memcpy(&h, p, 2);
#if defined(__F16C__)
  return _cvtsh_ss(h);
#else
  return f16_to_f32(h);
#endif
}

// ---- a weight row against rows of A: a reader per storage type ---------------------------------

constexpr int kStep = 32;  // elements a step; every block format has 32 too

template <WeightType T>
struct Reader;
template <>
struct Reader<WeightType::F32> {
  static constexpr i64 bytes = kStep * 4;
  static vf get(const std::byte* p, int i) { return load(reinterpret_cast<const float*>(p) + i); }
  static float one(const std::byte* p, int i) { return reinterpret_cast<const float*>(p)[i]; }
};
template <>
struct Reader<WeightType::F16> {
  static constexpr i64 bytes = kStep * 2;
  static vf get(const std::byte* p, int i) { return from_half(reinterpret_cast<const std::uint16_t*>(p) + i); }
  static float one(const std::byte* p, int i) { return f16_to_f32(reinterpret_cast<const std::uint16_t*>(p)[i]); }
};
template <>
struct Reader<WeightType::BF16> {
  static constexpr i64 bytes = kStep * 2;
  static vf get(const std::byte* p, int i) { return from_bf16(reinterpret_cast<const std::uint16_t*>(p) + i); }
  static float one(const std::byte* p, int i) { return bf16_to_f32(reinterpret_cast<const std::uint16_t*>(p)[i]); }
};

// One step of 32 elements of `rows` weight rows against M rows of A.
template <WeightType T, int M, int R>
inline void dot_step(const std::byte* const (&w)[R], const float* const (&x)[M], i64 k, vf (&acc)[M][R]) {
  if constexpr (T == WeightType::Q8_0 || T == WeightType::Q4_0) {
    for (int r = 0; r < R; ++r) {
      const vf scale = splat(half(w[r]));
      vf part[M];
      for (int m = 0; m < M; ++m) part[m] = vf{};
      for (int i = 0; i < kStep; i += WIDTH) {
        vf q;
        if constexpr (T == WeightType::Q8_0) {
          q = from_bytes(reinterpret_cast<const std::int8_t*>(w[r]) + 2 + i);
        } else {
          std::int8_t t[WIDTH];
          const auto* p = reinterpret_cast<const std::uint8_t*>(w[r]) + 2 + i % 16;
          for (int j = 0; j < WIDTH; ++j) t[j] = static_cast<std::int8_t>((i < 16 ? p[j] & 15 : p[j] >> 4) - 8);
          q = from_bytes(t);
        }
        for (int m = 0; m < M; ++m) part[m] = fma(q, load(x[m] + k + i), part[m]);
      }
      for (int m = 0; m < M; ++m) acc[m][r] = fma(part[m], scale, acc[m][r]);
    }
  } else {
    for (int i = 0; i < kStep; i += WIDTH) {
      vf v[M];
      for (int m = 0; m < M; ++m) v[m] = load(x[m] + k + i);
      for (int r = 0; r < R; ++r) {
        const vf q = Reader<T>::get(w[r], i);
        for (int m = 0; m < M; ++m) acc[m][r] = fma(q, v[m], acc[m][r]);
      }
    }
  }
}

template <WeightType T>
constexpr i64 step_bytes() {
  if constexpr (T == WeightType::Q8_0) return 34;
  else if constexpr (T == WeightType::Q4_0) return 18;
  else return Reader<T>::bytes;
}
template <WeightType T>
constexpr i64 row_scale() {  // bytes of one unit of b_n
  return T == WeightType::F32 ? 4 : T == WeightType::F16 || T == WeightType::BF16 ? 2 : 1;
}

template <WeightType T, int M, int R>
void rows(const Gemm& g, i64 row, i64 m0) {
  const std::byte* w[R];
  const float* x[M];
  vf acc[M][R];
  for (int r = 0; r < R; ++r) w[r] = static_cast<const std::byte*>(g.b) + (row + r) * g.b_n * row_scale<T>();
  for (int m = 0; m < M; ++m) {
    x[m] = g.a + (m0 + m) * g.a_m;
    for (int r = 0; r < R; ++r) acc[m][r] = vf{};
  }
  // the same place of the next rows: what lies just ahead belongs to a row that is being read already
  const i64 ahead = R * g.b_n * row_scale<T>();
  i64 k = 0;
  for (; k + kStep <= g.k; k += kStep) {
    for (int r = 0; r < R; ++r) __builtin_prefetch(w[r] + ahead, 0, 2);
    dot_step<T, M, R>(w, x, k, acc);
    for (int r = 0; r < R; ++r) w[r] += step_bytes<T>();
  }
  for (int m = 0; m < M; ++m)
    for (int r = 0; r < R; ++r) {
      float y = sum(acc[m][r]);
      if constexpr (T != WeightType::Q8_0 && T != WeightType::Q4_0)
        for (i64 i = k; i < g.k; ++i) y += Reader<T>::one(w[r], static_cast<int>(i - k)) * x[m][i];
      g.c[(m0 + m) * g.c_m + row + r] = y;
    }
}

template <WeightType T, int M>
void gemv_m(const Gemm& g, i64 begin, i64 end, i64 m0) {
  i64 row = begin;
  for (; row + 4 <= end; row += 4) rows<T, M, 4>(g, row, m0);
  for (; row < end; ++row) rows<T, M, 1>(g, row, m0);
}

template <WeightType T>
void gemv_t(const Gemm& g, i64 begin, i64 end) {
  i64 m = 0;
  for (; m + 2 <= g.m; m += 2) gemv_m<T, 2>(g, begin, end, m);
  if (m < g.m) gemv_m<T, 1>(g, begin, end, m);
}

void gemv(const Gemm& g, i64 begin, i64 end) {
  switch (g.type) {
    case WeightType::F32: return gemv_t<WeightType::F32>(g, begin, end);
    case WeightType::F16: return gemv_t<WeightType::F16>(g, begin, end);
    case WeightType::BF16: return gemv_t<WeightType::BF16>(g, begin, end);
    case WeightType::Q8_0: return gemv_t<WeightType::Q8_0>(g, begin, end);
    case WeightType::Q4_0: return gemv_t<WeightType::Q4_0>(g, begin, end);
  }
}

void axpy(const Gemm& g, i64 begin, i64 end) {
  const float* b = static_cast<const float*>(g.b);
  for (i64 m = 0; m < g.m; ++m) {
    const float* a = g.a + m * g.a_m;
    float* c = g.c + m * g.c_m;
    i64 j = begin;
    for (; j + 4 * WIDTH <= end; j += 4 * WIDTH) {
      vf acc[4] = {};
      for (i64 k = 0; k < g.k; ++k) {
        const vf s = splat(a[k * g.a_k]);
        for (int t = 0; t < 4; ++t) acc[t] = fma(s, load(b + k * g.b_k + j + t * WIDTH), acc[t]);
      }
      for (int t = 0; t < 4; ++t) store(c + j + t * WIDTH, acc[t]);
    }
    for (; j < end; ++j) {
      float acc = 0;
      for (i64 k = 0; k < g.k; ++k) acc = __builtin_fmaf(a[k * g.a_k], b[k * g.b_k + j], acc);
      c[j] = acc;
    }
  }
}

// ---- packing and the register tile -------------------------------------------------------------

constexpr int kNr = 2 * WIDTH;

void pack_a(const Gemm& g, i64 i0, i64 rows, i64 k0, i64 depth, float* to) {
  for (i64 i = 0; i < rows; i += MR) {
    const i64 h = std::min<i64>(MR, rows - i);
    for (i64 r = 0; r < MR; ++r) {
      const float* from = g.a + (i0 + i + r) * g.a_m + k0 * g.a_k;
      for (i64 k = 0; k < depth; ++k) to[k * MR + r] = r < h ? from[k * g.a_k] : 0.0f;
    }
    to += MR * depth;
  }
}

template <WeightType T>
void unpack_row(const std::byte* w, i64 k0, i64 depth, float* to, i64 stride) {
  for (i64 k = k0; k < k0 + depth; k += kStep) {
    const std::byte* p = w + k / kStep * step_bytes<T>();
    const int n = static_cast<int>(std::min<i64>(kStep, k0 + depth - k));
    if constexpr (T == WeightType::Q8_0 || T == WeightType::Q4_0) {
      const float d = half(p);
      const auto* q = reinterpret_cast<const std::uint8_t*>(p) + 2;
      for (int i = 0; i < n; ++i) {
        const int v =
            T == WeightType::Q8_0 ? static_cast<std::int8_t>(q[i]) : (i < 16 ? q[i] & 15 : q[i - 16] >> 4) - 8;
        to[(k - k0 + i) * stride] = d * static_cast<float>(v);
      }
    } else {
      for (int i = 0; i < n; ++i) to[(k - k0 + i) * stride] = Reader<T>::one(p, i);
    }
  }
}

void pack_b(const Gemm& g, i64 j0, i64 columns, i64 k0, i64 depth, float* to) {
  for (i64 j = 0; j < columns; j += kNr) {
    const i64 w = std::min<i64>(kNr, columns - j);
    if (g.type == WeightType::F32 && g.b_n == 1 && w == kNr) {
      const float* from = static_cast<const float*>(g.b) + k0 * g.b_k + j0 + j;
      for (i64 k = 0; k < depth; ++k) {
        store(to + k * kNr, load(from + k * g.b_k));
        store(to + k * kNr + WIDTH, load(from + k * g.b_k + WIDTH));
      }
    } else {
      if (w < kNr) std::fill(to, to + kNr * depth, 0.0f);
      for (i64 c = 0; c < w; ++c) {
        const i64 n = j0 + j + c;
        const auto* row = static_cast<const std::byte*>(g.b);
        switch (g.type) {
          case WeightType::F32: {
            const float* from = static_cast<const float*>(g.b) + n * g.b_n + k0 * g.b_k;
            for (i64 k = 0; k < depth; ++k) to[k * kNr + c] = from[k * g.b_k];
            break;
          }
          case WeightType::F16: unpack_row<WeightType::F16>(row + n * g.b_n * 2, k0, depth, to + c, kNr); break;
          case WeightType::BF16: unpack_row<WeightType::BF16>(row + n * g.b_n * 2, k0, depth, to + c, kNr); break;
          case WeightType::Q8_0: unpack_row<WeightType::Q8_0>(row + n * g.b_n, k0, depth, to + c, kNr); break;
          case WeightType::Q4_0: unpack_row<WeightType::Q4_0>(row + n * g.b_n, k0, depth, to + c, kNr); break;
        }
      }
    }
    to += kNr * depth;
  }
}

void tile(const float* a, const float* b, i64 depth, float* c, i64 c_m, i64 rows, i64 columns, bool add) {
  vf acc[MR][2] = {};
  for (i64 k = 0; k < depth; ++k) {
    const vf b0 = load(b), b1 = load(b + WIDTH);
    for (int i = 0; i < MR; ++i) {
      const vf s = splat(a[i]);
      acc[i][0] = fma(s, b0, acc[i][0]);
      acc[i][1] = fma(s, b1, acc[i][1]);
    }
    a += MR;
    b += kNr;
  }
  if (rows == MR && columns == kNr) {
    for (int i = 0; i < MR; ++i)
      for (int t = 0; t < 2; ++t) {
        float* p = c + i * c_m + t * WIDTH;
        store(p, add ? load(p) + acc[i][t] : acc[i][t]);
      }
    return;
  }
  for (i64 i = 0; i < rows; ++i) {
    float row[kNr];
    std::memcpy(row, acc[i], sizeof row);
    for (i64 j = 0; j < columns; ++j) c[i * c_m + j] = add ? c[i * c_m + j] + row[j] : row[j];
  }
}

}  // namespace

const GemmTable TABLE = {MR, kNr, gemv, axpy, pack_a, pack_b, tile};

}  // namespace lc::host
