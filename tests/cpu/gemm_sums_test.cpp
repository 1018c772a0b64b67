// Sums that wait in scratch and not in the result have the right numbers and the same bits for any threads and caches,
// and the scratch is large enough and no larger than it needs to be.
#include "lightcone/backends/cpu/products/gemm.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "guarded.h"
#include "lightcone/backends/cpu/products/microkernel.h"
#include "lightcone/backends/cpu/threads/thread_pool.h"
#include "lightcone/core/dtype.h"
#include "products.h"

using namespace lc;
using namespace lc::backends::cpu;
using namespace lc::backends::cpu::products_test;

// A sum over a long k is a sum of partial sums, which are stored in scratch: buffers are guarded, threads do not change
// bits, and the error is that of one tile's sum.
TEST(Gemm, LongSums) {
  using test::Against, test::Guarded;
  constexpr std::int64_t k = 40'000;
  const std::vector<float> a(100 * k, 0.1f), b(70 * k, 0.7f);
  const double want = k * static_cast<double>(0.1f) * static_cast<double>(0.7f);
  for (const Isa isa : isas())
    for (const auto& [m, n] : {std::array{1, 70}, std::array{3, 33}, std::array{30, 40}}) {
      std::vector<float> first;
      for (const int workers : {1, 2, 3})
        for (const bool columns : {false, true}) {
          const auto pool = threads(workers);
          Gemm g{.m = m, .n = n, .k = k, .a = a.data(), .a_m = k, .a_k = 1, .type = WeightType::F32, .b = b.data()};
          g.b_n = columns ? 1 : k, g.b_k = columns ? n : 1, g.caches = blocking(workers).caches();
          Guarded scratch(gemm_scratch_bytes(g, workers), Against::Back);
          std::vector<float> c(static_cast<std::size_t>(m * n));
          g.c = c.data(), g.c_m = n;
          gemm(g, {}, *pool, scratch.data(), isa);
          for (const float x : c) ASSERT_NEAR(x, want, want * 0x1p-16) << m << "x" << n << ", " << workers;
          if (m <= kFewRows && columns) continue;
          if (first.empty()) first = c;
          ASSERT_EQ(std::memcmp(c.data(), first.data(), c.size() * 4), 0) << m << "x" << n << ", " << workers;
        }
    }
}

