// Matrix products agree with f64 on every instruction set that this machine has: every storage type, size, stride and
// batch. Products of bytes are exact.
#include "lightcone/backends/cpu/products/gemm.h"

#include <array>
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
#include "lightcone/formats/block_formats.h"
#include "products.h"

using namespace lc;
using namespace lc::backends::cpu;
using namespace lc::backends::cpu::products_test;

TEST(Gemm, EveryIsaEveryTypeEverySize) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  const auto one = threads(1), two = threads(2);
  int checked = 0;
  for (int kind = 0; kind < 2 * kBehindBlocks; ++kind)
    for (const auto& [m, n, k] :
         {std::array{1, 1, 32}, std::array{1, 70, 64}, std::array{2, 33, 96}, std::array{3, 5, 320},
          std::array{4, 129, 32}, std::array{5, 31, 64}, std::array{13, 17, 288}, std::array{29, 64, 576},
          std::array{169, 130, 64}, std::array{340, 1100, 32}, std::array{1, 40, 37}, std::array{3, 40, 37},
          std::array{6, 40, 37}, std::array{2, 300, 1}, std::array{1, 2051, 32}, std::array{1, 9, 256},
          std::array{2, 70, 768}, std::array{5, 31, 512}, std::array{169, 50, 256}}) {
      const auto t = static_cast<WeightType>(kind / 2);
      const bool packed = kind % 2;
      if (packed && packed_layout(t).block == 0) continue;
      if (const QuantInfo* q = block_format(t); q && k % q->elements) continue;
      Weight w = make_weight(t, n, k, random);
      if (packed) w.bytes = pack(t, w.bytes, n, k, *two);
      std::vector<float> a(static_cast<std::size_t>(m * k));
      for (float& x : a) x = normal(random);
      for (const Isa isa : isas()) {
        std::vector<float> c[2];
        for (int p = 0; p < 2; ++p) {
          Parallel& parallel = p ? *two : *one;
          c[p].assign(static_cast<std::size_t>(m * n), NAN);
          Gemm g{.m = m,
                 .n = n,
                 .k = k,
                 .a = a.data(),
                 .a_m = k,
                 .a_k = 1,
                 .type = t,
                 .packed = packed,
                 .b = w.bytes.data(),
                 .b_n = w.row,
                 .b_k = 1,
                 .c = c[p].data(),
                 .c_m = n};
          run(g, {}, parallel, isa);
        }
        ASSERT_EQ(std::memcmp(c[0].data(), c[1].data(), c[0].size() * 4), 0)
            << "threads change bits: " << name(isa) << " type " << kind << " " << m << "x" << n << "x" << k;
        for (int i = 0; i < m; ++i)
          for (int j = 0; j < n; ++j) {
            double want = 0, size = 0;
            for (int l = 0; l < k; ++l) {
              const double term = static_cast<double>(a[static_cast<std::size_t>(i * k + l)]) *
                                  w.values[static_cast<std::size_t>(j * k + l)];
              want += term, size += std::abs(term);
            }
            ASSERT_NEAR(c[0][static_cast<std::size_t>(i * n + j)], want, 4e-7 * size + 1e-30)
                << name(isa) << " type " << static_cast<int>(t) << (packed ? " packed " : " ") << m << "x" << n << "x"
                << k << " at " << i << "," << j;
            ++checked;
          }
      }
    }
  EXPECT_GT(checked, 1000);
}

