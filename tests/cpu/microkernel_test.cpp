// Every arithmetic of matrix products (f32, bf16, int8, split f32) agrees with plain loops over the same rounded
// numbers, on every instruction set and on emulated AMX tiles.
#include "lightcone/backends/cpu/products/microkernel.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "guarded.h"
#include "lightcone/backends/cpu/products/matmul_kernel.h"
#include "lightcone/backends/cpu/products/packed_weights.h"
#include "lightcone/backends/cpu/threads/thread_pool.h"
#include "lightcone/core/dtype.h"
#include "lightcone/device/host_kernel.h"
#include "lightcone/formats/block_formats.h"

using namespace lc;
using namespace lc::backends::cpu;
using lc::test::Against;
using lc::test::Guarded;

namespace {

using i64 = std::int64_t;
std::size_t at(i64 i) { return static_cast<std::size_t>(i); }

struct Size {
  i64 m, n, k, chunk;  // k is processed in chunks, with one call of `tile` each
};
const Size kSizes[] = {{1, 1, 1, 64},    {1, 16, 2, 64},     {3, 17, 31, 32},  {14, 32, 64, 64}, {15, 33, 65, 32},
                       {32, 48, 96, 32}, {33, 64, 288, 128}, {29, 70, 33, 64}, {6, 15, 512, 96}, {40, 100, 256, 256}};

// Computes C = A * B as the blocked loop does, with every buffer exactly as large as required.
std::vector<float> multiply(const Microkernel& u, const Size& s, const float* a, i64 a_m, i64 a_k, const Gemm& b,
                            int zero = 0) {
  std::vector<float> c(at(s.m * s.n + 1), std::nanf(""));
  for (i64 k = 0; k < s.k; k += s.chunk) {
    const i64 depth = std::min(s.chunk, s.k - k), groups = (s.n + 15) / 16, strips = (s.m + u.mr - 1) / u.mr;
    Guarded packed_a(at(strips * u.a_bytes(depth) + 63) / 64 * 64, Against::Back);
    Guarded packed_b(at(groups * u.b_bytes(depth)), Against::Back);
    u.pack_a(a + k * a_k, a_m, a_k, s.m, depth, zero, packed_a.data());
    u.pack_b(&b, 0, s.n, k, depth, packed_b.data(), u.b_bytes(depth));
    if (u.begin) u.begin();
    for (i64 i = 0; i < s.m; i += u.mr)
      for (i64 j = 0; j < s.n; j += u.nr)
        u.tile(packed_a.data() + i / u.mr * u.a_bytes(depth), packed_b.data() + j / 16 * u.b_bytes(depth),
               u.b_bytes(depth), depth, c.data() + i * s.n + j, s.n, std::min<i64>(u.mr, s.m - i),
               std::min<i64>(u.nr, s.n - j), k > 0, packed_b.data());
    if (u.end) u.end();
  }
  EXPECT_TRUE(std::isnan(c.back())) << "wrote behind C";
  c.pop_back();
  return c;
}

std::vector<float> normal_numbers(i64 count, std::mt19937& random, float scale = 1) {
  std::normal_distribution<float> normal;
  std::vector<float> v(at(count));
  for (float& x : v) x = normal(random) * scale;
  return v;
}

std::vector<const Microkernel*> units(Arithmetic a) {
  std::vector<const Microkernel*> found;
  for (const Microkernel* u : microkernels())
    if (u->arithmetic == a) found.push_back(u);
  EXPECT_FALSE(found.empty());
  return found;
}

// The microkernels for int8 products with weights of block format t.
std::vector<const Microkernel*> units(WeightType t) {
  std::vector<const Microkernel*> found;
  for (const Microkernel* u : microkernels())
    if (takes(*u, t)) found.push_back(u);
  EXPECT_FALSE(found.empty());
  return found;
}

float bf16_of(float v) { return bf16_to_f32(f32_to_bf16(v)); }

}  // namespace

