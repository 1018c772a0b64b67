// Running sums, products and maxima are right on every GPU device, along rows of any length and along columns.
#include <algorithm>
#include <cmath>
#include <limits>

#include "gpu_devices.h"
#include "lightcone/core/array_view.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"

using namespace lc;

namespace {

using i64 = std::int64_t;

class RunningSums : public test::OnGpu {
 protected:
  static int kernels(const Program& p, std::string_view name) {
    int found = 0;
    for (NodeId id = 0; id < p.graph().size(); ++id)
      found += p.graph()[id].op == Op::Kernel && p.graph()[id].name == name;
    return found;
  }
};
LIGHTCONE_ON_GPUS(RunningSums);

ArrayView view(const std::vector<i64>& v, std::vector<i64> shape) {
  return {DType::I64, std::move(shape), std::as_bytes(std::span(v))};
}

}  // namespace

// Lengths near the size of a tile and of a chunk.
TEST_P(RunningSums, OfWholeNumbersAreExact) {
  Graph g;
  const Dim n = Dim::symbol("n", 0, 1'000'000);
  const Tensor x = g.input("x", {2, n}, DType::I64);
  g.output("sum", cumsum(x, 1)), g.output("product", cumprod(x, 1)), g.output("backwards", cumsum(x.flip(1), 1));
  const Extreme largest = cummax(x, 1);
  g.output("max", largest.values), g.output("at", largest.indices);
  const Program p = compile(g, generic() | compiler());
  EXPECT_EQ(kernels(p, "prefix sum"), 5);  // the positions of the maxima are running maxima, too
  Context run(p);
  for (const i64 length : {0, 1, 2, 5, 255, 1023, 1024, 1025, 4095, 4096, 4097, 10'000, 10'000}) {
    std::vector<i64> in(static_cast<std::size_t>(2 * length)), sum(in.size()), product(in.size()), back(in.size()),
        max(in.size()), place(in.size());
    for (std::size_t k = 0; k < in.size(); ++k)
      in[k] = static_cast<i64>(k * 7919 % 251) * (k % 2 ? -1 : 1) + (k % 97 == 3 ? i64{1} << 40 : 0);
    for (i64 row = 0; row < 2; ++row) {
      std::uint64_t s = 0, m = 1, b = 0;
      i64 most = std::numeric_limits<i64>::min(), last = 0;
      for (i64 k = 0; k < length; ++k) {
        const auto at = static_cast<std::size_t>(row * length + k),
                   from_end = static_cast<std::size_t>(row * length + length - 1 - k);
        s += static_cast<std::uint64_t>(in[at]), m *= static_cast<std::uint64_t>(in[at]);
        b += static_cast<std::uint64_t>(in[from_end]), last = in[at] >= most ? k : last, most = std::max(most, in[at]);
        place[at] = last;
        sum[at] = static_cast<i64>(s), product[at] = static_cast<i64>(m), back[at] = static_cast<i64>(b),
        max[at] = most;
      }
    }
    run.bind("n", length).set("x", view(in, {2, length})).run();
    EXPECT_EQ(run.get_i64("sum"), sum) << length;
    EXPECT_EQ(run.get_i64("product"), product) << length;
    EXPECT_EQ(run.get_i64("backwards"), back) << length;
    EXPECT_EQ(run.get_i64("max"), max) << length;
    EXPECT_EQ(run.get_i64("at"), place) << length;
  }
}

// Includes NaN, infinities and signed zeros; rows next to a row with NaN are unaffected.
TEST_P(RunningSums, OfF32) {
  constexpr i64 kLength = 9001;
  constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  Graph g;
  const Tensor x = g.input("x", {3, kLength, 1});
  g.output("sum", cumsum(x, 1)), g.output("max", cummax(x, 1).values);
  const Program p = compile(g, generic() | compiler());
  EXPECT_EQ(kernels(p, "prefix sum"), 2);
  std::vector<float> in(3 * kLength);
  for (std::size_t k = 0; k < in.size(); ++k) in[k] = static_cast<float>(k * 7919 % 2003) / 512 - 2;
  in[0] = -0.0f, in[1] = -0.0f;
  in[kLength + 5000] = inf, in[kLength + 8000] = -inf;
  in[2 * kLength + 4096] = nan;
  Context run(p);
  run.set("x", in).run();
  const auto sum = run.get("sum"), max = run.get("max");
  for (i64 row = 0; row < 3; ++row) {
    double s = 0, size = 0;
    float most = -inf;
    for (i64 k = 0; k < kLength; ++k) {
      const auto at = static_cast<std::size_t>(row * kLength + k);
      s += in[at], size += std::fabs(in[at]);
      most = std::isnan(in[at]) || std::isnan(most) ? nan : std::max(most, in[at]);
      if (std::isfinite(s)) ASSERT_NEAR(sum[at], s, 2e-6 * size) << at;
      else ASSERT_TRUE(std::isnan(s) ? std::isnan(sum[at]) : sum[at] == static_cast<float>(s)) << at;
      ASSERT_TRUE(max[at] == most || (std::isnan(most) && std::isnan(max[at]))) << at;
    }
  }
}

// Similar graphs that are not prefix sums: another first element, a missing step, columns, short rows.
TEST_P(RunningSums, AreNotSeenWhereThereAreNone) {
  Graph g;
  const Tensor x = g.input("x", {300, 300});
  const auto moved = [&](const Tensor& t, i64 step, double outside) {
    const Tensor inside = g.index(t.shape(), less(Dim(step) - 1, Dim::index(1, Dim(300))), DType::Bool);
    return where(inside, t.pad(1, step, 0).slice(1, 0, 300), full_like(t, outside));
  };
  Tensor other = x, few = x;
  for (i64 step = 1; step < 300; step *= 2) other = other + moved(other, step, 0.5);
  for (i64 step = 1; step < 256; step *= 2) few = few + moved(few, step, 0);
  g.output("other", other), g.output("few", few), g.output("columns", cumsum(x, 0));
  g.output("short", cumsum(x.slice(1, 0, 100), 1));
  const Program p = compile(g, generic() | compiler());
  EXPECT_EQ(kernels(p, "prefix sum"), 0);
  Context run(p);
  run.set("x", std::vector<float>(90'000, 1)).run();
  EXPECT_EQ(run.get("few").back(), 256);
  EXPECT_EQ(run.get("columns").back(), 300);
  EXPECT_EQ(run.get("short").back(), 100);
  EXPECT_EQ(run.get("other")[0], 5.5);  // nine steps that add a half each
}