// Every arithmetic in the blocked loop: packed or not, any number of threads gives the same bits, and the error is
// within the rounding of the operands. (microkernel_test checks what each microkernel computes exactly.) With two
// workers the caches are so small that each worker packs the rows of its own tasks.
TEST(Gemm, EveryUnitEveryTypeItTakes) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  const auto one = threads(1), two = threads(2);
  int checked = 0;
  for (const Microkernel* u : microkernels())
    for (int type = 0; type <= static_cast<int>(WeightType::Q6_K); ++type)
      for (const auto& [m, n, k] :
           {std::array{5, 31, 512}, std::array{13, 17, 256}, std::array{200, 50, 512}, std::array{33, 1100, 256},
            std::array{7, 40, 37}, std::array{70, 17, 576}, std::array{100, 40, 1280}, std::array{5, 1030, 1280}}) {
        const auto t = static_cast<WeightType>(type);
        const QuantInfo* q = block_format(t);
        if (u->exact()) continue;
        const bool int8 = u->arithmetic >= Arithmetic::Int8Step32 && u->arithmetic <= Arithmetic::Int8Step16Min;
        if (int8 ? !takes(*u, t) : q && u->arithmetic == Arithmetic::Bf16) continue;
        if (q && k % q->elements) continue;
        if (m * n * k > 1 << 20 && std::string_view(u->name).ends_with("_emulated")) continue;  // takes minutes
        const Weight w = make_weight(t, n, k, random);
        std::vector<float> a(static_cast<std::size_t>(m * k)), c[4];
        for (float& x : a) x = normal(random);
        for (int way = 0; way < 4; ++way) {
          const bool packed = way / 2;
          if (packed && packed_layout(t).block == 0) continue;
          Parallel& parallel = way % 2 ? *two : *one;
          const std::vector<std::byte> b = packed ? pack(t, w.bytes, n, k, *one) : w.bytes;
          c[way].assign(static_cast<std::size_t>(m * n), NAN);
          const Gemm g{.m = m,
                       .n = n,
                       .k = k,
                       .a = a.data(),
                       .a_m = k,
                       .a_k = 1,
                       .type = t,
                       .packed = packed,
                       .b = b.data(),
                       .b_n = w.row,
                       .b_k = 1,
                       .unit = u,
                       .zero = int8_format(t).zero,
                       .c = c[way].data(),
                       .c_m = n,
                       .caches = blocking(parallel.workers()).caches()};
          run(g, {}, parallel, detect_isa());
          ASSERT_EQ(std::memcmp(c[0].data(), c[way].data(), c[0].size() * 4), 0)
              << u->name << " " << name(t) << " way " << way << " " << m << "x" << n << "x" << k;
        }
        const double rounding = int8                                  ? 1.0 / 127
                                : u->arithmetic == Arithmetic::Bf16   ? 0x1p-8
                                : u->arithmetic == Arithmetic::Split2 ? 0x1p-15
                                                                      : 0;
        for (int i = 0; i < m; ++i)
          for (int j = i % 7; j < n; j += 7) {
            double want = 0, size = 0;
            for (int l = 0; l < k; ++l) {
              const double x = static_cast<double>(a[static_cast<std::size_t>(i * k + l)]);
              const double y = w.values[static_cast<std::size_t>(j * k + l)];
              // the error of half an int8 step is relative to the largest value of its block; no value exceeds 4
              want += x * y, size += (int8 ? 4 : std::abs(x)) * std::abs(y);
            }
            ASSERT_NEAR(c[0][static_cast<std::size_t>(i * n + j)], want, (4e-7 + rounding) * size + 1e-30)
                << u->name << " " << name(t) << " " << m << "x" << n << "x" << k;
            ++checked;
          }
      }
  EXPECT_GT(checked, 10000);
}

