// The simulated AMX computes products of tiles of every shape, addresses memory in every way, and refuses what a
// processor refuses.
#if defined(__x86_64__)
#include <cpuid.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace {

struct alignas(64) Config {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};
  Config& with(int tile, int number_of_rows, int bytes) {
    rows[tile] = static_cast<std::uint8_t>(number_of_rows), row_bytes[tile] = static_cast<std::uint16_t>(bytes);
    return *this;
  }
};

void configure(const Config& c) { asm volatile("ldtilecfg %0" ::"m"(c)); }

// Bytes of a tile in memory, whose rows are further apart than they are long.
struct Bytes {
  static constexpr std::int64_t kStride = 80;
  std::vector<std::uint8_t> data = std::vector<std::uint8_t>(16 * kStride, 0xa5);
  template <class T>
  T at(int row, int i) const {
    T v;
    std::memcpy(&v, &data[static_cast<std::size_t>(row * kStride) + static_cast<std::size_t>(i) * sizeof v], sizeof v);
    return v;
  }
  template <class T>
  void put(int row, int i, T v) {
    std::memcpy(&data[static_cast<std::size_t>(row * kStride) + static_cast<std::size_t>(i) * sizeof v], &v, sizeof v);
  }
};

// Tile 0 holds the sums, tile 1 A and tile 2 B.
struct Case {
  int m, n, k;  // k in words of four bytes
  Bytes c, a, b;
  void load() {
    configure(Config().with(0, m, 4 * n).with(1, m, 4 * k).with(2, k, 4 * n));
    asm volatile(
        "tileloadd (%0,%3,1), %%tmm0\n tileloaddt1 -80(%1,%3,1), %%tmm1\n tileloadd 4096(%2,%4,8), %%tmm2" ::"r"(
            c.data.data()),
        "r"(a.data.data() + 80), "r"(b.data.data() - 4096), "r"(Bytes::kStride), "r"(Bytes::kStride / 8)
        : "memory");
  }
  void store() {
    asm volatile("tilestored %%tmm0, (%0,%1,1)\n tilerelease" ::"r"(c.data.data()), "r"(Bytes::kStride) : "memory");
  }
};

template <class F>
void on_random_shapes(const F& f) {
  std::mt19937 draw(7);
  const auto up_to_16 = [&] { return static_cast<int>(draw() % 16) + 1; };
  for (int i = 0; i < 60; ++i) {
    Case c{up_to_16(), up_to_16(), up_to_16(), {}, {}, {}};
    for (Bytes* all : {&c.c, &c.a, &c.b})
      for (std::uint8_t& x : all->data) x = static_cast<std::uint8_t>(draw());
    f(c);
  }
}

template <class A, class B, class Multiply>
void expect_products_of_bytes(const Multiply& multiply) {
  on_random_shapes([&](Case& c) {
    Bytes want = c.c;
    for (int m = 0; m < c.m; ++m)
      for (int n = 0; n < c.n; ++n) {
        auto sum = c.c.at<std::uint32_t>(m, n);
        for (int k = 0; k < 4 * c.k; ++k)
          sum += static_cast<std::uint32_t>(c.a.at<A>(m, k) * c.b.at<B>(k / 4, 4 * n + k % 4));
        want.put(m, n, sum);
      }
    c.load(), multiply(), c.store();
    ASSERT_EQ(c.c.data, want.data) << c.m << " " << c.n << " " << c.k;
  });
}

float bf16(std::uint16_t bits) {
  const std::uint32_t wide = static_cast<std::uint32_t>(bits) << 16;
  float v;
  std::memcpy(&v, &wide, sizeof v);
  return v;
}

class FakeAmx : public testing::Test {
 protected:
  void SetUp() override {
    constexpr unsigned kTiles = 1u << 24;
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & kTiles))
      GTEST_SKIP() << "the processor has tile registers of its own, and no illegal instruction";
  }
};
using FakeAmxDeathTest = FakeAmx;

}  // namespace

TEST_F(FakeAmx, MultipliesBytesOfEverySign) {
  expect_products_of_bytes<std::int8_t, std::int8_t>([] { asm volatile("tdpbssd %tmm2, %tmm1, %tmm0"); });
  expect_products_of_bytes<std::int8_t, std::uint8_t>([] { asm volatile("tdpbsud %tmm2, %tmm1, %tmm0"); });
  expect_products_of_bytes<std::uint8_t, std::int8_t>([] { asm volatile("tdpbusd %tmm2, %tmm1, %tmm0"); });
  expect_products_of_bytes<std::uint8_t, std::uint8_t>([] { asm volatile("tdpbuud %tmm2, %tmm1, %tmm0"); });
}

