// A product and its gradients have the same bits for any number of threads, cache sizes and other rows, at every
// precision.
//
// tools/test_target runs this test for the microkernels of other processors.
#include <bit>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "lightcone/autograd/autograd.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"

using namespace lc;

namespace {

constexpr std::int64_t kMostRows = 5000, kIn = 264, kOut = 193;

Graph layer_and_gradients() {
  Graph g;
  const Dim rows = Dim::symbol("rows", 1, kMostRows);
  const Tensor x = g.input("x", {rows, kIn}), w = g.input("w", {kIn, kOut}), slope = g.input("slope", {rows, kOut});
  const Tensor y = matmul(x, w);
  const std::vector<Tensor> d = gradients(sum(y * slope), {x, w});
  g.output("y", y);
  g.output("dx", d[0]);
  g.output("dw", d[1]);
  return g;
}

// Random numbers. Every 97th row is so small that no sum of bf16 numbers represents it: AMX microkernels compute such
// rows by other means.
std::vector<float> numbers(std::int64_t rows, std::int64_t columns, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> v(static_cast<std::size_t>(rows * columns));
  for (std::size_t i = 0; i < v.size(); ++i)
    v[i] = normal(random) * (i / static_cast<std::size_t>(columns) % 97 == 96 ? 1e-31f : 1.0f);
  return v;
}

std::uint64_t hash_of(const std::vector<float>& v, std::size_t count) {
  std::uint64_t h = 1469598103934665603u;
  for (std::size_t i = 0; i < count; ++i) h = (h ^ std::bit_cast<std::uint32_t>(v[i])) * 1099511628211u;
  return h;
}

class SameBits : public testing::TestWithParam<Precision> {};

TEST_P(SameBits, ForAnyThreadsCachesAndRows) {
  const Graph g = layer_and_gradients();
  const std::vector<float> x = numbers(kMostRows, kIn, 1), w = numbers(kIn, kOut, 2);
  const std::vector<float> slope = numbers(kMostRows, kOut, 3);
  std::map<std::string, std::uint64_t> first;
  int compared = 0;
  for (int threads = 1; threads <= 8; ++threads)
    for (const std::int64_t l2 : {1 << 20, 2 << 20}) {
      const Machine machine{.l1 = l2 / 32, .l2 = l2};
      const Program p = compile(g, generic() | cpu({.threads = threads, .precision = GetParam(), .machine = machine}));
      Context c(p);
      // includes counts that no microkernel's strip divides, and counts for which each worker packs its own rows
      for (const std::int64_t rows : {1, 2, 3, 4, 5, 7, 16, 31, 33, 100, 299, 513, 1001, 2048, 4999, 5000}) {
        const auto part = [&](const std::vector<float>& v, std::int64_t columns) {
          return std::vector<float>(v.begin(), v.begin() + rows * columns);
        };
        c.bind("rows", rows).set("x", part(x, kIn)).set("w", w).set("slope", part(slope, kOut)).run();
        for (const char* name : {"y", "dx", "dw"}) {
          const std::vector<float> out = c.get(name);
          const std::string key = str_cat(name, " of ", rows, " rows");
          const std::uint64_t h = hash_of(out, out.size());
          const auto [at, is_first] = first.emplace(key, h);
          compared += !is_first;
          ASSERT_EQ(at->second, h) << key << ", " << threads << " threads, " << l2 << " bytes";
        }
      }
    }
  EXPECT_EQ(compared, 15 * 16 * 3);
}

INSTANTIATE_TEST_SUITE_P(Precisions, SameBits, testing::Values(Precision::Highest, Precision::High, Precision::Medium));

}  // namespace
