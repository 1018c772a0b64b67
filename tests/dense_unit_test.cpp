// The matrix units' packing and tiles on every instruction set this machine has (and tile hardware emulated), against
// plain loops over the same rounded or quantised numbers.
#include "lightcone/backends/cpu/dense_unit.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "guarded.h"
#include "lightcone/core/dtype.h"

using namespace lc;
using namespace lc::host;
using lc::test::Against;
using lc::test::Guarded;

namespace {

using i64 = std::int64_t;
std::size_t at(i64 i) { return static_cast<std::size_t>(i); }

struct Size {
  i64 m, n, k, chunk;  // k is taken in chunks, each with its own call of `tile`
};
const Size kSizes[] = {{1, 1, 1, 64},    {1, 16, 2, 64},     {3, 17, 31, 32},  {14, 32, 64, 64}, {15, 33, 65, 32},
                         {32, 48, 96, 32}, {33, 64, 288, 128}, {29, 70, 33, 64}, {6, 15, 512, 96}, {40, 100, 256, 256}};

// C = A * B as the blocked loop does it, every buffer just as large as it must be.
std::vector<float> multiply(const DenseUnit& u, const Size& s, const float* a, i64 a_m, i64 a_k, const Gemm& b,
                            int zero = 0) {
  std::vector<float> c(at(s.m * s.n + 1), std::nanf(""));
  for (i64 k = 0; k < s.k; k += s.chunk) {
    const i64 depth = std::min(s.chunk, s.k - k), groups = (s.n + 15) / 16, strips = (s.m + u.mr - 1) / u.mr;
    Guarded packed_a(at(strips * u.a_bytes(depth) + 63) / 64 * 64, Against::Back);
    Guarded packed_b(at(groups * u.b_bytes(depth)), Against::Back);
    u.pack_a(a + k * a_k, a_m, a_k, s.m, depth, zero, packed_a.data());
    u.pack_b(b, 0, s.n, k, depth, packed_b.data(), u.b_bytes(depth));
    if (u.begin) u.begin();
    for (i64 i = 0; i < s.m; i += u.mr)
      for (i64 j = 0; j < s.n; j += u.nr)
        u.tile(packed_a.data() + i / u.mr * u.a_bytes(depth), packed_b.data() + j / 16 * u.b_bytes(depth),
               u.b_bytes(depth), depth, c.data() + i * s.n + j, s.n, std::min<i64>(u.mr, s.m - i),
               std::min<i64>(u.nr, s.n - j), k > 0);
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

std::vector<const DenseUnit*> units(Arithmetic a) {
  std::vector<const DenseUnit*> found;
  for (const DenseUnit* u : dense_units())
    if (u->arithmetic == a) found.push_back(u);
  EXPECT_FALSE(found.empty());
  return found;
}

float bf16_of(float v) { return bf16_to_f32(f32_to_bf16(v)); }

}  // namespace

TEST(DenseUnit, Bf16IsTheProductOfRoundedNumbers) {
  std::mt19937 random(1);
  for (const DenseUnit* u : units(Arithmetic::Bf16))
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

TEST(DenseUnit, Bf16RoundsAsTheFormatSays) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  // ties of both parities, the largest number (it becomes infinity), NaN whose upper bits are those of infinity
  const float odd_nan = std::bit_cast<float>(0x7f800001u);
  const std::vector<float> hard{
      0.0f,        -0.0f,       inf,         -inf,   nan,          odd_nan, std::numeric_limits<float>::max(),
      1.00390625f, 1.01171875f, -1.0117187f, 1e-30f, 3.3895314e38f};
  const Size s{static_cast<i64>(hard.size()), 1, 1, 32};
  const float one = 1;
  for (const DenseUnit* u : units(Arithmetic::Bf16))
    for (const bool left : {true, false}) {  // the hard numbers as A, or as the rows of B
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
