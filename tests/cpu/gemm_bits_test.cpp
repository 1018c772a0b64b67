// An element of a product has the same bits however its operands are stored, packed and divided: with packed weights,
// few rows, a transposed A, other neighbours, in a group, and for any threads and caches.
#include "lightcone/backends/cpu/products/gemm.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "guarded.h"
#include "lightcone/backends/cpu/products/microkernel.h"
#include "lightcone/backends/cpu/products/packed_weights.h"
#include "lightcone/backends/cpu/threads/thread_pool.h"
#include "lightcone/core/dtype.h"
#include "lightcone/formats/block_formats.h"
#include "products.h"

using namespace lc;
using namespace lc::backends::cpu;
using namespace lc::backends::cpu::products_test;

// Packed weights are read in place, or each task repacks them for itself; other weights are first packed to panels.
// Both give the same bits with several blocks of A, several parts of its rows, several calls of `tile` and a last block
// that is not full.
TEST(Gemm, PackedWeightsLargerThanEveryBlock) {
  constexpr std::int64_t kM = 2700, kN = 260, kK = 1280;
  std::mt19937 random(10);
  std::normal_distribution<float> normal;
  std::vector<float> a(kM * kK);
  for (float& x : a) x = normal(random);
  int checked = 0;
  for (const Microkernel* u : microkernels())
    for (const WeightType t : {WeightType::F16, WeightType::BF16, WeightType::Q8_0, WeightType::Q4_0, WeightType::Q4_K,
                               WeightType::Q5_K, WeightType::Q6_K}) {
      const std::string_view unit = u->name;
      if (unit.ends_with("_emulated") || unit.ends_with("generic") || u->exact()) continue;  // takes minutes
      if (block_format(t) ? !takes(*u, t) : u->arithmetic != Arithmetic::Bf16) continue;
      const Weight w = make_weight(t, kN, kK, random);
      const std::vector<std::byte> packed = pack(t, w.bytes, kN, kK, *one_thread());
      std::vector<float> first;
      for (const int workers : {0, 1, 2, 3}) {  // 0: not packed
        std::vector<float> c(kM * kN, NAN);
        Gemm g{.m = kM, .n = kN, .k = kK, .a = a.data(), .a_m = kK, .a_k = 1, .type = t, .packed = workers > 0};
        g.b = workers > 0 ? packed.data() : w.bytes.data(), g.b_n = w.row, g.b_k = 1;
        g.unit = u, g.zero = int8_format(t).zero;
        g.c = c.data(), g.c_m = kN, g.caches = blocking(workers).caches();
        run(g, {}, *threads(std::max(workers, 1)), detect_isa());
        if (first.empty()) first = c;
        ASSERT_EQ(std::memcmp(first.data(), c.data(), c.size() * 4), 0) << unit << " " << name(t) << " " << workers;
        ++checked;
      }
    }
  EXPECT_TRUE(checked > 0 || detect_isa() == Isa::Generic);
}