// There are several blocks of A, several panels of B, and the depth takes several calls of `tile`.
TEST(Gemm, LargerThanEveryBlock) {
  constexpr std::int64_t kM = 2050, kN = 1090, kK = 1100;
  std::mt19937 random(8);
  std::normal_distribution<float> normal;
  std::vector<float> a(kM * kK), b(kN * kK);
  for (std::vector<float>* v : {&a, &b})
    for (float& x : *v) x = normal(random);
  std::vector<std::byte> blocks(b.size() * 4);
  std::memcpy(blocks.data(), b.data(), blocks.size());
  const std::vector<std::byte> packed = pack(WeightType::F32, blocks, kN, kK, *one_thread());
  for (const Isa isa : isas()) {
    if (isa == Isa::Generic && detect_isa() != Isa::Generic) continue;  // the loop around the tiles is the same
    std::vector<float> first;
    for (const int workers : {1, 2, 3})
      for (const bool ready : {false, true}) {
        std::vector<float> c(kM * kN, NAN);
        const Gemm g{.m = kM,
                     .n = kN,
                     .k = kK,
                     .a = a.data(),
                     .a_m = kK,
                     .a_k = 1,
                     .packed = ready,
                     .b = ready ? packed.data() : blocks.data(),
                     .b_n = kK,
                     .b_k = 1,
                     .c = c.data(),
                     .c_m = kN,
                     .caches = blocking(workers).caches()};
        run(g, {}, *threads(workers), isa);
        if (first.empty()) first = c;
        ASSERT_EQ(std::memcmp(first.data(), c.data(), c.size() * 4), 0) << name(isa) << workers << ready;
      }
    for (std::int64_t i = 0; i < kM; i += 3)
      for (std::int64_t j = i % 61; j < kN; j += 61) {
        double want = 0, size = 0;
        for (std::int64_t k = 0; k < kK; ++k) {
          const double term = static_cast<double>(a[static_cast<std::size_t>(i * kK + k)]) *
                              static_cast<double>(b[static_cast<std::size_t>(j * kK + k)]);
          want += term, size += std::abs(term);
        }
        ASSERT_NEAR(first[static_cast<std::size_t>(i * kN + j)], want, 4e-7 * size) << name(isa) << i << "," << j;
      }
  }
}

// Products of bytes are integers: every microkernel, layout of B and number of workers gives the same, and optionally
// converts them to f32.
TEST(Gemm, BytesAreExact) {
  using test::Against, test::Guarded;
  std::mt19937 random(9);
  int checked = 0;
  for (const Microkernel* u : microkernels())
    for (const auto& [m, n, k] :
         {std::array{1, 1, 1}, std::array{3, 40, 37}, std::array{15, 33, 64}, std::array{33, 70, 129},
          std::array{14, 31, 4100}, std::array{200, 1100, 65}, std::array{11, 1100, 2100}, std::array{5, 16, 0},
          std::array{32, 32, 1000}, std::array{40, 64, 2100}}) {
      if (!u->exact() || (m * n * k > 1 << 20 && std::string_view(u->name).ends_with("_emulated"))) continue;
      const auto size = [](std::int64_t count) { return static_cast<std::size_t>(count); };
      Guarded a(size(m * k), Against::Back), b(size(n * k), Against::Back);
      for (Guarded* v : {&a, &b})
        for (std::size_t i = 0; i < (v == &a ? size(m * k) : size(n * k)); ++i)
          v->data()[i] = static_cast<std::byte>(i < 40 ? 0x80 : random());  // many elements are -128
      const auto at = [](const std::byte* p, std::int64_t i) {
        return static_cast<int>(static_cast<std::int8_t>(p[i]));
      };
      const std::vector<std::byte> packed =
          pack(WeightType::I8, std::vector<std::byte>(b.data(), b.data() + n * k), n, k, *one_thread());
      for (int way = 0; way < 8; ++way) {  // bits: packed, f32 result, transposed
        const bool ready = way & 1, turned = way & 4;
        if (ready && turned) continue;
        Guarded c(size(m * n) * 4, Against::Back);
        Gemm g{.m = m, .n = n, .k = k, .a_m = turned ? 1 : k, .a_k = turned ? m : 1, .type = WeightType::I8};
        g.packed = ready, g.b = ready ? packed.data() : b.data();
        g.b_n = turned ? 1 : k, g.b_k = turned ? n : 1;
        g.unit = u, g.to_f32 = way & 2;
        g.a = reinterpret_cast<const float*>(a.data());
        g.c = reinterpret_cast<float*>(c.data()), g.c_m = n;
        run(g, {}, *threads(way % 3 + 1), detect_isa());
        for (int i = 0; i < m; ++i)
          for (int j = i % 3; j < n; j += 3) {
            int want = 0, got = 0;
            for (int l = 0; l < k; ++l)
              want += at(a.data(), turned ? l * m + i : i * k + l) * at(b.data(), turned ? l * n + j : j * k + l);
            std::memcpy(&got, g.c + i * n + j, 4);
            if (g.to_f32) got = static_cast<int>(g.c[i * n + j]), want = static_cast<int>(static_cast<float>(want));
            ASSERT_EQ(got, want) << u->name << " way " << way << " " << m << "x" << n << "x" << k << " at " << i << ","
                                 << j;
            ++checked;
          }
      }
    }
  EXPECT_GT(checked, 10000);
}