TEST(Microkernel, Bf16IsTheProductOfRoundedNumbers) {
  std::mt19937 random(1);
  for (const Microkernel* u : units(Arithmetic::Bf16))
    for (const Size& s : kSizes) {
      const auto a = normal_numbers(s.m * s.k, random), b = normal_numbers(s.n * s.k, random);
      for (int turned = 0; turned < 4; ++turned) {  // each operand by rows and by columns
        const i64 a_m = turned & 1 ? 1 : s.k, a_k = turned & 1 ? s.m : 1;
        const i64 b_n = turned & 2 ? 1 : s.k, b_k = turned & 2 ? s.n : 1;
        const auto c = multiply(*u, s, a.data(), a_m, a_k, {.n = s.n, .k = s.k, .b = b.data(), .b_n = b_n, .b_k = b_k});
        for (i64 i = 0; i < s.m; ++i)
          for (i64 j = 0; j < s.n; ++j) {
            double want = 0, size = 0;
            for (i64 k = 0; k < s.k; ++k) {
              const double term = static_cast<double>(bf16_of(a[at(i * a_m + k * a_k)])) *
                                  static_cast<double>(bf16_of(b[at(j * b_n + k * b_k)]));
              want += term, size += std::abs(term);
            }
            ASSERT_NEAR(c[at(i * s.n + j)], want, 4e-7 * size)
                << u->name << " " << s.m << "x" << s.n << "x" << s.k << " at " << i << "," << j << " turned " << turned;
          }
      }
    }
}

TEST(Microkernel, Bf16RoundsAsTheFormatSays) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  // ties of both parities, the largest number (which rounds to infinity), NaN with the upper bits of infinity
  const float odd_nan = std::bit_cast<float>(0x7f800001u);
  const std::vector<float> hard{
      0.0f,        -0.0f,       inf,         -inf,   nan,          odd_nan, std::numeric_limits<float>::max(),
      1.00390625f, 1.01171875f, -1.0117187f, 1e-30f, 3.3895314e38f};
  const Size s{static_cast<i64>(hard.size()), 1, 1, 32};
  const float one = 1;
  for (const Microkernel* u : units(Arithmetic::Bf16))
    for (const bool left : {true, false}) {  // the hard numbers are A, or the rows of B
      const Size t = left ? s : Size{1, s.m, 1, 32};
      const auto c = multiply(*u, t, left ? hard.data() : &one, 1, 1,
                              {.n = t.n, .k = 1, .b = left ? &one : hard.data(), .b_n = 1, .b_k = 1});
      for (std::size_t i = 0; i < hard.size(); ++i) {
        const float want = bf16_of(hard[i]);
        if (std::isnan(want)) EXPECT_TRUE(std::isnan(c[i])) << u->name << " " << i;
        else EXPECT_EQ(c[i], want) << u->name << " " << i;
      }
    }
}