// An element of C depends only on its row of A and its column of B: not on the workers, the caches, the strip in which
// its row is packed, or its neighbours. Some rows and columns have numbers that splits cannot represent.
TEST(Gemm, NeighboursDoNotCount) {
  using Size = std::array<std::int64_t, 3>;
  std::mt19937 random(12);
  std::normal_distribution<float> normal;
  std::vector<const Microkernel*> all = microkernels();
  all.push_back(nullptr);
  int checked = 0;
  for (const Microkernel* u : all)
    for (int type = 0; type <= static_cast<int>(WeightType::Q6_K); ++type)
      for (const auto& [m, n, k] : {Size{5000, 17, 32}, Size{161, 33, 640}, Size{33, 17, 4096}, Size{1001, 37, 256}}) {
        const auto t = static_cast<WeightType>(type);
        const QuantInfo* q = block_format(t);
        const Arithmetic way = u ? u->arithmetic : Arithmetic::F32;
        const bool int8 = u && takes(*u, t);
        const bool plain = t == WeightType::F32 && way <= Arithmetic::Split3;
        if ((u && u->exact()) || !(int8 || plain) || (q && k % q->elements)) continue;
        const std::string_view unit = u ? u->name : "f32";
        if (m * n * k > 3 << 20 && (unit.ends_with("_emulated") || unit.ends_with("generic"))) continue;  // too slow
        Weight w = make_weight(t, n, k, random);
        std::vector<float> a(static_cast<std::size_t>(m * k));
        for (std::int64_t i = 0; i < m * k; ++i) {
          const std::int64_t kind = i / k % 97, place = i % k;
          float& x = a[static_cast<std::size_t>(i)] = normal(random);
          if (kind == 5 && place % 7 == 3) x = 1e-31f;
          if (kind == 6) x *= 1e-38f;
          if (kind == 7 && place == k / 2) x = INFINITY;
          if (kind == 8 && place % 5 == 0) x *= 1e30f;
          if (kind == 9) x *= place % 64 < 32 ? 1e-20f : 1e-37f;
        }
        for (std::int64_t j = 0; plain && j < n; ++j)
          for (std::int64_t place = 0; j % 13 < 3 && place < k; place += 9)
            store_f64(w.bytes.data(), DType::F32, static_cast<std::size_t>(j * k + place),
                      j % 13 == 0   ? 1e-25
                      : j % 13 == 1 ? 1e12
                                    : NAN);
        // Multiplies the rows from `row` on and the columns from `column` on, as a product of its own.
        const auto part = [&](std::int64_t row, std::int64_t rows, std::int64_t column, int workers) {
          const std::int64_t columns = n - column;
          std::vector<float> c(static_cast<std::size_t>(rows * columns), NAN);
          Gemm g{.m = rows, .n = columns, .k = k, .a = a.data() + row * k, .a_m = k, .a_k = 1, .type = t};
          g.b = w.bytes.data() + column * w.row * (q ? 1 : 4), g.b_n = w.row, g.b_k = 1;
          g.unit = u, g.zero = int8_format(t).zero, g.c = c.data(), g.c_m = columns,
          g.caches = blocking(workers).caches();
          run(g, {}, *threads(workers), detect_isa());
          return c;
        };
        const std::vector<float> want = part(0, m, 0, 1);
        for (const auto& [row, rows, column, workers] : {std::array<std::int64_t, 4>{0, m, 0, 2},
                                                         {0, m, 0, 3},
                                                         {0, m, 0, 8},
                                                         {m / 3, m / 2, 0, 2},
                                                         {1, 20, 5, 1},
                                                         {7, 5, 1, 1}}) {
          const std::vector<float> c = part(row, rows, column, static_cast<int>(workers));
          for (std::int64_t i = 0; i < rows; ++i)
            ASSERT_EQ(std::memcmp(c.data() + i * (n - column), want.data() + (row + i) * n + column,
                                  static_cast<std::size_t>(n - column) * 4),
                      0)
                << unit << " " << name(t) << " " << m << "x" << n << "x" << k << " row " << row + i << " from " << row
                << ", " << column << " with " << workers;
          ++checked;
        }
      }
  EXPECT_GT(checked, 100);
}

