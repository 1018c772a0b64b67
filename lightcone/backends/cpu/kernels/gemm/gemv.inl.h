// GEMV: weight rows times few rows of A. Weights are read once, several rows at a time, each as a stream of its own.
#pragma once

#include "lightcone/backends/cpu/kernels/gemm/decoded_blocks.inl.h"
#include "lightcone/backends/cpu/kernels/gemm/weights.inl.h"

namespace lc::backends::cpu {
namespace {

template <int R>
inline void row_sums(const vf (&acc)[R], float (&y)[R]) {
  if constexpr (R % 4 == 0) {
    LC_UNROLL
    for (int r = 0; r < R; r += 4) {
      const v4 s = sums(acc[r], acc[r + 1], acc[r + 2], acc[r + 3]);
      std::memcpy(y + r, &s, sizeof s);
    }
  } else {
    for (int r = 0; r < R; ++r) y[r] = sum(acc[r]);
  }
}

template <WeightType T, int M, int R>
inline void quantised_rows(const Gemm& g, i64 row, i64 m0, float (&y)[M][R]) {
  using C = Codec<T>;
  const u8* w[R];
  const float* x[M];
  vf acc[M][R];
  for (int r = 0; r < R; ++r) w[r] = static_cast<const u8*>(g.b) + (row + r) * g.b_n;
  for (int m = 0; m < M; ++m) {
    x[m] = g.a + (m0 + m) * g.a_m;
    LC_UNROLL
    for (int r = 0; r < R; ++r) acc[m][r] = vf{};
  }
  // Prefetches the same offset in the next rows: what directly follows belongs to a row that is already being read.
  const i64 ahead = R * g.b_n;
  BlockSums<M * R> blocks;
  for (i64 k = 0; k < g.k; k += C::elements) {
    if (k > 0 && k % kLongRow == 0) each_sum(acc, [&](vf& x, int n) { blocks.end(x, n); });
    for (int r = 0; r < R; ++r) {
      for (int line = 0; line < C::size; line += 64) __builtin_prefetch(w[r] + ahead + line, 0, 3);
      const typename C::Scale s = C::scales(w[r]);
      LC_UNROLL_STEPS(8)
      for (int sub = 0; sub < C::elements / kStep; ++sub) {
        if constexpr (T == WeightType::Q8_0) {  // scaling the sum saves a multiplication per value
          vf part[M] = {};
          for (int i = 0; i < kStep; i += WIDTH) {
            const vf q = as_float(C::codes(w[r], sub, i));
            for (int m = 0; m < M; ++m) part[m] = fma(q, load(x[m] + k + i), part[m]);
          }
          for (int m = 0; m < M; ++m) acc[m][r] = fma(part[m], splat(s.a[0]), acc[m][r]);
        } else {
          for (int i = 0; i < kStep; i += WIDTH) {
            const vf v = values<T>(w[r], s, sub, i);
            for (int m = 0; m < M; ++m) acc[m][r] = fma(v, load(x[m] + k + sub * kStep + i), acc[m][r]);
          }
        }
      }
      w[r] += C::size;
    }
  }
  if (g.k > kLongRow) each_sum(acc, [&](vf& x, int n) { blocks.finish(x, n); });
  LC_UNROLL
  for (int m = 0; m < M; ++m) row_sums(acc[m], y[m]);
}

template <WeightType T, int M, int R>
inline void plain_rows(const Gemm& g, i64 row, i64 m0, float (&y)[M][R]) {
  using P = Plain<T>;
  const std::byte* w[R];
  const float* x[M];
  vf acc[M][R];
  for (int r = 0; r < R; ++r) w[r] = static_cast<const std::byte*>(g.b) + (row + r) * g.b_n * P::bytes;
  for (int m = 0; m < M; ++m) {
    x[m] = g.a + (m0 + m) * g.a_m;
    LC_UNROLL
    for (int r = 0; r < R; ++r) acc[m][r] = vf{};
  }
  const i64 ahead = R * g.b_n * P::bytes;
  BlockSums<M * R> blocks;
  i64 k = 0;
  for (; k + kStep <= g.k; k += kStep) {
    if (k > 0 && k % kLongRow == 0) each_sum(acc, [&](vf& x, int n) { blocks.end(x, n); });
    for (int r = 0; r < R; ++r) {
      for (i64 line = 0; line < kStep * P::bytes; line += 64)
        __builtin_prefetch(w[r] + ahead + k * P::bytes + line, 0, 3);
      for (int i = 0; i < kStep; i += WIDTH) {
        const vf v = P::get(w[r], k + i);
        for (int m = 0; m < M; ++m) acc[m][r] = fma(v, load(x[m] + k + i), acc[m][r]);
      }
    }
  }
  if (k > kLongRow) each_sum(acc, [&](vf& x, int n) { blocks.finish(x, n); });
  LC_UNROLL
  for (int m = 0; m < M; ++m) {
    row_sums(acc[m], y[m]);
    for (int r = 0; r < R; ++r)
      for (i64 i = k; i < g.k; ++i) y[m][r] += P::one(w[r], i) * x[m][i];
  }
}

template <WeightType T, int M, int R>
void rows(const Gemm& g, i64 row, i64 m0) {
  float y[M][R];
  if constexpr (is_quantised(T)) quantised_rows<T, M, R>(g, row, m0, y);
  else plain_rows<T, M, R>(g, row, m0, y);
  for (int m = 0; m < M; ++m)
    for (int r = 0; r < R; ++r) g.c[(m0 + m) * g.c_m + row + r] = y[m][r];
}

// Streams (rows) per thread. Relative to the machine's read bandwidth, with two threads: Q8_0 reads 90 % of it in eight
// streams and 86 % in four; bf16 84 % in four and 70 % in eight (measured).
template <WeightType T>
constexpr int kStreams = T == WeightType::Q8_0 || T == WeightType::Bytes ? 8 : 4;

template <WeightType T, int M>
void gemv_m(const Gemm& g, i64 begin, i64 end, i64 m0) {
  i64 row = begin;
  for (; row + kStreams<T> <= end; row += kStreams<T>) rows<T, M, kStreams<T>>(g, row, m0);
  for (; row < end; ++row) rows<T, M, 1>(g, row, m0);
}

// Writes the rows of A to `to` in the order that gemv needs for the type of B. Returns false if they can stay in place.
bool reorder_rows(const Gemm& g, float* to) {
  if (!is_reordered(g.type)) return false;
  for (i64 m = 0; m < g.m; ++m)
    for (i64 k = 0; k < g.k; k += WIDTH) store(to + m * g.k + k, reordered(load(g.a + m * g.a_m + k)));
  return true;
}

template <WeightType T>
bool dequantize_block(const u8* block, float* to) {
  using C = Codec<T>;
  const typename C::Scale s = C::scales(block);
  float sum = 0;
  for (int j = 0; j < C::elements / C::scaled; ++j) sum += s.a[j] * 0 + s.b[j] * 0;
  if (sum != 0 || sum != sum) return false;
  for (int k = 0; k < C::elements; k += WIDTH) {
    vf v = values<T>(block, s, k / kStep, k % kStep);
    if constexpr (C::format.q.bias != 0)  // as a product, for the sign of zeros
      v = as_float((C::codes(block, k / kStep, k % kStep) & ((1 << C::bits) - 1)) + C::format.q.bias) *
          splat(s.a[k / C::scaled]);
    store(to + k, is_reordered(T) ? reordered(v) : v);
  }
  return true;
}
bool dequantize(WeightType t, const void* block, float* to) {
  if (is_decoded(t)) return decoded_block(t, static_cast<const u8*>(block), to);
  bool done = false;
  with_type(t, [&]<WeightType T>() {
    if constexpr (is_quantised(T)) done = dequantize_block<T>(static_cast<const u8*>(block), to);
  });
  return done;
}

void gemv(const Gemm& g, i64 begin, i64 end) {
  if (is_decoded(g.type)) return decoded_gemv(g, begin, end);
  with_type(g.type, [&]<WeightType T>() {
    i64 m = 0;
    for (; m + 2 <= g.m; m += 2) gemv_m<T, 2>(g, begin, end, m);
    if (m < g.m) gemv_m<T, 1>(g, begin, end, m);
  });
}

}  // namespace
}  // namespace lc::backends::cpu