namespace {

// A quantized weight [n, k], and each of its values decoded by the format's table.
struct BlockWeight {
  struct Value {
    int code;          // unsigned, as stored; `zero` is not subtracted
    float scale, min;  // scale and minimum of its quantization step
  };
  std::vector<std::byte> bytes;
  std::vector<Value> values;
  int zero = 0, step = 32;
  bool has_min = false;
};
BlockWeight block_weight(WeightType t, i64 n, i64 k, std::mt19937& random) {
  const QuantInfo& q = *block_format(t);
  BlockWeight w;
  w.bytes.resize(at(n * k / q.elements * q.bytes));
  std::uniform_real_distribution<double> d(0.01, 0.2);
  for (std::byte& b : w.bytes) b = static_cast<std::byte>(random());
  for (std::size_t i = 0; i < at(k / q.elements * q.bytes); ++i) w.bytes[i] = std::byte{0x7f};  // the largest codes
  for (i64 b = 0; b < n * k / q.elements; ++b) {
    std::byte* p = w.bytes.data() + b * q.bytes;
    for (const int h : {q.d, q.d_min})
      if (h >= 0) store_f64(p + h, DType::F16, 0, d(random));
    const auto byte = [p](i64 i) { return static_cast<int>(p[i]); };
    const auto half = [&](int h) { return static_cast<float>(load_f64(p + h, DType::F16, 0)); };
    for (int i = 0; i < q.elements; ++i) {
      const auto l = quant_layout<i64>(q, i);
      w.zero = q.q.is_signed ? 128 : -q.q.bias;
      w.has_min = q.d_min >= 0;
      w.values.push_back({quant_read(l.q, byte) + w.zero, half(q.d) * static_cast<float>(quant_read(l.scale, byte)),
                          w.has_min ? half(q.d_min) * static_cast<float>(quant_read(l.min, byte)) : 0.0f});
    }
  }
  w.step = t == WeightType::Q2_K || t == WeightType::Q3_K || t == WeightType::Q6_K ? 16 : 32;
  return w;
}
std::vector<std::byte> packed(WeightType t, const std::vector<std::byte>& blocks, i64 n, i64 k) {
  std::vector<std::byte> to(at(packed_bytes(t, n, k)), std::byte{0xff});
  const void* in[] = {blocks.data()};
  pack_kernel(t, t, n, k, false)->run({in, to.data(), {}, nullptr, *one_thread()});
  return to;
}

// Computes an int8 product by its definition (microkernel.h), and the bound of its distance from the exact product.
float int8_product(const float* a, const BlockWeight::Value* w, const BlockWeight& b, const Size& s, double& bound) {
  float c = 0;
  double want = 0;
  for (i64 k0 = 0; k0 < s.k; k0 += s.chunk) {
    float acc = 0;
    for (i64 k = k0; k < std::min(s.k, k0 + s.chunk); k += b.step) {
      float largest = 0, total = 0;
      for (i64 e = k; e < k + b.step; ++e) largest = std::max(largest, std::abs(a[e]));
      const float scale = largest / 127.0f;
      int sum = 0;
      for (i64 e = k; e < k + b.step; ++e) {
        const int code = static_cast<int>(std::nearbyint(a[e] * (127.0f / largest)));
        sum += code;
        total += static_cast<float>(code * (w[e].code - b.zero));
        const double value = static_cast<double>(w[e].scale) * (w[e].code - b.zero) - static_cast<double>(w[e].min);
        want += static_cast<double>(a[e]) * value;
        bound += std::abs(value) * static_cast<double>(largest) * 0.51 / 127;
      }
      acc = std::fma(total, scale * w[k].scale, acc);
      if (b.has_min) acc = std::fma(-w[k].min, scale * static_cast<float>(sum), acc);
    }
    c = k0 ? c + acc : acc;
  }
  EXPECT_NEAR(c, want, bound);
  return c;
}

constexpr WeightType kBlockTypes[] = {WeightType::Q4_0, WeightType::Q4_1, WeightType::Q5_0, WeightType::Q5_1,
                                      WeightType::Q8_0, WeightType::Q2_K, WeightType::Q3_K, WeightType::Q4_K,
                                      WeightType::Q5_K, WeightType::Q6_K};

}  // namespace