// Tiles whose sums wait beside C have the same bits whatever the sizes of the caches: one block of k or several, strips
// packed by one worker or shared, weights that are there or repacked, a C that is written past the caches or not, whole
// rows of it at a time or a tile's.
TEST(Gemm, SumsApartFromC) {
  std::mt19937 random(12);
  std::normal_distribution<float> normal;
  int units = 0;
  for (const Microkernel* u : microkernels()) {
    if (u->together == 0 || (u->arithmetic != Arithmetic::Bf16 && u->arithmetic != Arithmetic::Int8Exact)) continue;
    ++units;
    const bool exact = u->exact();
    for (const auto& [m, n, k] :
         {std::array{300, 560, 1100}, std::array{9, 70, 2100}, std::array{40, 47, 17'000}, std::array{300, 560, 200}}) {
      const auto mk = static_cast<std::size_t>(m * k), nk = static_cast<std::size_t>(n * k);
      std::vector<float> a(mk), b(nk);
      std::vector<std::int8_t> a8(mk), b8(nk);
      for (std::vector<float>* v : {&a, &b})
        for (float& x : *v) x = bf16_to_f32(f32_to_bf16(normal(random)));
      for (std::vector<std::int8_t>* v : {&a8, &b8})
        for (std::int8_t& x : *v) x = static_cast<std::int8_t>(random());
      std::vector<std::byte> bytes(exact ? nk : 2 * nk);
      for (std::size_t i = 0; i < nk; ++i) {
        const std::uint16_t half = f32_to_bf16(b[i]);
        if (exact) bytes[i] = static_cast<std::byte>(b8[i]);
        else std::memcpy(&bytes[2 * i], &half, 2);
      }
      const WeightType type = exact ? WeightType::I8 : WeightType::BF16;
      const std::vector<std::byte> packed = pack(type, bytes, n, k, *one_thread());
      std::vector<float> first;
      for (const int workers : {1, 2, 3})
        for (const bool whole : {false, true}) {
          std::vector<float> c(static_cast<std::size_t>(m * n), NAN);
          Gemm g{.m = m,
                 .n = n,
                 .k = k,
                 .a = exact ? reinterpret_cast<const float*>(a8.data()) : a.data(),
                 .a_m = k,
                 .a_k = 1,
                 .type = type,
                 .packed = whole,
                 .b = whole ? packed.data() : bytes.data(),
                 .b_n = k,
                 .b_k = 1,
                 .unit = u,
                 .c = c.data(),
                 .c_m = n,
                 .caches = blocking(workers).caches()};
          if (workers == 2) g.caches.l2 = 256 << 10;  // some columns of B, and not the result
          run(g, {}, *threads(workers), detect_isa());
          if (first.empty()) first = c;
          ASSERT_EQ(std::memcmp(first.data(), c.data(), c.size() * 4), 0)
              << u->name << " " << m << "x" << n << "x" << k << ", " << workers << " " << whole;
        }
      for (std::size_t at = 0; at < first.size(); at += 37) {
        const std::size_t i = at / static_cast<std::size_t>(n), j = at % static_cast<std::size_t>(n);
        double want = 0, size = 0;
        for (std::size_t e = 0; e < static_cast<std::size_t>(k); ++e) {
          const std::size_t x = i * static_cast<std::size_t>(k) + e, y = j * static_cast<std::size_t>(k) + e;
          const double term = exact ? a8[x] * b8[y] : static_cast<double>(a[x]) * static_cast<double>(b[y]);
          want += term, size += std::abs(term);
        }
        if (exact) ASSERT_EQ(std::bit_cast<std::int32_t>(first[at]), static_cast<std::int32_t>(want)) << u->name;
        else ASSERT_NEAR(first[at], want, 4e-7 * size) << u->name << " " << m << "x" << n << "x" << k;
      }
    }
  }
  EXPECT_EQ(units % 2, 0);
#if defined(__x86_64__)
  EXPECT_GE(units, 2);  // emulated ones, at least
#endif
}

// If rows of the result are far apart, sums of f32 wait beside it for the next k. They have the bits of the same
// columns in a narrower product, whose sums wait in place. Each number is finished once, when it is whole, and nothing
// between rows is written.
TEST(Gemm, RowsFarApart) {
  constexpr std::int64_t kM = 43, kN = 1100, kK = 1300, kFew = 90, kRow = kN + 5;
  std::mt19937 random(8);
  std::normal_distribution<float> normal;
  std::vector<float> a(kM * kK), b(kN * kK);
  for (auto* v : {&a, &b})
    for (float& x : *v) x = normal(random);
  const auto times_ten = [](const void*, float* row, std::int64_t rows, std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = begin; j < end; ++j) row[i * kRow + j] *= 10;
  };
  for (const Isa isa : isas())
    for (const int workers : {1, 2, 3}) {
      const auto pool = threads(workers);
      std::vector<float> wide(kM * kRow, -1), narrow(kM * kRow, -1);
      Gemm g{.m = kM, .n = kN, .k = kK, .a = a.data(), .a_m = kK, .a_k = 1, .b = b.data(), .b_n = kK, .b_k = 1};
      g.caches = blocking(workers).caches();
      g.c = wide.data(), g.c_m = kRow, g.finish = times_ten;
      run(g, {}, *pool, isa);
      for (std::int64_t j = 0; j < kN; j += kFew) {
        g.n = std::min(kFew, kN - j), g.b = b.data() + j * kK, g.c = narrow.data() + j;
        run(g, {}, *pool, isa);
      }
      double want = 0;
      for (std::int64_t l = 0; l < kK; ++l) want += static_cast<double>(a[(kM - 1) * kK + l]) * b[(kN - 1) * kK + l];
      ASSERT_NEAR(wide[(kM - 1) * kRow + kN - 1], 10 * want, 1e-3);
      ASSERT_EQ(std::memcmp(wide.data(), narrow.data(), wide.size() * 4), 0) << name(isa) << " " << workers;
      for (std::int64_t i = 0; i < kM; ++i) ASSERT_EQ(wide[static_cast<std::size_t>(i * kRow + kN)], -1);
    }
}

// Rows of bf16 are multiplied as f32 rows of the same numbers are, and sums that are kept apart are those of C: each
// once.
TEST(Gemm, RowsOfBf16AndSumsApart) {
  struct Apart {
    const float* c;
    float* to;
    std::int64_t n;
    static void take(const void* self, const float* row, std::int64_t rows, std::int64_t begin, std::int64_t end,
                     const float* sums, std::int64_t distance) {
      const Apart& a = *static_cast<const Apart*>(self);
      for (std::int64_t i = 0; i < rows; ++i, sums += distance)
        for (std::int64_t j = begin; j < end; ++j) {
          float& to = a.to[(row - a.c) + i * a.n + j];
          to = std::isnan(to) ? sums[j - begin] : INFINITY;
        }
    }
  };
  std::mt19937 random(8);
  std::normal_distribution<float> normal;
  int units = 0;
  for (const Microkernel* u : microkernels()) {
    if (!u->pack_bf16) continue;
    ++units;
    for (const auto& [m, n, k] :
         {std::array{5, 17, 64}, std::array{64, 70, 131}, std::array{97, 33, 600}, std::array{70, 1100, 95},
          std::array{33, 40, 2100}, std::array{2100, 140, 33}, std::array{17, 16, static_cast<int>(kLongSum) + 700}}) {
      std::vector<float> a(static_cast<std::size_t>(m * k));
      std::vector<std::uint16_t> halves;
      for (float& x : a) halves.push_back(f32_to_bf16(normal(random))), x = bf16_to_f32(halves.back());
      test::Guarded narrow(halves.size() * 2, test::Against::Back);
      std::memcpy(narrow.data(), halves.data(), halves.size() * 2);
      const auto one = threads(1);
      const auto w = pack(WeightType::BF16, make_weight(WeightType::BF16, n, k, random).bytes, n, k, *one);
      Gemm g{.m = m, .n = n, .k = k, .a = a.data(), .a_m = k, .a_k = 1};
      std::vector<float> want(static_cast<std::size_t>(m * n), NAN);
      g.type = WeightType::BF16, g.packed = true, g.b = w.data(), g.unit = u, g.c = want.data(), g.c_m = n;
      run(g, {}, *one, detect_isa());
      for (const int workers : {1, 3})
        for (const bool apart : {false, true}) {
          const auto pool = threads(workers);
          std::vector<float> got(want.size(), NAN);
          const Apart to{want.data(), got.data(), n};
          Gemm h = g;
          h.a = reinterpret_cast<const float*>(narrow.data()), h.a_bf16 = true, h.caches = blocking(workers).caches();
          if (workers == 1) h.caches.l2 = 256 << 10;  // whole rows of a result that is larger
          if (apart) h.finish_apart = Apart::take, h.finish_self = &to;
          else h.c = got.data();
          run(h, {}, *pool, detect_isa());
          ASSERT_EQ(std::memcmp(got.data(), want.data(), got.size() * 4), 0)
              << u->name << " " << m << "x" << n << "x" << k << " apart " << apart << " workers " << workers;
        }
    }
  }
  EXPECT_GE(units, 1);  // emulated ones, at least
}

// The scratch of a large product is one panel and one block of rows, however many workers share them. If rows of the
// result are far apart, each worker has the sums of a task, which take about a third of L2. With many rows and few
// columns, each worker has a block of rows.
TEST(Gemm, ScratchDoesNotGrowWithWorkers) {
  const Gemm large{.m = 512, .n = 4096, .k = 4096}, small{.m = 64, .n = 64, .k = 64};
  const auto sums = static_cast<std::size_t>(Blocking().l2() * 2 / 5);
  EXPECT_LE(gemm_scratch_bytes(large, 16), gemm_scratch_bytes(large, 1) + 15 * sums);
  EXPECT_LE(gemm_scratch_bytes(large, 1), (1024u * 4096 * 4) + (5u << 20) + sums);
  const Gemm narrow{.m = 512, .n = 1000, .k = 4096};
  EXPECT_EQ(gemm_scratch_bytes(narrow, 16), gemm_scratch_bytes(narrow, 1));
  // a batch of small products: one panel per worker
  EXPECT_EQ(gemm_scratch_bytes(small, 16), 16 * gemm_scratch_bytes(small, 1));
  const Gemm tall{.m = 100'000, .n = 512, .k = 40'000};
  const auto rows = static_cast<std::size_t>(Blocking().rows(512) / 16 * 16);
  EXPECT_GE(gemm_scratch_bytes(tall, 100), (512u * 40'000 + 100 * rows * 512) * 4);
}

// The depth is symbolic, so the scratch of the largest depth must suffice for each smaller one: 13 strips of 5761 need
// more than 12 of 5770.
TEST(Gemm, ScratchIsEnoughForEverySmallerDepth) {
  for (const std::int64_t n : {1, 1024}) {
    std::size_t before = 0;
    for (std::int64_t k = 5000; k < 6500; ++k) {
      const std::size_t bytes = gemm_scratch_bytes({.m = 1000, .n = n, .k = k}, 1);
      ASSERT_GE(bytes, before) << "k " << k << ", n " << n;
      before = bytes;
    }
  }
}