// In int8, up to four rows use Microkernel::gemv, which gives the bits they have among more rows. All buffers are
// guarded.
TEST(Gemm, FewRowsHaveTheBitsOfMany) {
  using test::Against, test::Guarded;
  constexpr std::int64_t kMany = 7;
  std::mt19937 random(6);
  std::normal_distribution<float> normal;
  const auto one = threads(1), two = threads(2);
  int checked = 0, nans = 0;
  for (const Microkernel* u : microkernels())
    for (int type = 0; u->gemv && type <= static_cast<int>(WeightType::Q6_K); ++type)
      for (const auto& shape :
           {std::array{1, 32}, std::array{40, 384}, std::array{250, 416}, std::array{19, 800}, std::array{35, 256},
            std::array{250, 512}, std::array{16, 1024}, std::array{5, 33024}}) {
        const int n = shape[0], k = shape[1];
        const auto t = static_cast<WeightType>(type);
        const QuantInfo* q = block_format(t);
        if (!takes(*u, t) || packed_layout(t).block == 0 || k % q->elements) continue;
        const std::vector<std::byte> b = pack(t, make_weight(t, n, k, random).bytes, n, k, *one);
        Guarded weights(b.size(), Against::Back);
        std::memcpy(weights.data(), b.data(), b.size());
        const auto product = [&](std::int64_t m, const float* a, Parallel& parallel, Against side) {
          Gemm g{.m = m, .n = n, .k = k, .a_m = k, .a_k = 1, .type = t, .packed = true, .b = weights.data(), .b_n = 1};
          g.unit = u, g.zero = int8_format(t).zero, g.caches = blocking(parallel.workers()).caches();
          Guarded rows(static_cast<std::size_t>(m * k) * 4, side), c(static_cast<std::size_t>(m * n) * 4, side),
              scratch(gemm_scratch_bytes(g, parallel.workers()), side);
          std::memcpy(rows.data(), a, static_cast<std::size_t>(m * k) * 4);
          g.a = reinterpret_cast<const float*>(rows.data());
          g.c = reinterpret_cast<float*>(c.data()), g.c_m = n;
          gemm(g, {}, parallel, scratch.data(), detect_isa());
          return std::vector<float>(g.c, g.c + m * n);
        };
        std::vector<float> a(static_cast<std::size_t>(kMany * k));
        for (float& x : a) x = normal(random);
        std::fill_n(a.begin() + k, k, 1.0f);  // every quantized value is 127
        a[static_cast<std::size_t>(2 * k + k / 2)] = NAN;
        std::fill_n(a.begin() + 3 * k, k / 2, -0.0f);
        const std::vector<float> want = product(kMany, a.data(), *one, Against::Back);
        for (int way = 0; way < 4; ++way)
          for (std::int64_t first = 0; first < 4; ++first)
            for (std::int64_t m = 1; m + first <= 4; ++m) {
              const auto got =
                  product(m, a.data() + first * k, way % 2 ? *two : *one, way / 2 ? Against::Back : Against::Front);
              for (std::size_t i = 0; i < got.size(); ++i, ++checked) {
                const float w = want[static_cast<std::size_t>(first * n) + i];
                if (std::isnan(w) && std::isnan(got[i])) ++nans;
                else
                  ASSERT_EQ(std::bit_cast<std::uint32_t>(got[i]), std::bit_cast<std::uint32_t>(w))
                      << u->name << " " << name(t) << " " << m << " from " << first << "x" << n << "x" << k << " at "
                      << i << ": " << got[i] << " for " << w;
              }
            }
      }
  EXPECT_GT(checked, 10000);
  EXPECT_GT(nans, 100);
}

// Weights that are split into bf16 numbers when they are loaded give the bits of weights that each product splits, also
// where a product has few rows, for any threads, caches and order of the weight.
TEST(Gemm, SplitWhenLoaded) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  for (const Microkernel* u : microkernels()) {
    if (u->arithmetic != Arithmetic::Split2 && u->arithmetic != Arithmetic::Split3) continue;
    for (const auto& [m, n, k] : {std::array{40, 17, 64}, std::array{64, 70, 130}, std::array{97, 33, 600},
                                  std::array{70, 1100, 96}, std::array{33, 40, 2100}})
      for (const bool transposed : {false, true}) {
        std::vector<float> a(static_cast<std::size_t>(m * k)), w(static_cast<std::size_t>(n * k));
        for (float& x : a) x = normal(random);
        for (float& x : w) x = normal(random);
        w[5] = INFINITY, w[7] = 1e-40f;
        std::vector<float> first;
        for (const int workers : {1, 3}) {
          const auto pool = threads(workers);
          const std::int64_t group = u->b_bytes(k);
          test::Guarded packed(static_cast<std::size_t>((n + 15) / 16 * group), test::Against::Back);
          const void* in[] = {w.data()};
          pack_for_unit_kernel(*u, WeightType::F32, n, k, transposed)->run({in, packed.data(), {}, nullptr, *pool});
          for (const bool loaded : {false, true})
            for (const int rows : {m, 3}) {
              if (rows < m && !loaded) continue;  // few rows are multiplied in f32
              std::vector<float> c(static_cast<std::size_t>(rows * n), NAN);
              Gemm g{.m = rows, .n = n, .k = k, .a = a.data(), .a_m = k, .a_k = 1, .unit = u, .c = c.data(), .c_m = n};
              g.packed = g.for_unit = loaded;
              g.b = loaded ? static_cast<const void*>(packed.data()) : w.data();
              g.b_n = transposed ? 1 : k, g.b_k = transposed ? n : 1;
              g.caches = blocking(workers).caches();
              run(g, {}, *pool, detect_isa());
              if (first.empty()) first = c;
              ASSERT_EQ(std::memcmp(first.data(), c.data(), c.size() * 4), 0)
                  << u->name << " " << rows << "x" << n << "x" << k << (loaded ? " loaded " : " ") << workers;
            }
        }
      }
  }
}