TEST(Microkernel, Int8HasTheBitsOfItsDefinition) {
  std::mt19937 random(2);
  int checked = 0;
  for (const WeightType t : kBlockTypes)
    for (const Size& s : {Size{1, 1, 32, 32}, Size{5, 20, 96, 32}, Size{2, 16, 256, 256}, Size{7, 33, 512, 96},
                          Size{20, 50, 768, 256}}) {
      const QuantInfo& q = *block_format(t);
      if (s.k % q.elements) continue;
      const BlockWeight w = block_weight(t, s.n, s.k, random);
      auto a = normal_numbers(s.m * s.k, random);
      std::fill_n(a.begin(), s.k, 1.0f);  // every code is 127: 16-bit sums would overflow
      std::vector<float> want(at(s.m * s.n));
      for (i64 i = 0; i < s.m; ++i)
        for (i64 j = 0; j < s.n; ++j) {
          double bound = 1e-5;
          want[at(i * s.n + j)] = int8_product(a.data() + i * s.k, w.values.data() + j * s.k, w, s, bound);
        }
      ASSERT_EQ(w.zero, int8_format(t).zero);
      for (const bool is_packed : {false, true}) {
        if (is_packed && packed_layout(t).block == 0) continue;
        const auto bytes = is_packed ? packed(t, w.bytes, s.n, s.k) : w.bytes;
        const Gemm b{
            .n = s.n, .k = s.k, .type = t, .packed = is_packed, .b = bytes.data(), .b_n = s.k / q.elements * q.bytes};
        for (const Microkernel* u : units(t)) {
          ASSERT_EQ(u->step, w.step);
          const auto c = multiply(*u, s, a.data(), s.k, 1, b, w.zero);
          for (std::size_t i = 0; i < c.size(); ++i)
            ASSERT_EQ(std::bit_cast<std::uint32_t>(c[i]), std::bit_cast<std::uint32_t>(want[i]))
                << u->name << " " << q.name << (is_packed ? " packed " : " ") << s.m << "x" << s.n << "x" << s.k
                << " at " << i << ": " << c[i] << " for " << want[i];
          ++checked;
        }
      }
    }
  EXPECT_GT(checked, 50);
}

TEST(Microkernel, Int8ActivationsAtTheEdges) {
  std::mt19937 random(3);
  const float inf = std::numeric_limits<float>::infinity();
  const Size s{9, 18, 256, 128};
  for (const WeightType t : {WeightType::Q8_0, WeightType::Q4_K, WeightType::Q6_K, WeightType::Q2_K}) {
    const QuantInfo& q = *block_format(t);
    const BlockWeight w = block_weight(t, s.n, s.k, random);
    const Gemm b{.n = s.n, .k = s.k, .type = t, .b = w.bytes.data(), .b_n = s.k / q.elements * q.bytes};
    auto a = normal_numbers(s.m * s.k, random);
    const auto row = [&](i64 i) { return a.begin() + i * s.k; };
    *(row(1) + 40) = std::nanf("");
    *(row(2) + 200) = inf;
    *(row(3) + 255) = -inf;
    std::fill_n(row(4), s.k, -0.0f);
    std::fill_n(row(5), s.k, 1e-40f);
    std::fill_n(row(6), s.k, std::numeric_limits<float>::max() / 1e30f);
    std::fill_n(row(7), s.k, 1e-30f);
    std::vector<float> turned(a.size());  // the same numbers by columns, which is another way to read A
    for (i64 i = 0; i < s.m; ++i)
      for (i64 k = 0; k < s.k; ++k) turned[at(k * s.m + i)] = a[at(i * s.k + k)];
    for (const Microkernel* u : units(t)) {
      const auto c = multiply(*u, s, a.data(), s.k, 1, b, w.zero);
      const auto d = multiply(*u, s, turned.data(), 1, s.m, b, w.zero);
      for (i64 i = 0; i < s.m; ++i)
        for (i64 j = 0; j < s.n; ++j) {
          const float v = c[at(i * s.n + j)];
          if (i >= 1 && i <= 3) {
            EXPECT_TRUE(std::isnan(v) && std::isnan(d[at(i * s.n + j)]))
                << u->name << " " << i << " " << j << ": " << v;
            continue;
          }
          ASSERT_EQ(v, d[at(i * s.n + j)]) << u->name;
          double bound = static_cast<double>(std::abs(v)) * 1e-5 + 1e-30;
          const bool is_zero = i == 4 || i == 5;
          EXPECT_EQ(v, is_zero ? 0 : int8_product(&*row(i), w.values.data() + j * s.k, w, s, bound))
              << u->name << " " << i;
        }
    }
  }
}

