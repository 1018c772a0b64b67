// Products on tile registers: bf16, int8, and f32 as sums of bf16 numbers. TILES is a class of tiles.inl.h. A tile of C
// is two strips of 16 rows times two groups of 16 columns, in four sum registers.
#include <array>

#include "lightcone/backends/cpu/kernels/dense/exact_int8.inl.h"
#include "lightcone/backends/cpu/kernels/dense/gemv_int8.inl.h"
#include "lightcone/backends/cpu/kernels/dense/split.inl.h"
#include "lightcone/backends/cpu/kernels/vectors/tiles.inl.h"

namespace lc::backends::cpu {
namespace {

constexpr int kTile = 16, kTileBytes = 1024, kSide = 2 * kTile;
using Block = float[kSide][kSide];  // the four sums in memory

// Calls f for the sum registers of both strips of 16 rows, or of the first.
template <bool Both, class F>
void for_sums(const F& f) {
  f.template operator()<0>(0, 0);
  f.template operator()<1>(0, kTile);
  if constexpr (Both) {
    f.template operator()<2>(kTile, 0);
    f.template operator()<3>(kTile, kTile);
  }
}
template <bool Both = true>
void zero_sums() {
  for_sums<Both>([]<int T>(int, int) { TILES::zero<T>(); });
}
template <bool Both = true>
void load_sums(const float* c, i64 c_m) {
  for_sums<Both>([&]<int T>(int i, int j) { TILES::load<T>(c + i * c_m + j, c_m * 4); });
}
template <bool Both = true>
void store_sums(float* c, i64 c_m) {
  for_sums<Both>([&]<int T>(int i, int j) { TILES::store<T>(c + i * c_m + j, c_m * 4); });
}

// Bytes that a step prefetches into L2: with the steps of eight strips all of the next strip of B.
constexpr int kTilesFetched = 256;
template <int Bytes = kTilesFetched>
class Fetched {
 public:
  explicit Fetched(const void* soon) : at_(static_cast<const std::byte*>(soon)) {}
  void step() {
    if (!at_) return;
    for (int i = 0; i < Bytes; i += 64) __builtin_prefetch(at_ + i, 0, 2);
    at_ += Bytes;
  }

