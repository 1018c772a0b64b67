// The micro-kernels of every instruction set that this machine has agree with f64, for every storage type.
#include "lightcone/backends/cpu/products/gemm.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "guarded.h"
#include "lightcone/backends/cpu/products/microkernel.h"
#include "lightcone/backends/cpu/products/packed_weights.h"
#include "lightcone/backends/cpu/threads/thread_pool.h"
#include "lightcone/core/dtype.h"
#include "lightcone/core/op.h"
#include "lightcone/device/host_kernel.h"
#include "lightcone/formats/block_formats.h"

using namespace lc;
using namespace lc::backends::cpu;

namespace {

// A weight [n, k] in a storage type, and its values in f64.
struct Weight {
  std::vector<std::byte> bytes;
  std::vector<double> values;
  std::int64_t row;  // Gemm's stride between rows
};
Weight make_weight(WeightType t, std::int64_t n, std::int64_t k, std::mt19937& random) {
  std::normal_distribution<double> normal;
  Weight w;
  w.values.resize(static_cast<std::size_t>(n * k));
  const auto plain = [&](DType d) {
    w.bytes.resize(static_cast<std::size_t>(n * k) * size_of(d));
    w.row = k;
    for (std::size_t i = 0; i < w.values.size(); ++i) {
      store_f64(w.bytes.data(), d, i, normal(random));
      w.values[i] = load_f64(w.bytes.data(), d, i);
    }
  };
  if (t == WeightType::F32) plain(DType::F32);
  if (t == WeightType::F16) plain(DType::F16);
  if (t == WeightType::BF16) plain(DType::BF16);
  const QuantInfo* q = block_format(t);
  if (!q) return w;
  w.row = k / q->elements * q->bytes;
  w.bytes.resize(static_cast<std::size_t>(n * w.row));
  for (std::int64_t b = 0; b < n * k / q->elements; ++b) {
    std::byte* p = w.bytes.data() + b * q->bytes;
    for (int i = 0; i < q->bytes; ++i) p[i] = static_cast<std::byte>(random());
    put_quant_scales(q->format, std::abs(normal(random)) * 0.1 + 1e-4,
                     [p](int i, int byte) { p[i] = static_cast<std::byte>(byte); });
    for (int i = 0; i < q->elements; ++i)
      w.values[static_cast<std::size_t>(b * q->elements + i)] =
          quant_value(q->format, i, [p](std::int64_t at) { return static_cast<int>(p[at]); });
  }
  return w;
}

std::vector<std::byte> pack(WeightType t, const std::vector<std::byte>& blocks, std::int64_t n, std::int64_t k,
                            Parallel& parallel) {
  std::vector<std::byte> to(static_cast<std::size_t>(packed_bytes(t, n, k)), std::byte{0xff});
  const void* in[] = {blocks.data()};
  pack_kernel(t, t, n, k, false)->run({in, to.data(), {}, nullptr, parallel});
  return to;
}

// Returns other caches and streams for each number of workers; neither may change a bit.
Blocking blocking(int workers) {
  if (workers == 2) return Blocking(Machine{.l1 = 8 << 10, .l2 = 64 << 10, .streams = 4});
  return Blocking(workers == 3 ? Machine{.l1 = 128 << 10, .l2 = 8 << 20} : Machine{});
}

// Runs the product with scratch of exactly gemm_scratch_bytes(), guarded at its end.
void run(const Gemm& g, const GemmBatch& batch, Parallel& parallel, Isa isa) {
  test::Guarded scratch(gemm_scratch_bytes(g, parallel.workers()), test::Against::Back);
  gemm(g, batch, parallel, scratch.data(), isa);
}

}  // namespace

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

// B with contiguous columns (a plain product), a transposed A, and batches.
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
          pack_for_unit_kernel(*u, n, k, transposed)->run({in, packed.data(), {}, nullptr, *pool});
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