namespace {

// Returns the error of a product against f64, relative to the sum of magnitudes. Exact results that are infinite or NaN
// must match. Below the smallest normal number, each step rounds to a multiple of 2^-149.
double error_of(const std::vector<float>& c, const std::vector<float>& a, const std::vector<float>& b, const Size& s) {
  double worst = 0;
  for (i64 i = 0; i < s.m; ++i)
    for (i64 j = 0; j < s.n; ++j) {
      double want = 0, size = 0;
      for (i64 k = 0; k < s.k; ++k) {
        const double term = static_cast<double>(a[at(i * s.k + k)]) * static_cast<double>(b[at(j * s.k + k)]);
        want += term, size += std::abs(term);
      }
      const auto got = static_cast<double>(c[at(i * s.n + j)]);
      if (std::isnan(want)) EXPECT_TRUE(std::isnan(got)) << i << "," << j << ": " << got;
      else if (std::isinf(want)) EXPECT_EQ(got, want) << i << "," << j;
      else if (size > 0) worst = std::max(worst, (std::abs(got - want) - static_cast<double>(s.k) * 0x1p-149) / size);
    }
  return worst;
}
double f32_error(const std::vector<float>& a, const std::vector<float>& b, const Size& s) {
  std::vector<float> c(at(s.m * s.n));
  const Gemm g{.m = s.m,
               .n = s.n,
               .k = s.k,
               .a = a.data(),
               .a_m = s.k,
               .a_k = 1,
               .b = b.data(),
               .b_n = s.k,
               .b_k = 1,
               .c = c.data(),
               .c_m = s.n};
  std::vector<std::byte> scratch(gemm_scratch_bytes(g, 1) + 64);
  auto* aligned = reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(scratch.data()) + 63) / 64 * 64);
  gemm(g, {}, *one_thread(), aligned, detect_isa());
  return error_of(c, a, b, s);
}

constexpr int kLarge = 10, kKinds = 14;
// Returns numbers that are hard to split; `kind` selects which.
std::vector<float> hard_numbers(int kind, i64 count, std::mt19937& random) {
  std::vector<float> v = normal_numbers(count, random);
  std::uniform_int_distribution<int> wide(-20, 20), far(-60, 60), tiny(-149, -90);
  for (std::size_t i = 0; i < v.size(); ++i) switch (kind) {
      case 1: v[i] = std::abs(v[i]); break;  // no cancellation: errors add up
      case 2: v[i] = std::ldexp(v[i], wide(random)); break;
      case 3: v[i] = std::ldexp(v[i], far(random)); break;
      case 4: v[i] = std::ldexp(v[i], tiny(random)); break;             // subnormal numbers among them
      case 5: v[i] = i % 2 ? -v[i - 1] * (1 + 0x1p-20f) : v[i]; break;  // cancels except for the last bits
      case 6: v[i] = 1 + static_cast<float>(random() % 8) * 0x1p-23f; break;
      case 7:
        if (random() % 50 == 0) v[i] = std::ldexp(v[i], -140);
        break;
      case 8:
        if (random() % 50 == 0) v[i] = 0;
        break;
      case 9: v[i] = std::ldexp(v[i], -112); break;  // the lowest part would be subnormal
      case kLarge: v[i] = std::ldexp(v[i], 50); break;
      case 11: v[i] = std::ldexp(v[i], -57); break;  // products have lower parts that would be subnormal
      case 12: v[i] = std::ldexp(v[i], i % 3 ? -20 : -64); break;
      case 13: v[i] = std::ldexp(v[i], i / 64 % 2 ? -66 : 30); break;
      default: break;
    }
  return v;
}

}  // namespace