// B with contiguous columns (a plain product), a transposed A, and batches.
TEST(Gemm, StridesAndBatches) {
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  const auto pool = threads(2);
  for (const auto& [m, n, k, count] :
       {std::array{1, 300, 20, 3}, std::array{3, 300, 20, 2}, std::array{7, 40, 33, 5}, std::array{30, 65, 70, 2},
        std::array{4, 8, 0, 2}, std::array{400, 64, 16, 8},  // one worker packs its own rows of each product
        std::array{130, 130, 256, 2}}) {  // the last is divided within each product, the others product by product
    std::vector<float> a(static_cast<std::size_t>(count * m * k) + 1), b(static_cast<std::size_t>(count * n * k) + 1),
        c(static_cast<std::size_t>(count * m * n));
    for (float& x : a) x = normal(random);
    for (float& x : b) x = normal(random);
    for (const Isa isa : isas())
      for (const bool transposed : {false, true}) {
        std::fill(c.begin(), c.end(), NAN);
        const Gemm g{.m = m,
                     .n = n,
                     .k = k,
                     .a = a.data(),
                     .a_m = transposed ? 1 : k,
                     .a_k = transposed ? m : 1,
                     .type = WeightType::F32,
                     .b = b.data(),
                     .b_n = 1,
                     .b_k = n,
                     .c = c.data(),
                     .c_m = n};
        run(g, {count, m * k, n * k, m * n}, *pool, isa);
        for (int q = 0; q < count; ++q)
          for (int i = 0; i < m; ++i)
            for (int j = 0; j < n; ++j) {
              double want = 0;
              for (int l = 0; l < k; ++l)
                want +=
                    static_cast<double>(a[static_cast<std::size_t>(q * m * k + (transposed ? l * m + i : i * k + l))]) *
                    static_cast<double>(b[static_cast<std::size_t>(q * n * k + l * n + j)]);
              ASSERT_NEAR(c[static_cast<std::size_t>(q * m * n + i * n + j)], want, 1e-4)
                  << name(isa) << (transposed ? " transposed " : " ") << q << " " << i << " " << j;
            }
      }
  }
}

// Rows of B overlap, as windows of a signal do: adjacent rows are one element apart, in every type.
TEST(Gemm, RowsOfBThatOverlap) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  const auto pool = threads(2);
  for (const WeightType t : {WeightType::F32, WeightType::F16, WeightType::BF16})
    for (const auto& [m, n, k] :
         {std::array{1, 7, 2}, std::array{3, 150, 33}, std::array{4, 40, 1}, std::array{9, 33, 70}}) {
      const Weight w = make_weight(t, 1, n + k, random);
      for (const int a_k : {1, 3}) {
        std::vector<float> a(static_cast<std::size_t>(m * k * a_k)), c(static_cast<std::size_t>(m * n));
        for (float& x : a) x = normal(random);
        for (const Isa isa : isas()) {
          std::fill(c.begin(), c.end(), NAN);
          const Gemm g{.m = m,
                       .n = n,
                       .k = k,
                       .a = a.data(),
                       .a_m = k * a_k,
                       .a_k = a_k,
                       .type = t,
                       .b = w.bytes.data(),
                       .b_n = 1,
                       .b_k = 1,
                       .c = c.data(),
                       .c_m = n};
          run(g, {}, *pool, isa);
          for (int i = 0; i < m; ++i)
            for (int j = 0; j < n; ++j) {
              double want = 0;
              for (int l = 0; l < k; ++l)
                want += static_cast<double>(a[static_cast<std::size_t>((i * k + l) * a_k)]) *
                        w.values[static_cast<std::size_t>(j + l)];
              ASSERT_NEAR(c[static_cast<std::size_t>(i * n + j)], want, 1e-4)
                  << name(isa) << " " << name(t) << " " << m << "x" << n << "x" << k << " a_k " << a_k << " at " << i
                  << "," << j;
            }
        }
      }
    }
}