 private:
  const std::byte* at_;
};

// A step of 64 bytes of each row of A. A is read once for a strip of B, and must not drive that out of L1.
template <bool Both, class Dots>
void step(const std::byte* a, const std::byte* b0, const std::byte* b1, Fetched<>& fetched, const Dots& dots) {
  TILES::load<6>(b0, 64);
  TILES::load_once<4>(a, 64);
  dots.template operator()<0, 4, 6>();
  TILES::load<7>(b1, 64);
  dots.template operator()<1, 4, 7>();
  if constexpr (Both) {
    TILES::load_once<5>(a + kTileBytes, 64);
    dots.template operator()<2, 5, 6>();
  }
  fetched.step();
  if constexpr (Both) dots.template operator()<3, 5, 7>();
}
// Some steps. Addresses are numbers of its own: the instructions may change any memory, so that others would be loaded
// anew in each step.
template <bool Both, class Dots>
void all_steps(const std::byte* a, const std::byte* b0, const std::byte* b1, i64 steps, const void* soon,
               const Dots& dots) {
  Fetched<> fetched(soon);
  for (; steps > 0; --steps, a += 2 * kTileBytes, b0 += kTileBytes, b1 += kTileBytes)
    step<Both>(a, b0, b1, fetched, dots);
}
constexpr auto kDotsBf16 = []<int C, int A, int B>() { TILES::dot_bf16<C, A, B>(); };
constexpr auto kDotsInt8 = []<int C, int A, int B>() { TILES::dot_int8<C, A, B>(); };
template <bool Both = true, class Dots>
void all_dots(const Dots& dots) {
  dots.template operator()<0, 4, 6>();
  dots.template operator()<1, 4, 7>();
  if constexpr (Both) {
    dots.template operator()<2, 5, 6>();
    dots.template operator()<3, 5, 7>();
  }
}

// Runs f<Both>() on sums that start from C or from zeros and end in C, by way of a local block if the tile is not
// whole.
template <class F>
void sums_in_c(float* c, i64 c_m, i64 rows, i64 columns, bool add, const F& f) {
  const auto in_place = [&]<bool Both>() {
    if (add) load_sums<Both>(c, c_m);
    else zero_sums<Both>();
    f.template operator()<Both>();
    store_sums<Both>(c, c_m);
  };
  if (columns == kSide && rows == kSide) return in_place.template operator()<true>();
  if (columns == kSide && rows == kTile) return in_place.template operator()<false>();
  alignas(64) Block block = {};
  for (i64 i = 0; add && i < rows; ++i)
    for (i64 j = 0; j < columns; ++j) block[i][j] = c[i * c_m + j];
  load_sums(block[0], kSide);
  f.template operator()<true>();
  store_sums(block[0], kSide);
  for (i64 i = 0; i < rows; ++i)
    for (i64 j = 0; j < columns; ++j) c[i * c_m + j] = block[i][j];
}

// Copies sums to C. The task's TILES::end() makes stores past the caches visible.
void put_sums(const float* sums, i64 distance, float* c, i64 c_m, i64 rows, i64 columns, bool streamed) {
#if WIDTH == 16
  if (streamed && columns % 16 == 0 && reinterpret_cast<std::uintptr_t>(c) % 64 == 0 && c_m % 16 == 0) {
    for (i64 i = 0; i < rows; ++i)
      for (i64 j = 0; j < columns; j += 16) _mm512_stream_ps(c + i * c_m + j, _mm512_load_ps(sums + i * distance + j));
    return;
  }
#endif
  static_cast<void>(streamed);
  for (i64 i = 0; i < rows; ++i, sums += distance, c += c_m) {
    i64 j = 0;
    for (; j + WIDTH <= columns; j += WIDTH) store(c + j, load(sums + j));
    for (; j < columns; ++j) c[j] = sums[j];
  }
}

// ---- bf16 --------------------------------------------------------------------------------------

// Packs a column-major A: words of two k, a row per lane, are transposed to rows.
void pack_columns_bf16(const float* a, i64 a_k, i64 rows, i64 depth, std::uint32_t* to) {
  const i64 steps = (depth + 31) / 32;
  for (i64 i = 0; i < rows; i += kSide, to += steps * 2 * kTileBytes / 4)
    for (i64 s = 0; s < steps; ++s)
      for (i64 r = 0; r < kSide; r += WIDTH)
        for (i64 pair = 0; pair < kTile; pair += WIDTH) {
          const i64 there = std::clamp<i64>(rows - i - r, 0, WIDTH), k = s * 32 + 2 * pair;
          const float* from = a + k * a_k + i + r;
          vf v[WIDTH];
          for (i64 p = 0; p < WIDTH; ++p, from += 2 * a_k) {
            const i64 left = depth - k - 2 * p;
            if (there == WIDTH && left >= 2) v[p] = reinterpret_cast<vf>(bf16_words(load(from), load(from + a_k)));
            else if (there > 0 && left > 0)
              v[p] = reinterpret_cast<vf>(
                  bf16_words(load_part(from, there), left > 1 ? load_part(from + a_k, there) : vf{}));
            else v[p] = vf{};
          }
          transpose(v);
          for (i64 e = 0; e < WIDTH; ++e)
            store(reinterpret_cast<float*>(to + (s * kSide + r + e) * kTile + pair), v[e]);
        }
}

// Packs A as u16 [k / 32][32 rows][32].
void pack_a_bf16(const float* a, i64 a_m, i64 a_k, i64 rows, i64 depth, int, void* to) {
  if (a_m == 1 && a_k != 1) return pack_columns_bf16(a, a_k, rows, depth, static_cast<std::uint32_t*>(to));
  const i64 whole = a_k == 1 ? depth / 32 : 0, steps = (depth + 31) / 32;
  for (i64 i = 0; i < rows; i += kSide) {
    auto* strip = static_cast<std::uint32_t*>(to) + i / kSide * steps * 2 * kTileBytes / 4;
    for (i64 r = 0; r < kSide; ++r) {
      const float* from = a + (i + r) * a_m;
      const bool there = i + r < rows;
      for (i64 s = 0; s < steps; ++s) {
        std::uint32_t* out = strip + (s * kSide + r) * 16;
        if (there && s < whole) {
          __builtin_prefetch(from + a_m + s * 32, 0, 3), __builtin_prefetch(from + a_m + s * 32 + 16, 0, 3);
          round_to_bf16(from + s * 32, out);
          continue;
        }
        alignas(64) float row[32];
        load_row(from + s * 32 * a_k, a_k, there ? std::min<i64>(32, depth - s * 32) : 0, row);
        round_to_bf16(row, out);
      }
    }
  }
}

// The same of numbers that are bf16.
void copy_a_bf16(const std::uint16_t* a, i64 a_m, i64 rows, i64 depth, std::byte* to) {
  constexpr i64 kBytes = 64;  // 32 numbers
  const i64 steps = (depth + 31) / 32, whole = depth / 32;
  for (i64 r = 0; r < (rows + kSide - 1) / kSide * kSide; ++r, a += a_m) {
    std::byte* out = to + r / kSide * steps * 2 * kTileBytes + r % kSide * kBytes;
    for (i64 s = 0; s < steps; ++s, out += 2 * kTileBytes) {
      if (r < rows && s < whole) {
        __builtin_prefetch(a + a_m + s * 32, 0, 3);
        std::memcpy(out, a + s * 32, kBytes);
        continue;
      }
      const auto there = static_cast<std::size_t>(r < rows ? 2 * (depth - s * 32) : 0);
      std::memset(out, 0, kBytes);
      if (there > 0) std::memcpy(out, a + s * 32, there);
    }
  }
}

// Blocks of packed weights become pairs in registers.
template <WeightType T>
void bf16_from_blocks(const u8* group, i64 k0, i64 depth, std::uint32_t* to) {
  using Step = PackedStep<T>;
  for (i64 k = k0; k < k0 + depth; k += kStep, to += kStep / 2 * kGroup)
    for (int lane = 0; lane < kGroup; lane += WIDTH) {
      const Step step(group, k, lane);
      vf min = {};
      if constexpr (Step::has_min) min = step.min();
      LC_UNROLL_STEPS(2)
      for (int part = 0; part < kStep; part += Step::scaled) {
        const vf scale = step.scale(part);
        LC_UNROLL_STEPS(16)
        for (int i = part; i < part + Step::scaled; i += 2)
          *reinterpret_cast<vu_stored*>(to + i / 2 * kGroup + lane) =
              bf16_words(fma(step.code(i), scale, min), fma(step.code(i + 1), scale, min));
      }
    }
}
void pack_b_bf16_tiles(const Gemm& g, i64 j0, i64 columns, i64 k0, i64 depth, void* to, i64 b_group) {
  if (!g.packed || !is_quantised(g.type)) return pack_b_bf16<32>(g, j0, columns, k0, depth, to, b_group);
  const i64 group_bytes = packed_layout(g.type).group_bytes(g.k);
  for (i64 j = 0; j < columns; j += kGroup)
    with_packed_type(g.type, [&]<WeightType T>() {
      if constexpr (is_quantised(T))
        bf16_from_blocks<T>(static_cast<const u8*>(g.b) + (j0 + j) / kGroup * group_bytes, k0, depth,
                            reinterpret_cast<std::uint32_t*>(static_cast<std::byte*>(to) + j / kGroup * b_group));
    });
}

void tile_bf16(const void* a, const void* b, i64 b_group, i64 depth, float* c, i64 c_m, i64 rows, i64 columns, bool add,
               const void* soon) {
  const GroupsOf<2> groups(b, b_group, columns);
  const auto* x = static_cast<const std::byte*>(a);
  sums_in_c(c, c_m, rows, columns, add,
            [&]<bool Both>() { all_steps<Both>(x, groups.at[0], groups.at[1], (depth + 31) / 32, soon, kDotsBf16); });
}

// ---- f32 as sums of two or three bf16 numbers ---------------------------------------------------

// Part numbers of a product of split A and B. The lists of lower products are ordered so that consecutive products
// share an operand.
struct Product {
  int a, b;
};
template <int Parts>
constexpr auto kLower = std::array<Product, 5>{{{2, 0}, {1, 0}, {1, 1}, {0, 1}, {0, 2}}};
template <>
constexpr auto kLower<2> = std::array<Product, 2>{{{1, 0}, {0, 1}}};
constexpr auto kHigh = std::array<Product, 1>{{{0, 0}}};

template <int Parts, bool Both, std::size_t Count>
void split_step(const std::byte* a, const std::byte* const (&b)[2], const std::array<Product, Count>& products) {
  int a_part = -1, b_part = -1;
  for (const Product& p : products) {
    if (p.a != a_part) {
      TILES::load_once<4>(a + kHeader + p.a * kTileBytes, 64);
      if constexpr (Both) TILES::load_once<5>(a + kHeader + (Parts + p.a) * kTileBytes, 64);
    }
    if (p.b != b_part) {
      TILES::load<6>(b[0] + kHeader + p.b * kTileBytes, 64);
      TILES::load<7>(b[1] + kHeader + p.b * kTileBytes, 64);
    }
    a_part = p.a, b_part = p.b;
    all_dots<Both>(kDotsBf16);
  }
}

// Adds the products of a step's rows and columns that are not split to the sums, by multiply-adds.
template <int Parts>
void plain_step(const std::byte* a, const std::byte* const (&b)[2], vf (&sums)[kSide][kSide / WIDTH]) {
  alignas(64) float x[kSide][kStepOfSplit], y[2][kStepOfSplit][kTile];
  const std::uint32_t rows = plain(a), columns = plain(b[0]) | plain(b[1]) << kTile;
  join_a<Parts>(a, x);
  for (int g = 0; g < 2; ++g) join_b<Parts>(b[g], y[g]);
  for (int j = 0; j < kSide; j += WIDTH) {
    const vi wanted = lanes_of(columns, j);
    const bool some = any(wanted);
    for (int i = 0; i < kSide; ++i) {
      const bool whole = rows >> i & 1;
      if (!whole && !some) continue;
      vf part[4] = {};
      for (int k = 0; k < kStepOfSplit; ++k)
        part[k % 4] = fma(splat(x[i][k]), load(y[j / kTile][k] + j % kTile), part[k % 4]);
      vf& to = sums[i][j / WIDTH];
      const vf sum = to + ((part[0] + part[1]) + (part[2] + part[3]));
      to = whole ? sum : choose(wanted, sum, to);
    }
  }
}

// The operands of a call: the steps of a strip of A and of two groups of B.
template <int Parts>
struct SplitOperands {
  const std::byte* a;
  const GroupsOf<2>& b;
  i64 depth;
  template <class F>
  void steps(const F& f) const {
    const std::byte* x = a;
    for (i64 k = 0, at = 0; k < depth; k += kStepOfSplit, at += split_bytes(Parts), x += split_bytes(2 * Parts)) {
      const std::byte* const y[2] = {b.at[0] + at, b.at[1] + at};
      f(x, y);
    }
  }
  // Whether some rows are scaled, or some rows or columns of a step are not split.
  bool ordinary() const {
    std::uint32_t unsplit = 0;
    steps([&](const std::byte* x, const std::byte* const(&y)[2]) { unsplit |= plain(x) | plain(y[0]) | plain(y[1]); });
    const SplitHeader first = header(a);
    return unsplit == 0 && std::all_of(first.exponent, first.exponent + kSide, [](int e) { return e == 0; });
  }
};

// The sums of rows that are scaled, and of rows and columns that are not split.
template <int Parts>
void sums_by_rows(const SplitOperands<Parts>& o, vf (&sums)[kSide][kSide / WIDTH]) {
  alignas(64) std::byte room[split_bytes(4 * Parts) + 2 * kHeader];
  const auto products = [&](const auto& which) {
    o.steps([&](const std::byte* x, const std::byte* const(&y)[2]) {
      const std::byte* const z[2] = {split_part_of_b<Parts>(y[0], room + split_bytes(2 * Parts)),
                                     split_part_of_b<Parts>(y[1], room + split_bytes(2 * Parts) + split_bytes(Parts))};
      split_step<Parts, true>(split_part_of_a<Parts>(x, room), z, which);
    });
  };
  zero_sums();
  products(kLower<Parts>);
  products(kHigh);
  store_sums(reinterpret_cast<float*>(sums), kSide);
  const SplitHeader first = header(o.a);
  for (int i = 0; i < kSide; ++i)
    for (vf& v : sums[i]) v = v * power(-first.exponent[i]);
  o.steps([&](const std::byte* x, const std::byte* const(&y)[2]) {
    if (plain(x) | plain(y[0]) | plain(y[1])) plain_step<Parts>(x, y, sums);
  });
}

// Computes all lower products first, while the sums are small and lose little to rounding.
template <int Parts>
void tile_split(const void* a, const void* b, i64 b_group, i64 depth, float* c, i64 c_m, i64 rows, i64 columns,
                bool add, const void* soon) {
  const GroupsOf<2> groups(b, b_group, columns);
  const SplitOperands<Parts> o{static_cast<const std::byte*>(a), groups, depth};
  alignas(64) vf sums[kSide][kSide / WIDTH];
  if (!o.ordinary()) {
    sums_by_rows<Parts>(o, sums);
    return store_tile(sums, c, c_m, rows, columns, add);
  }
  const auto products = [&]<bool Both>() {
    Fetched<kTilesFetched * Parts> fetched(soon);
    zero_sums<Both>();
    o.steps([&](const std::byte* x, const std::byte* const(&y)[2]) {
      split_step<Parts, Both>(x, y, kLower<Parts>);
      fetched.step();
    });
    o.steps([&](const std::byte* x, const std::byte* const(&y)[2]) { split_step<Parts, Both>(x, y, kHigh); });
  };
  const bool both = rows > kTile;
  if (both) products.template operator()<true>();
  else products.template operator()<false>();
  if (!add && columns == kSide && rows % kTile == 0) return both ? store_sums(c, c_m) : store_sums<false>(c, c_m);
  if (both) store_sums(reinterpret_cast<float*>(sums), kSide);
  else store_sums<false>(reinterpret_cast<float*>(sums), kSide);
  store_tile(sums, c, c_m, rows, columns, add);
}

// ---- int8 --------------------------------------------------------------------------------------

template <int Step, bool Min>
void tile_int8(const void* a, const void* b, i64 b_group, i64 depth, float* c, i64 c_m, i64 rows, i64 columns, bool add,
               const void*) {
  using B = PanelStep<Step, Min>;
  const GroupsOf<2> groups(b, b_group, columns);
  const auto* x = static_cast<const Quantised<kSide, Step, Min>*>(a);
  vf acc[kSide][2 * kGroupVectors] = {};
  for (i64 k = 0, at = 0; k < depth; k += Step, at += B::bytes, ++x) {
    const B panels[2] = {{const_cast<std::byte*>(groups.at[0]) + at}, {const_cast<std::byte*>(groups.at[1]) + at}};
    zero_sums();
    TILES::load<4>(x->codes[0], Step);
    TILES::load<5>(x->codes[kTile], Step);
    TILES::load<6>(panels[0].codes(), 64);
    TILES::load<7>(panels[1].codes(), 64);
    all_dots(kDotsInt8);
    alignas(64) Block sums;
    store_sums(sums[0], kSide);
    for (int i = 0; i < kSide; ++i)
      for (int t = 0; t < 2 * kGroupVectors; ++t)
        acc[i][t] = add_step<Min>(acc[i][t], reinterpret_cast<vi>(load(sums[i] + t * WIDTH)) + x->start[i], *x, i,
                                  panels[t / kGroupVectors], t % kGroupVectors * WIDTH);
  }
  store_tile(acc, c, c_m, rows, columns, add);
}

// Exact products: C and the sums are int32. A strip is i8 [steps][32][64], then what the sums of a row begin with,
// because B's bytes are stored with an offset of 128: i32 [32][16] with kStartSteps or more steps, each row 16 times,
// as tiles load it for all columns; else i32 [32]. The size of every step includes a part of that.
constexpr int kStartSteps = 8, kStartBytes = kSide * kTile * 4, kExactA = 2 * kTileBytes + kStartBytes / kStartSteps;
inline std::int32_t sum_of_bytes(const std::int8_t* p) {
  std::int32_t sum = 0;
  for (int e = 0; e < kExactStep; ++e) sum += p[e];
  return sum;
}
// Copies whole steps of a row. Returns the sum of their bytes.
inline std::int32_t copy_steps(const std::int8_t* from, i64 steps, std::int8_t* to) {
#if defined(VNNI) && WIDTH == 16
  __m512i sums = _mm512_setzero_si512();
  for (i64 s = 0; s < steps; ++s) {
    const __m512i v = _mm512_loadu_si512(from + s * kExactStep);
    _mm512_storeu_si512(to + s * kSide * kExactStep, v);
    sums = _mm512_dpbusd_epi32(sums, _mm512_set1_epi8(1), v);
  }
  return _mm512_reduce_add_epi32(sums);
#else
  std::int32_t sum = 0;
  for (i64 s = 0; s < steps; ++s) {
    std::memcpy(to + s * kSide * kExactStep, from + s * kExactStep, kExactStep);
    sum += sum_of_bytes(from + s * kExactStep);
  }
  return sum;
#endif
}
void pack_a_exact(const float* a, i64 a_m, i64 a_k, i64 rows, i64 depth, int, void* to) {
  const i64 steps = (depth + kExactStep - 1) / kExactStep;
  auto* strip = static_cast<std::int8_t*>(to);
  for (i64 i = 0; i < rows; i += kSide, strip += steps * kExactA) {
    std::int32_t start[kSide] = {};
    for (i64 r = 0; r < kSide; ++r) {
      const std::int8_t* from = reinterpret_cast<const std::int8_t*>(a) + (i + r) * a_m;
      const i64 whole = a_k == 1 && i + r < rows ? depth / kExactStep : 0;
      start[r] = -128 * copy_steps(from, whole, strip + r * kExactStep);
      for (i64 s = whole; s < steps; ++s) {
        std::int8_t* out = strip + (s * kSide + r) * kExactStep;
        const i64 k = s * kExactStep, count = i + r < rows ? std::min<i64>(kExactStep, depth - k) : 0;
        std::memset(out, 0, kExactStep);
        for (i64 e = 0; e < count; ++e) out[e] = from[(k + e) * a_k];
        start[r] -= 128 * sum_of_bytes(out);
      }
    }
    if (steps < kStartSteps) std::memcpy(strip + steps * 2 * kTileBytes, start, sizeof start);
    else
      for (int r = 0; r < kSide; ++r)
        std::fill_n(reinterpret_cast<std::int32_t*>(strip + steps * 2 * kTileBytes) + r * kTile, kTile, start[r]);
  }
}
void tile_exact(const void* a, const void* b, i64 b_group, i64 depth, float* c, i64 c_m, i64 rows, i64 columns,
                bool add, const void* soon) {
  const GroupsOf<2> groups(b, b_group, columns);
  const auto* x = static_cast<const std::byte*>(a);
  const i64 steps = (depth + kExactStep - 1) / kExactStep;
  const auto* starts = reinterpret_cast<const std::int32_t*>(x + steps * 2 * kTileBytes);
  const bool wide = steps >= kStartSteps;
  const auto start = [&](i64 row) { return starts[wide ? row * kTile : row]; };
  const auto run = [&]<bool Both>() { all_steps<Both>(x, groups.at[0], groups.at[1], steps, soon, kDotsInt8); };
  const auto in_place = [&]<bool Both>() {
    constexpr int kRows = Both ? kSide : kTile;
    if (add) {
      for (i64 i = 0; i < kRows; ++i)
        for (int j = 0; j < kSide; j += WIDTH) {
          float* p = c + i * c_m + j;
          store(p, reinterpret_cast<vf>(reinterpret_cast<vi>(load(p)) + start(i)));
        }
      load_sums<Both>(c, c_m);
    } else if (wide) {  // one block for both groups of columns
      for_sums<Both>([&]<int T>(int i, int) { TILES::load<T>(starts + i * kTile, 64); });
    } else {
      alignas(64) std::int32_t first[kRows][kTile];
      for (int i = 0; i < kRows; ++i)
        for (std::int32_t& v : first[i]) v = start(i);
      for_sums<Both>([&]<int T>(int i, int) { TILES::load<T>(first[i], 64); });
    }
    run.template operator()<Both>();
    store_sums<Both>(c, c_m);
  };
  if (columns == kSide && rows == kSide) return in_place.template operator()<true>();
  if (columns == kSide && rows == kTile) return in_place.template operator()<false>();
  alignas(64) std::int32_t sums[kSide][kSide] = {};
  const auto row_bytes = static_cast<std::size_t>(columns) * 4;
  for (i64 i = 0; i < rows; ++i) {
    if (add) std::memcpy(sums[i], c + i * c_m, row_bytes);
    for (std::int32_t& v : sums[i]) v += start(i);
  }
  load_sums(reinterpret_cast<const float*>(sums), kSide);
  run.template operator()<true>();
  store_sums(reinterpret_cast<float*>(sums), kSide);
  for (i64 i = 0; i < rows; ++i) std::memcpy(c + i * c_m, sums[i], row_bytes);
}

}  // namespace

extern "C" {
void LC_ENTRY(tiles_begin16)() { TILES::begin({16}); }
void LC_ENTRY(tiles_begin32)() { TILES::begin({32}); }
void LC_ENTRY(tiles_begin64)() { TILES::begin({64}); }
void LC_ENTRY(tiles_end)() { TILES::end(); }
void LC_ENTRY(tiles_put_sums)(const float* sums, i64 distance, float* c, i64 c_m, i64 rows, i64 columns,
                              bool streamed) {
  put_sums(sums, distance, c, c_m, rows, columns, streamed);
}
void LC_ENTRY(tiles_pack_bf16)(const std::uint16_t* a, i64 a_m, i64 rows, i64 depth, void* to) {
  copy_a_bf16(a, a_m, rows, depth, static_cast<std::byte*>(to));
}
}
LC_MICROKERNEL_ENTRIES(bf16, pack_a_bf16, pack_b_bf16_tiles, tile_bf16)
LC_MICROKERNEL_ENTRIES(split2, split_a<2>, split_b<2>, tile_split<2>)
LC_MICROKERNEL_ENTRIES(split3, split_a<3>, split_b<3>, tile_split<3>)
LC_MICROKERNEL_ENTRIES(int8_step32, (quantise<kSide, 32, false>), pack_b_int8, (tile_int8<32, false>))
LC_MICROKERNEL_ENTRIES(int8_step32_min, (quantise<kSide, 32, true>), pack_b_int8, (tile_int8<32, true>))
LC_MICROKERNEL_ENTRIES(int8_step16, (quantise<kSide, 16, false>), pack_b_int8, (tile_int8<16, false>))
LC_MICROKERNEL_ENTRIES(int8_step16_min, (quantise<kSide, 16, true>), pack_b_int8, (tile_int8<16, true>))
LC_MICROKERNEL_ENTRIES(int8_exact, pack_a_exact, pack_exact_b, tile_exact)
// Formats with steps of 16 and minima have no packed layout, and thus no gemv.
LC_GEMV_ENTRIES(int8_step32, (pack_rows_int8<32, false>), (gemv_int8<32, false>))
LC_GEMV_ENTRIES(int8_step32_min, (pack_rows_int8<32, true>), (gemv_int8<32, true>))
LC_GEMV_ENTRIES(int8_step16, (pack_rows_int8<16, false>), (gemv_int8<16, false>))

// A row of the table: `rows` bytes of a row of A in a tile register, and what a step prefetches. The sums of four
// strips take a third of L1.
#define LC_UNIT(text, arithmetic, entry, step, a_step, b_step, fetched, rows, PACK_ROWS, GEMV, ...)                    \
  {                                                                                                                    \
    text "_" LC_ISA_NAME, arithmetic, kSide, kSide, step, a_step, b_step, fetched, LC_ENTRY(entry##_pack_a),           \
        LC_ENTRY(entry##_pack_b), LC_ENTRY(entry##_tile), LC_ENTRY(tiles_begin##rows), LC_ENTRY(tiles_end), PACK_ROWS, \
        GEMV, false, 4, LC_ENTRY(tiles_put_sums) __VA_OPT__(, ) __VA_ARGS__                                            \
  }
#define LC_INT8_UNIT(text, arithmetic, entry, Step, Min, PACK_ROWS, GEMV)                                            \
  LC_UNIT("int8_" text, arithmetic, entry, Step, sizeof(Quantised<kSide, Step, Min>), (PanelStep<Step, Min>::bytes), \
          0, Step, PACK_ROWS, GEMV)

const Microkernel UNITS[8] = {
    LC_UNIT("bf16", Arithmetic::Bf16, bf16, 32, 2 * kTileBytes, kTileBytes, kTilesFetched, 64, nullptr, nullptr,
            LC_ENTRY(tiles_pack_bf16)),
    LC_UNIT("split2", Arithmetic::Split2, split2, kStepOfSplit, split_bytes(4), split_bytes(2), 2 * kTilesFetched, 64,
            nullptr, nullptr),
    LC_UNIT("split3", Arithmetic::Split3, split3, kStepOfSplit, split_bytes(6), split_bytes(3), 3 * kTilesFetched, 64,
            nullptr, nullptr),
    LC_INT8_UNIT("32", Arithmetic::Int8Step32, int8_step32, 32, false, LC_ENTRY(int8_step32_pack_rows),
                 LC_ENTRY(int8_step32_gemv)),
    LC_INT8_UNIT("32_min", Arithmetic::Int8Step32Min, int8_step32_min, 32, true, LC_ENTRY(int8_step32_min_pack_rows),
                 LC_ENTRY(int8_step32_min_gemv)),
    LC_INT8_UNIT("16", Arithmetic::Int8Step16, int8_step16, 16, false, LC_ENTRY(int8_step16_pack_rows),
                 LC_ENTRY(int8_step16_gemv)),
    LC_INT8_UNIT("16_min", Arithmetic::Int8Step16Min, int8_step16_min, 16, true, nullptr, nullptr),
    LC_UNIT("int8_exact", Arithmetic::Int8Exact, int8_exact, kExactStep, kExactA, kExactBytes, kTilesFetched, 64,
            nullptr, nullptr)};

}  // namespace lc::backends::cpu