TEST(Microkernel, SplitsAreAsExactAsF32) {
  std::mt19937 random(4);
  for (const Size& s : {Size{33, 40, 64, 64}, Size{16, 16, 1000, 256}, Size{5, 70, 37, 32}})
    for (int kind = 0; kind < kKinds; ++kind)
      // with ordinary numbers, its own kind, and large numbers that make small parts count
      for (int other : {0, kind, kLarge}) {
        const auto a = hard_numbers(kind, s.m * s.k, random), b = hard_numbers(other, s.n * s.k, random);
        const double plain = f32_error(a, b, s);
        const Gemm g{.n = s.n, .k = s.k, .b = b.data(), .b_n = s.k, .b_k = 1};
        for (const Microkernel* u : units(Arithmetic::Split3)) {
          const double error = error_of(multiply(*u, s, a.data(), s.k, 1, g), a, b, s);
          EXPECT_LE(error, plain + 0x1p-24)
              << u->name << " kind " << kind << "," << other << " " << s.m << "x" << s.n << "x" << s.k;
        }
        for (const Microkernel* u : units(Arithmetic::Split2)) {
          const double error = error_of(multiply(*u, s, a.data(), s.k, 1, g), a, b, s);
          EXPECT_LE(error, 0x1p-15) << u->name << " kind " << kind << "," << other;
        }
      }
}

TEST(Microkernel, SplitsOfWhatIsNotFinite) {
  std::mt19937 random(5);
  const float inf = std::numeric_limits<float>::infinity(), huge = std::numeric_limits<float>::max();
  const Size s{40, 36, 96, 96};
  for (const Arithmetic arithmetic : {Arithmetic::Split2, Arithmetic::Split3})
    for (const Microkernel* u : units(arithmetic)) {
      auto a = normal_numbers(s.m * s.k, random), b = normal_numbers(s.n * s.k, random);
      for (float& x : a) x = std::abs(x);
      for (float& x : b) x = std::abs(x);
      a[at(1 * s.k + 5)] = inf;  // inf * (hi + mid + lo) is inf
      a[at(2 * s.k + 40)] = -inf;
      a[at(3 * s.k + 7)] = std::nanf("");
      for (i64 j = 0; j < s.n; ++j) b[at(j * s.k + 90)] *= 0.1f;
      for (i64 i = 0; i < s.m; ++i) a[at(i * s.k + 70)] *= 0.1f;
      a[at(20 * s.k + 90)] = huge;  // bf16 would round it to infinity
      b[at(4 * s.k + 33)] = inf;
      b[at(20 * s.k + 33)] = 0;  // except at one position
      a[at(7 * s.k + 33)] = 0;   // 0 * inf
      b[at(30 * s.k + 70)] = huge / 2;
      const Gemm g{.n = s.n, .k = s.k, .b = b.data(), .b_n = s.k, .b_k = 1};
      EXPECT_LE(error_of(multiply(*u, s, a.data(), s.k, 1, g), a, b, s), arithmetic == Arithmetic::Split2 ? 2e-5 : 4e-7)
          << u->name;
    }
}

