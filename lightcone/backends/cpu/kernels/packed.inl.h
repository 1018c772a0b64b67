// Packed block weights (packed_weights.h): a vector of WIDTH rows for every k.
#pragma once

#include "lightcone/backends/cpu/kernels/weights.inl.h"
#include "lightcone/backends/cpu/packed_weights.h"

namespace lc::host {
namespace {

inline vf halves(const u8* p) { return from_half(reinterpret_cast<const std::uint16_t*>(p)); }
inline vi words(const u8* p) {
  vi v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
inline vi turned(vi v, int bits) {  // right
#if WIDTH == 16
  return reinterpret_cast<vi>(
      _mm512_rorv_epi32(reinterpret_cast<__m512i>(v), _mm512_set1_epi32(static_cast<int>(bits & 31))));
#else
  typedef std::uint32_t vu __attribute__((vector_size(WIDTH * 4)));
  const vu u = reinterpret_cast<vu>(v);
  return bits % 32 == 0 ? v : reinterpret_cast<vi>(u >> (bits & 31) | u << (-bits & 31));
#endif
}

// One step of 32 k for WIDTH rows. weight(k) = a * code(k) + b; a holds for `scaled` values of k.
template <WeightType T>
struct PackedStep {
  static constexpr PackedLayout layout = packed_layout(T);
  static constexpr bool has_min = T == WeightType::Q4_K || T == WeightType::Q5_K;
  static constexpr int scaled = T == WeightType::Q6_K ? 16 : 32;
  const u8 *block, *step;  // of the first of the WIDTH rows, counted in bytes of a lane's u8
  int lane;                // first row of the sixteen

  vf scale(int k) const {
    const vf d = halves(block + 2 * lane);
    if constexpr (T == WeightType::Q4_0) return d;
    if constexpr (T == WeightType::Q6_K)
      return d * as_float(bytes(reinterpret_cast<const std::int8_t*>(step) + k / 16 * 16 + lane));
    return d * as_float(bytes(step + lane));
  }
  vf min() const { return halves(block + 32 + 2 * lane) * as_float(bytes(step + 16 + lane)) * -1.0f; }

  vi nibble(int k) const { return words(step + layout.scales + k / 8 * 64 + 4 * lane) >> (k % 8 * 4); }
  vi high(int k) const {  // with the code's upper bits at bit 4
    const u8* p = step + layout.scales + PackedLayout::nibbles + 4 * lane;
    return T == WeightType::Q5_K ? turned(words(p), k - 4) : turned(words(p + k / 16 * 64), k % 16 * 2 - 4);
  }
  // The code as a number.
  vf code(int k) const {
    constexpr int bits = T == WeightType::Q6_K ? 6 : T == WeightType::Q5_K ? 5 : 4;
    constexpr float offset = T == WeightType::Q4_0 ? -8 : T == WeightType::Q6_K ? -32 : 0;
#if WIDTH == 16
    const vf low = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const auto t = reinterpret_cast<__m512>(low + offset);
    if constexpr (bits == 4)
      return reinterpret_cast<vf>(_mm512_permutexvar_ps(reinterpret_cast<__m512i>(nibble(k)), t));
    if constexpr (bits == 5) {
      const vi both = joined(nibble(k), 4, high(k));
      return reinterpret_cast<vf>(
          _mm512_permutex2var_ps(t, reinterpret_cast<__m512i>(both), reinterpret_cast<__m512>(low + 16.0f)));
    }
#endif
    vi v = nibble(k) & 15;
    if constexpr (bits > 4) v = v | (high(k) & ((1 << bits) - 16));
    return as_float(v) + offset;
  }
};

template <WeightType T, int M>
void packed_rows(const Gemm& g, const float* sums, i64 group, int lane, i64 m0) {
  using Step = PackedStep<T>;
  constexpr PackedLayout layout = Step::layout;
  constexpr i64 kAhead = 2048;  // bytes; measured: 1024 and 4096 are slower
  constexpr int kChains = 4;    // partial sums: additions that need not wait for each other
  const u8* p = static_cast<const u8*>(g.b) + group * layout.group_bytes(g.k);
  const float* x[M];
  vf acc[M] = {};
  for (int m = 0; m < M; ++m) x[m] = g.a + (m0 + m) * g.a_m;
  for (i64 k0 = 0; k0 < g.k; k0 += layout.block, p += layout.block_bytes())
    for (int s = 0; s < layout.block / kStep; ++s) {
      const u8* at = p + layout.header + s * layout.step_bytes();
      for (int line = 0; line < layout.step_bytes(); line += 64) __builtin_prefetch(at + kAhead + line, 0, 3);
      const Step step{p, at, lane};
      const i64 k = k0 + s * kStep;
#pragma GCC unroll 2
      for (int part = 0; part < kStep; part += Step::scaled) {
        vf sum[M][kChains] = {};
#pragma GCC unroll 32
        for (int i = part; i < part + Step::scaled; ++i) {
          const vf w = step.code(i);
          for (int m = 0; m < M; ++m) sum[m][i % kChains] = fma(w, splat(x[m][k + i]), sum[m][i % kChains]);
        }
        const vf a = step.scale(part);
        for (int m = 0; m < M; ++m) acc[m] = fma(a, (sum[m][0] + sum[m][1]) + (sum[m][2] + sum[m][3]), acc[m]);
      }
      if constexpr (Step::has_min)
        for (int m = 0; m < M; ++m) acc[m] = fma(step.min(), splat(sums[(m0 + m) * (g.k / kStep) + k / kStep]), acc[m]);
    }
  const i64 row = group * PackedLayout::rows + lane, count = std::min<i64>(WIDTH, g.n - row);
  for (int m = 0; m < M; ++m) {
    float* c = g.c + (m0 + m) * g.c_m + row;
    if (count == WIDTH) store(c, acc[m]);
    else
      for (i64 i = 0; i < count; ++i) c[i] = acc[m][i];
  }
}

template <class F>
inline auto with_packed_type(WeightType t, const F& f) {
  switch (t) {
    case WeightType::F32: return f.template operator()<WeightType::F32>();
    case WeightType::Q4_0: return f.template operator()<WeightType::Q4_0>();
    case WeightType::Q4_K: return f.template operator()<WeightType::Q4_K>();
    case WeightType::Q5_K: return f.template operator()<WeightType::Q5_K>();
    case WeightType::Q6_K: return f.template operator()<WeightType::Q6_K>();
    default: __builtin_unreachable();
  }
}

// f32: [k][16].
template <int M>
void plain_packed_rows(const Gemm& g, i64 group, int lane, i64 m0) {
  constexpr i64 kAhead = 512;  // floats
  constexpr int kChains = 4;
  const float* p = static_cast<const float*>(g.b) + group * PackedLayout::rows * g.k + lane;
  vf acc[M][kChains] = {};
  i64 k = 0;
  for (; k + kChains <= g.k; k += kChains, p += kChains * PackedLayout::rows)
    for (int i = 0; i < kChains; ++i) {
      const vf w = load(p + i * PackedLayout::rows);
      __builtin_prefetch(p + kAhead + i * PackedLayout::rows, 0, 3);
      for (int m = 0; m < M; ++m) acc[m][i] = fma(w, splat(g.a[(m0 + m) * g.a_m + k + i]), acc[m][i]);
    }
  for (; k < g.k; ++k, p += PackedLayout::rows)
    for (int m = 0; m < M; ++m) acc[m][0] = fma(load(p), splat(g.a[(m0 + m) * g.a_m + k]), acc[m][0]);
  const i64 row = group * PackedLayout::rows + lane;
  for (int m = 0; m < M; ++m)
    store_part(g.c + (m0 + m) * g.c_m + row, (acc[m][0] + acc[m][1]) + (acc[m][2] + acc[m][3]),
               std::min<i64>(WIDTH, g.n - row));
}

// Sums of 32 operands each, which carry the minima.
void step_sums(const Gemm& g, float* to) {
  if (g.type == WeightType::F32) return;
  for (i64 m = 0; m < g.m; ++m)
    for (i64 k = 0; k < g.k; k += kStep) {
      vf s = {};
      for (int i = 0; i < kStep; i += WIDTH) s = s + load(g.a + m * g.a_m + k + i);
      *to++ = sum(s);
    }
}

void gemv_packed(const Gemm& g, const float* sums, i64 begin, i64 end) {
  with_packed_type(g.type, [&]<WeightType T>() {
    const auto rows = [&]<int M>(i64 group, int lane, i64 m) {
      if constexpr (T == WeightType::F32) plain_packed_rows<M>(g, group, lane, m);
      else packed_rows<T, M>(g, sums, group, lane, m);
    };
    for (i64 group = begin; group < end; ++group)
      for (int lane = 0; lane < PackedLayout::rows && group * PackedLayout::rows + lane < g.n; lane += WIDTH) {
        i64 m = 0;
        for (; m + 2 <= g.m; m += 2) rows.template operator()<2>(group, lane, m);
        if (m < g.m) rows.template operator()<1>(group, lane, m);
      }
  });
}

// Values [k0, k0 + depth) of `count` rows from n on, WIDTH rows at a time, into columns of `to`.
void unpack_strip(const Gemm& g, i64 n, i64 count, i64 k0, i64 depth, float* to, int stride) {
  with_packed_type(g.type, [&]<WeightType T>() {
    if constexpr (T != WeightType::F32) {  // which needs no unpacking
      using Step = PackedStep<T>;
      constexpr PackedLayout layout = Step::layout;
      for (i64 c = 0; c < count; c += WIDTH) {
        const u8* group = static_cast<const u8*>(g.b) + (n + c) / PackedLayout::rows * layout.group_bytes(g.k);
        const int lane = static_cast<int>((n + c) % PackedLayout::rows);
        for (i64 k = k0; k < k0 + depth; k += kStep) {
          const u8* block = group + k / layout.block * layout.block_bytes();
          const Step step{block, block + layout.header + k % layout.block / kStep * layout.step_bytes(), lane};
          for (int i = 0; i < kStep; ++i) {
            vf b = {};
            if constexpr (Step::has_min) b = step.min();
            store(to + (k - k0 + i) * stride + c, fma(step.code(i), step.scale(i), b));
          }
        }
      }
    }
  });
}

}  // namespace
}  // namespace lc::host