TEST_F(FakeAmx, MultipliesBf16) {
  constexpr std::uint16_t kNumbers[] = {0x3f80, 0x4000, 0xc040, 0x0000};  // 1, 2, -3 and 0, whose sums are exact
  on_random_shapes([&](Case& c) {
    for (int row = 0; row < 16; ++row)
      for (int i = 0; i < 32; ++i)
        for (Bytes* all : {&c.a, &c.b}) all->put(row, i, kNumbers[all->at<std::uint16_t>(row, i) % 4]);
    for (int m = 0; m < c.m; ++m)
      for (int n = 0; n < c.n; ++n) c.c.put(m, n, static_cast<float>(m - n));
    Bytes want = c.c;
    for (int m = 0; m < c.m; ++m)
      for (int n = 0; n < c.n; ++n) {
        float sum = c.c.at<float>(m, n);
        for (int k = 0; k < 2 * c.k; ++k)
          sum += bf16(c.a.at<std::uint16_t>(m, k)) * bf16(c.b.at<std::uint16_t>(k / 2, 2 * n + k % 2));
        want.put(m, n, sum);
      }
    c.load();
    asm volatile("tdpbf16ps %tmm2, %tmm1, %tmm0");
    c.store();
    ASSERT_EQ(c.c.data, want.data) << c.m << " " << c.n << " " << c.k;
  });
}

// Subnormal operands and results are zeros. Infinities and NaN are numbers as others.
TEST_F(FakeAmx, NumbersAtTheEndsOfTheRange) {
  constexpr std::uint16_t kOne = 0x3f80, kSubnormal = 0x0040, kSmall = 0x0080, kHalf = 0x3f00, kInfinity = 0x7f80;
  const auto product = [](std::uint16_t a, std::uint16_t b, float before) {
    Case c{1, 1, 1, {}, {}, {}};
    c.a.put(0, 0, a), c.a.put(0, 1, std::uint16_t{0});
    c.b.put(0, 0, b), c.b.put(0, 1, std::uint16_t{0});
    c.c.put(0, 0, before);
    c.load();
    asm volatile("tdpbf16ps %tmm2, %tmm1, %tmm0");
    c.store();
    return c.c.at<float>(0, 0);
  };
  EXPECT_EQ(product(kSubnormal, kOne, 0), 0);
  EXPECT_EQ(product(kSmall, kOne, 0), 0x1p-126f);
  EXPECT_EQ(product(kSmall, kHalf, 0), 0);
  EXPECT_EQ(product(kOne, kOne, 0x1p-127f), 1);
  EXPECT_EQ(product(0, kOne, 0x1p-127f), 0);
  EXPECT_EQ(product(kInfinity, kOne, 1), INFINITY);
  EXPECT_TRUE(std::isnan(product(kInfinity, 0, 1)));
}

TEST_F(FakeAmx, LoadsZerosAroundATile) {
  Case c{3, 5, 2, {}, {}, {}};
  c.load();
  asm volatile("tilezero %tmm0");
  c.store();
  for (int row = 0; row < 16; ++row)
    for (int i = 0; i < 16; ++i)
      EXPECT_EQ(c.c.at<std::uint32_t>(row, i), row < 3 && i < 5 ? 0u : 0xa5a5a5a5u) << row << " " << i;
}

TEST_F(FakeAmxDeathTest, RefusesWhatAProcessorRefuses) {
  const auto multiply = [](const Config& c) {
    configure(c);
    asm volatile("tdpbf16ps %tmm2, %tmm1, %tmm0");
  };
  const auto refused = [](const char* why) { return std::string("a processor refuses this: ") + why; };
  EXPECT_DEATH(asm volatile("tilezero %tmm0"), refused("no tiles are configured"));
  EXPECT_DEATH(multiply(Config().with(0, 16, 64).with(1, 16, 64)), refused("a tile without rows"));
  EXPECT_DEATH(multiply(Config().with(0, 16, 64).with(1, 8, 64).with(2, 16, 64)), refused("shapes of a product"));
  EXPECT_DEATH(multiply(Config().with(0, 16, 64).with(1, 16, 32).with(2, 16, 64)), refused("shapes of a product"));
  EXPECT_DEATH(configure(Config().with(0, 17, 64)), refused("a tile of more than 16 rows"));
  EXPECT_DEATH(configure(Config().with(0, 16, 0)), refused("a tile with rows or bytes alone"));
  EXPECT_DEATH(configure(Config().with(9, 16, 64)), refused("a tile past the eighth"));
  EXPECT_EXIT(asm volatile("ud2"), testing::KilledBySignal(SIGILL), "") << "other instructions are illegal as before";
}
#endif