// The same for bytes, whose products are exact: with weights packed when they are loaded, of either order.
TEST(Gemm, BytesPackedWhenLoaded) {
  std::mt19937 random(4);
  int checked = 0;
  for (const Microkernel* u : microkernels()) {
    if (!u->exact()) continue;
    for (const auto& [m, n, k] : {std::array{1, 17, 64}, std::array{40, 70, 130}, std::array{7, 33, 1100}})
      for (const bool transposed : {false, true}) {
        std::vector<std::int8_t> a(static_cast<std::size_t>(m * k)), w(static_cast<std::size_t>(n * k));
        for (std::int8_t& x : a) x = static_cast<std::int8_t>(random());
        for (std::int8_t& x : w) x = static_cast<std::int8_t>(random());
        const auto pool = threads(2);
        test::Guarded packed(static_cast<std::size_t>((n + 15) / 16 * u->b_bytes(k)), test::Against::Back);
        const void* in[] = {w.data()};
        pack_for_unit_kernel(*u, WeightType::I8, n, k, transposed)->run({in, packed.data(), {}, nullptr, *pool});
        std::vector<std::int32_t> c(static_cast<std::size_t>(m * n), -1);
        Gemm g{.m = m, .n = n, .k = k, .a = reinterpret_cast<const float*>(a.data()), .a_m = k, .a_k = 1};
        g.type = WeightType::I8, g.packed = g.for_unit = true, g.unit = u, g.b = packed.data();
        g.b_n = transposed ? 1 : k, g.b_k = transposed ? n : 1;
        g.c = reinterpret_cast<float*>(c.data()), g.c_m = n, g.caches = blocking(2).caches();
        run(g, {}, *pool, detect_isa());
        for (std::int64_t i = 0; i < m; ++i)
          for (std::int64_t j = 0; j < n; ++j, ++checked) {
            std::int32_t want = 0;
            for (std::int64_t e = 0; e < k; ++e)
              want += a[static_cast<std::size_t>(i * k + e)] *
                      w[static_cast<std::size_t>(transposed ? e * n + j : j * k + e)];
            ASSERT_EQ(c[static_cast<std::size_t>(i * n + j)], want) << u->name << " " << m << "x" << n << "x" << k;
          }
      }
  }
  EXPECT_GT(checked, 1000);
}

// Products of one group have the bits of products alone, however often threads meet in the scratch that was divided for
// the first of them.
TEST(Gemm, GroupsShareTheirScratch) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  const std::int64_t m = 40, k = 64, widths[] = {80, 16, 32};
  std::vector<float> a(static_cast<std::size_t>(m * k));
  for (float& x : a) x = normal(random);
  const auto one = threads(1);
  for (const Microkernel* u : microkernels()) {
    if (u->arithmetic != Arithmetic::Bf16) continue;
    std::vector<std::byte> w[3];
    std::vector<float> alone[3], c[3];
    Gemm g[3];
    for (int p = 0; p < 3; ++p) {
      w[p] = pack(WeightType::BF16, make_weight(WeightType::BF16, widths[p], k, random).bytes, widths[p], k, *one);
      c[p].resize(static_cast<std::size_t>(m * widths[p]));
      g[p] = {.m = m,
              .n = widths[p],
              .k = k,
              .a = a.data(),
              .a_m = k,
              .a_k = 1,
              .type = WeightType::BF16,
              .packed = true,
              .b = w[p].data(),
              .unit = u,
              .c = c[p].data(),
              .c_m = widths[p]};
      run(g[p], {}, *one, detect_isa());
      alone[p] = c[p];
    }
    g[0].next_in_group = &g[1], g[1].next_in_group = &g[2];
    for (const int workers : {2, 3}) {
      const auto pool = threads(workers);
      for (int times = 0; times < 800; ++times) {
        for (auto& part : c) std::fill(part.begin(), part.end(), NAN);
        run(g[0], {}, *pool, detect_isa());
        for (int p = 0; p < 3; ++p)
          ASSERT_EQ(std::memcmp(alone[p].data(), c[p].data(), c[p].size() * 4), 0) << u->name << workers << p;
      }
    }
  }
}

