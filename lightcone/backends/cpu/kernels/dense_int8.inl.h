// Products of quantised activations and block weights, summed as whole numbers over a step and then in f32.
// One of VNNI (dpbusd), MADD (16-bit products of pairs) and nothing (plain C++) says how the sums are made.
#include "lightcone/backends/cpu/kernels/quantise.inl.h"

namespace lc::host {
namespace {

constexpr int kTileVectors = GROUPS * kGroupVectors;

// The sums of one row of A with WIDTH columns. A word is four codes of each.
struct Sums {
#if defined(VNNI) && WIDTH == 16
  using Word = __m512i;
  using Codes = __m512i;
  __m512i sum = _mm512_setzero_si512();
  static Word splat(const void* a) { return _mm512_set1_epi32(static_cast<int>(word(static_cast<const u8*>(a)))); }
  static Codes codes(const void* b) { return _mm512_loadu_si512(b); }
  void add(Codes b, Word a) { sum = _mm512_dpbusd_epi32(sum, b, a); }
  vi total() const { return reinterpret_cast<vi>(sum); }
#elif defined(VNNI)
  using Word = __m256i;
  using Codes = __m256i;
  __m256i sum = _mm256_setzero_si256();
  static Word splat(const void* a) { return _mm256_set1_epi32(static_cast<int>(word(static_cast<const u8*>(a)))); }
  static Codes codes(const void* b) { return _mm256_loadu_si256(static_cast<const __m256i*>(b)); }
  void add(Codes b, Word a) { sum = _mm256_dpbusd_avx_epi32(sum, b, a); }
  vi total() const { return reinterpret_cast<vi>(sum); }
#elif defined(MADD)
  // The product of bytes saturates its sums of pairs, that of 16 bits is exact. `low` is of columns 0, 1, 4 and 5.
  using Word = __m256i;
  struct Codes {
    __m256i low, high;
  };
  __m256i low = _mm256_setzero_si256(), high = _mm256_setzero_si256();
  static Word splat(const void* a) {
    return _mm256_cvtepi8_epi16(_mm_set1_epi32(static_cast<int>(word(static_cast<const u8*>(a)))));
  }
  static Codes codes(const void* b) {
    const __m256i all = _mm256_loadu_si256(static_cast<const __m256i*>(b)), zero = _mm256_setzero_si256();
    return {_mm256_unpacklo_epi8(all, zero), _mm256_unpackhi_epi8(all, zero)};
  }
  void add(const Codes& b, Word a) {
    low = _mm256_add_epi32(low, _mm256_madd_epi16(b.low, a));
    high = _mm256_add_epi32(high, _mm256_madd_epi16(b.high, a));
  }
  vi total() const { return reinterpret_cast<vi>(_mm256_hadd_epi32(low, high)); }
#else
  using Word = const std::int8_t*;
  struct Codes {
    vi of[4];
  };
  vi sum = {};
  static Word splat(const std::int8_t* a) { return a; }
  static Codes codes(const u8* b) {
    const vi all = words(b);
    return {{all & 255, all >> 8 & 255, all >> 16 & 255, all >> 24 & 255}};
  }
  void add(const Codes& b, Word a) {
    for (int q = 0; q < 4; ++q) sum += b.of[q] * a[q];
  }
  vi total() const { return sum; }
#endif
};

template <int Step, bool Min>
void tile(const void* a, const void* b, i64 b_group, i64 depth, float* c, i64 c_m, i64 rows, i64 columns, bool add) {
  using A = Quantised<MR, Step, Min>;
  using B = PanelStep<Step, Min>;
  const GroupsOf<GROUPS> groups(b, b_group, columns);
  const auto* x = static_cast<const A*>(a);
  vf acc[MR][kTileVectors] = {};
  for (i64 k = 0, offset = 0; k < depth; k += Step, offset += B::bytes, ++x) {
    const auto panel = [&](int t) { return B{const_cast<std::byte*>(groups.at[t / kGroupVectors]) + offset}; };
    const auto lane = [](int t) { return t % kGroupVectors * WIDTH; };
    Sums sums[MR][kTileVectors];
#pragma GCC unroll 8
    for (int v = 0; v < Step / 4; ++v) {
      typename Sums::Codes codes[kTileVectors];
      for (int t = 0; t < kTileVectors; ++t)
        codes[t] = Sums::codes(reinterpret_cast<const u8*>(panel(t).codes() + v * kGroup + lane(t)));
#pragma GCC unroll 16
      for (int i = 0; i < MR; ++i) {
        const auto w = Sums::splat(x->codes[i] + 4 * v);
        for (int t = 0; t < kTileVectors; ++t) sums[i][t].add(codes[t], w);
      }
    }
    for (int t = 0; t < kTileVectors; ++t)
      for (int i = 0; i < MR; ++i) acc[i][t] = add_step<Min>(acc[i][t], sums[i][t].total(), *x, i, panel(t), lane(t));
  }
  store_tile(acc, c, c_m, rows, columns, add);
}

template <int Step, bool Min>
constexpr DenseUnit unit(const char* name, Arithmetic a) {
  return {name,
          a,
          MR,
          GROUPS * kGroup,
          Step,
          sizeof(Quantised<MR, Step, Min>),
          PanelStep<Step, Min>::bytes,
          quantise<MR, Step, Min>,
          pack_b_int8,
          tile<Step, Min>};
}

}  // namespace

const DenseUnit UNITS[4] = {unit<32, false>(UNIT_NAME "_32", Arithmetic::Int8Step32),
                            unit<32, true>(UNIT_NAME "_32_min", Arithmetic::Int8Step32Min),
                            unit<16, false>(UNIT_NAME "_16", Arithmetic::Int8Step16),
                            unit<16, true>(UNIT_NAME "_16_min", Arithmetic::Int8Step16Min)};

}  // namespace lc::host