// bf16 panels of B are packed from every form that a weight can have in memory.
TEST(Microkernel, Bf16PanelsOfEveryForm) {
  std::mt19937 random(6);
  const i64 n = 37, k = 512, k0 = 96, depth = 160;
  int checked = 0;
  for (int type = 0; type <= static_cast<int>(WeightType::Q6_K); ++type)
    for (const bool is_packed : {false, true}) {
      const auto t = static_cast<WeightType>(type);
      if (is_packed && packed_layout(t).block == 0) continue;
      const QuantInfo* q = block_format(t);
      std::vector<std::byte> bytes;
      std::vector<double> values, size;
      if (q) {
        const BlockWeight w = block_weight(t, n, k, random);
        bytes = w.bytes;
        for (const auto& v : w.values) {
          values.push_back(static_cast<double>(v.scale) * (v.code - w.zero) - static_cast<double>(v.min));
          size.push_back(std::abs(static_cast<double>(v.scale)) * 32 + static_cast<double>(v.min));
        }
      } else {
        const DType d = t == WeightType::F32 ? DType::F32 : t == WeightType::F16 ? DType::F16 : DType::BF16;
        bytes.resize(at(n * k) * size_of(d));
        const auto numbers = normal_numbers(n * k, random);
        for (std::size_t i = 0; i < numbers.size(); ++i) {
          store_f64(bytes.data(), d, i, static_cast<double>(numbers[i]));
          values.push_back(load_f64(bytes.data(), d, i));
          size.push_back(0);
        }
      }
      if (is_packed) bytes = packed(t, bytes, n, k);
      const Gemm b{.n = n,
                   .k = k,
                   .type = t,
                   .packed = is_packed,
                   .b = bytes.data(),
                   .b_n = q ? k / q->elements * q->bytes : k,
                   .b_k = 1};
      for (const Microkernel* u : units(Arithmetic::Bf16)) {
        const i64 j0 = 16, group = u->b_bytes(depth);
        std::vector<std::uint16_t> panel(at(2 * group / 2));
        u->pack_b(&b, j0, n - j0, k0, depth, panel.data(), group);
        // otherwise each value stands alone, as f32 bits, for a microkernel without the bf16 instruction
        const bool pairs = u->step > 1;
        for (i64 j = j0; j < n; ++j)
          for (i64 e = 0; e < depth; ++e) {
            const i64 column = (j - j0) % 16, from = (j - j0) / 16 * group / 2;
            const i64 place = from + (pairs ? e / 2 * 32 + column * 2 + e % 2 : (e * 16 + column) * 2 + 1);
            ASSERT_TRUE(pairs || panel[at(place - 1)] == 0) << u->name << ": not rounded";
            const auto got = static_cast<double>(bf16_to_f32(panel[at(place)]));
            const std::size_t i = at(j * k + k0 + e);
            ASSERT_NEAR(got, values[i], 0x1p-8 * std::abs(values[i]) + 1e-6 * size[i])
                << u->name << " type " << type << (is_packed ? " packed " : " ") << j << "," << e;
          }
        // packed bf16 weights are stored as panels, so packing copies them
        for (i64 g = 0; is_packed && t == WeightType::BF16 && u->step == 2 && g < 2; ++g) {
          const std::byte* there = bytes.data() + packed_layout(t).group_bytes(k) * (1 + g) + k0 * 32;
          EXPECT_EQ(std::memcmp(panel.data() + g * group / 2, there, at(group)), 0) << u->name;
        }
        ++checked;
      }
    }
  EXPECT_GT(checked, 40);
}

// AVX2 without VNNI has tiles of its own for codes of four bits, which the products of such weights choose.
TEST(Microkernel, CodesOfFourBitsHaveTheirOwn) {
  if (kInt8Avx2[5].code_bits != 4) GTEST_SKIP() << "this build has no kernels for AVX2";
  Target avx2(Isa::Avx2);
  avx2.avx_vnni = false;
  const auto chosen = [&](WeightType t) {
    lowering::Contraction c;
    c.type = t;
    return choose_unit(c, Precision::Medium, avx2);
  };
  EXPECT_EQ(chosen(WeightType::Q4_0), kInt8Avx2 + 5);
  EXPECT_EQ(chosen(WeightType::Q4_1), kInt8Avx2 + 6);
  EXPECT_EQ(chosen(WeightType::Q4_K), kInt8Avx2 + 6);
  EXPECT_EQ(chosen(WeightType::Q8_0), kInt8Avx2);
  EXPECT_EQ(chosen(WeightType::Q5_K), kInt8Avx2 + 1);
  avx2.avx_vnni = true;
  EXPECT_EQ(chosen(WeightType::Q4_0), kInt8AvxVnni);
}