// A is stored transposed and packed strip by strip. The result has the bits of a row-major A, also if sixteen workers
// with small caches pack their own rows.
TEST(Gemm, TransposedHasTheBitsOfPlain) {
  using test::Against, test::Guarded;
  std::mt19937 random(4);
  std::normal_distribution<float> normal;
  for (const Microkernel* u : microkernels())
    for (const auto& [m, n, k] : {std::array{1, 20, 70}, std::array{5, 33, 1}, std::array{333, 40, 1103},
                                  std::array{1000, 17, 45}, std::array{500, 17, 1045}}) {
      if (m * n * k > 1 << 20 && std::string_view(u->name).ends_with("_emulated")) continue;
      if (u->arithmetic != Arithmetic::F32 && u->arithmetic != Arithmetic::Bf16) continue;
      const auto bytes = [](std::int64_t count) { return static_cast<std::size_t>(count) * 4; };
      Guarded plain(bytes(m * k), Against::Back), turned(bytes(m * k), Against::Back), b(bytes(n * k), Against::Back);
      const auto numbers = [](Guarded& v) { return reinterpret_cast<float*>(v.data()); };
      for (std::int64_t i = 0; i < m * k; ++i) numbers(plain)[i] = numbers(turned)[i % k * m + i / k] = normal(random);
      for (std::int64_t i = 0; i < n * k; ++i) numbers(b)[i] = normal(random);
      std::vector<float> c[2];
      for (const bool t : {false, true}) {
        c[t].assign(static_cast<std::size_t>(m * n), NAN);
        Gemm g{.m = m,
               .n = n,
               .k = k,
               .a = numbers(t ? turned : plain),
               .a_m = t ? 1 : k,
               .a_k = t ? m : 1,
               .type = WeightType::F32};
        g.b = b.data(), g.b_n = 1, g.b_k = n, g.c = c[t].data(), g.c_m = n, g.unit = u,
        g.caches = blocking(t ? 2 : 1).caches();
        run(g, {}, *threads(t ? 16 : 1), detect_isa());
      }
      EXPECT_EQ(0, std::memcmp(c[0].data(), c[1].data(), bytes(m * n))) << u->name << " " << m << "x" << n << "x" << k;
    }
}

// B is packed to the same bytes however it lies in memory, and however many of its columns are packed at a time.
TEST(Gemm, PackedByRowsAndByColumns) {
  std::mt19937 random(6);
  std::normal_distribution<float> normal;
  for (const Microkernel* u : microkernels()) {
    if (u->arithmetic != Arithmetic::F32 && u->arithmetic != Arithmetic::Bf16) continue;
    for (const auto& [n, k] : {std::array{48, 64}, std::array{16, 32}, std::array{50, 64}, std::array{128, 96},
                               std::array{33, 31}, std::array{80, 200}}) {
      std::vector<float> rows(static_cast<std::size_t>(n * k)), columns(rows.size());
      for (int i = 0; i < n * k; ++i) {
        const auto turned = static_cast<std::size_t>(i % n * k + i / n);
        rows[static_cast<std::size_t>(i)] = columns[turned] = normal(random);
      }
      const std::int64_t group = u->b_bytes(k);
      const auto packed = [&](const std::vector<float>& b, bool by_rows, int at_once) {
        const Gemm g{.n = n, .k = k, .b = b.data(), .b_n = by_rows ? 1 : k, .b_k = by_rows ? n : 1};
        std::vector<std::byte> to(static_cast<std::size_t>((n + 15) / 16 * group));
        for (int j = 0; j < n; j += at_once)
          u->pack_b(&g, j, std::min(at_once, n - j), 0, k, to.data() + j / 16 * group, group);
        return to;
      };
      const std::vector<std::byte> want = packed(rows, true, 16);
      EXPECT_EQ(want, packed(rows, true, 128)) << u->name << " " << n << "x" << k;
      EXPECT_EQ(want, packed(columns, false, 16)) << u->name << " " << n << "x" << k;
      EXPECT_EQ(want, packed(columns, false, 64)) << u->name << " " << n << "x" << k;
    }
  }
}
