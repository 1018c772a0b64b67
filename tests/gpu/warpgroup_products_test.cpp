// Large products by the warpgroup instructions of compute capability 9.0 agree with the f64 reference, however late
// their copies arrive.
//
// They run on the simulated CUDA, or on a GPU where LIGHTCONE_CUDA_DRIVER names its driver.
#include <gtest/gtest.h>

#include <cstring>

#include "gpu_devices.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"
#include "lightcone/verify/random_graph.h"
#include "lightcone/verify/verify.h"

using namespace lc;

namespace {

class WarpgroupProducts : public testing::Test {
 protected:
  void SetUp() override {
    const char* one = std::getenv("LIGHTCONE_GPU");
    if (one && *one && std::string(one) != "cuda") GTEST_SKIP() << "SKIPPED: LIGHTCONE_GPU wants another device";
    static const auto opened = [] {
      CudaOptions o = test::cuda_under_test();
      o.warpgroups = true;
      return backends::cuda::open_device(o);
    }();
    device = opened;
    if (!device->limits().warpgroups) GTEST_SKIP() << "SKIPPED: " << device->limits().name << " has no such products";
  }
  Compiler compiler() const { return generic() | backends::gpu::compiler(device, {.precision = precision}); }

  // Returns the number of products of the graph with these instructions in their text.
  int by_warpgroups(const Graph& g, const std::string& instruction = "lc_wgmma_") {
    const Graph made = transform(g, compiler()).graph;
    int n = 0;
    for (NodeId id = 0; id < made.size(); ++id)
      n += made[id].kernel && made[id].kernel->source().find("> LC void " + instruction) != std::string::npos;
    return n;
  }
  // Verifies the graph on random and on extreme values; the bits must not depend on the order of threads.
  void agrees(const std::string& what, const Graph& g, const Bindings& sizes = {}) {
    SCOPED_TRACE(what);
    const VerifyReport r = verify(g, compiler(), {.trials = 1, .sizes = sizes, .shrink = false, .products = products});
    EXPECT_TRUE(r.ok()) << r.str();
    const auto inputs = fitting_inputs(g, sizes, 1, false);
    const Graph made = transform(g, compiler()).graph;
    std::vector<Results> all;
    for (const long order : {0, 7}) {
      if (!test::set_fake_cuda("order", order) && order) break;
      all.push_back(run_values(made, inputs, sizes));
    }
    test::set_fake_cuda("order", 0);
    for (const Results& other : all)
      for (const auto& [name, v] : all.front().outputs) {
        const Value& w = other.outputs.at(name);
        std::vector<std::byte> x(v.size() * size_of(v.dtype)), y(x.size());
        write_value(v, x.data()), write_value(w, y.data());
        EXPECT_TRUE(x == y) << name << ": another order of threads gives other bits";
      }
  }
  std::shared_ptr<backends::gpu::GpuDevice> device;
  Precision precision = Precision::Highest;
  double products = 0;  // VerifyOptions::products: the relative rounding allowed in products
};

Tensor turned(const Tensor& t) { return t.transpose(1, 2); }

// [batch, m, k] x [batch, k, n] with each operand in both layouts.
Graph products_of(int batch, int m, int n, int k, DType t) {
  Graph g;
  const Tensor x[] = {g.input("x", {batch, m, k}, t), turned(g.input("x turned", {batch, k, m}, t))};
  const Tensor w[] = {g.input("w", {batch, k, n}, t), turned(g.input("w turned", {batch, n, k}, t))};
  for (int a : {0, 1})
    for (int b : {0, 1}) g.output(str_cat("y", a, b), matmul(x[a], w[b]));
  return g;
}

}  // namespace

// Tiles of both widths, whole and cut off on every side; sums shorter than a step, as long as the ring, and longer.
TEST_F(WarpgroupProducts, OfHalvesInEveryOrder) {
  struct Sizes {
    int batch, m, n, k;
  };
  for (const auto [batch, m, n, k] : {Sizes{128, 16, 24, 40}, Sizes{64, 136, 16, 72}, Sizes{64, 16, 264, 8}}) {
    const Graph g = products_of(batch, m, n, k, DType::BF16);
    EXPECT_EQ(by_warpgroups(g, "lc_wgmma_bf16_256"), 4);
    agrees(str_cat("[", batch, ", ", m, ", ", k, "] x [", k, ", ", n, "]"), g);
  }
  const Graph f16 = products_of(128, 24, 16, 24, DType::F16);
  EXPECT_EQ(by_warpgroups(f16, "lc_wgmma_f16_256"), 4);
  agrees("f16", f16);
  const Graph narrow = products_of(64, 16, 136, 64, DType::BF16);
  EXPECT_EQ(by_warpgroups(narrow, "lc_wgmma_bf16_128"), 4);
  agrees("tiles of 128 columns", narrow);
  Graph odd;  // stores are not in pairs
  odd.output("y", matmul(odd.input("x", {128, 16, 40}, DType::BF16),
                         odd.input("w", {128, 27, 40}, DType::BF16).transpose(1, 2)));
  EXPECT_EQ(by_warpgroups(odd), 1);
  agrees("an odd number of columns", odd);
  Graph deep;  // more than twice the ring
  deep.output("y", matmul(deep.input("x", {128, 16, 64 * 9 + 8}, DType::F16),
                          deep.input("w", {128, 64 * 9 + 8, 8}, DType::F16)));
  EXPECT_EQ(by_warpgroups(deep, "lc_wgmma_f16_256"), 1);
  agrees("a long sum", deep);
}

TEST_F(WarpgroupProducts, OfOneLargeMatrixAndWhatFollows) {
  Graph g;
  const Tensor x = g.input("x", {16300, 40}, DType::BF16), w = g.input("w", {24, 40}, DType::BF16);
  g.output("y", gelu(linear(x, w, g.input("b", {24}, DType::BF16))));
  EXPECT_EQ(by_warpgroups(g, "lc_wgmma_bf16_256"), 1);
  agrees("gelu(linear(x))", g);
}

TEST_F(WarpgroupProducts, OfBytesAreExact) {
  Graph g;
  const auto widened = [&](const char* name, Shape s) {
    return to(g.input(name, std::move(s), DType::I8), DType::I32);
  };
  g.output("y", matmul(widened("x", {128, 16, 16}), turned(widened("w", {128, 24, 16}))));
  g.output("z", matmul(widened("u", {64, 16, 144}), turned(widened("v", {64, 136, 144}))));
  EXPECT_EQ(by_warpgroups(g, "lc_wgmma_s8_256"), 1);
  EXPECT_EQ(by_warpgroups(g, "lc_wgmma_s8_128"), 1);
  agrees("bytes", g);
}

// Used only below f32's precision, because the device adds these products with fewer bits.
TEST_F(WarpgroupProducts, OfFloatsOfEightBits) {
  Graph g;
  const auto widened = [&](const char* name, Shape s, DType t) {
    return to(g.input(name, std::move(s), t), DType::F32);
  };
  g.output("y",
           matmul(widened("x", {128, 16, 48}, DType::F8E4M3FN), turned(widened("w", {128, 24, 48}, DType::F8E5M2))));
  g.output("z",
           matmul(widened("u", {64, 16, 144}, DType::F8E4M3FN), turned(widened("v", {64, 136, 144}, DType::F8E4M3FN))));
  EXPECT_EQ(by_warpgroups(g), 0) << "as exact as halves, and as those by a warp";
  precision = Precision::Medium;
  products = 0x1p-12;  // an H200 keeps some 13 bits of each product that it adds: 2^-17.4 of a sum of 48 was seen
  EXPECT_EQ(by_warpgroups(g, "lc_wgmma_e4m3_e5m2_256"), 1);
  EXPECT_EQ(by_warpgroups(g, "lc_wgmma_e4m3_e4m3_128"), 1);
  agrees("f8", g);
}

// Heads interleaved in rows, a matrix shared by all, and an operand that begins in the middle of another.
TEST_F(WarpgroupProducts, OfViews) {
  Graph g;
  const Tensor q = g.input("q", {4, 72, 32, 24}, DType::F16), k = g.input("k", {4, 80, 32, 24}, DType::F16);
  g.output("scores", matmul(q.permute({0, 2, 1, 3}), k.permute({0, 2, 3, 1})));
  const Tensor many = g.input("many", {130, 40, 48}, DType::F16), one = g.input("one", {48, 64}, DType::F16);
  g.output("shared", matmul(many, one.reshape({1, 48, 64}).expand({130, 48, 64}).slice(2, 16, 56)));
  g.output("part", matmul(many.slice(1, 8, 40), g.input("each", {130, 48, 16}, DType::F16)));
  EXPECT_GE(by_warpgroups(g), 2);
  agrees("views", g);
}

// Operands that no tensor map describes use other kernels: unaligned rows, f32 operands.
TEST_F(WarpgroupProducts, LeaveTheRestToOthers) {
  const Graph odd = products_of(128, 20, 27, 33, DType::BF16);
  EXPECT_EQ(by_warpgroups(odd), 0);
  agrees("odd rows", odd);
  const Graph f32 = products_of(128, 16, 16, 16, DType::F32);
  EXPECT_EQ(by_warpgroups(f32), 0);
}

// The tile size is chosen by the sizes of each run; a captured graph gets new tensor maps.
TEST_F(WarpgroupProducts, OfSymbolicSizesRunAgain) {
  Graph g;
  const Dim s = Dim::symbol("s", 1, 40000);
  const Tensor x = g.input("x", {s, 40}, DType::BF16), w = g.input("w", {48, 40}, DType::BF16);
  g.output("y", linear(x, w));
  EXPECT_EQ(by_warpgroups(g), 1);
  for (const std::int64_t n : {1, 100, 16384, 20001}) agrees(str_cat(n, " rows"), g, {{"s", n}});

  Graph wide;  // tiles of 64 x 64, 128 x 128 and 128 x 256: the largest of which there are enough
  wide.output("y", linear(wide.input("x", {s, 16}, DType::BF16), wide.input("w", {200, 16}, DType::BF16)));
  for (const std::int64_t n : {100, 8200, 16400}) agrees(str_cat(n, " rows of 200"), wide, {{"s", n}});

  const Program p = compile(g, compiler());
  Context c(p);
  c.set("w", std::vector<float>(48 * 40, 0.5f));
  for (const std::int64_t n : {16384, 16384, 16384, 17000, 16384, 33000}) {
    std::vector<float> values(static_cast<std::size_t>(n * 40));
    const auto of_row = [&](std::int64_t row) { return static_cast<float>((row * 7 + n) % 64); };
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = of_row(static_cast<std::int64_t>(i / 40));
    c.bind("s", n).set("x", values).run();
    const std::vector<float> y = c.get("y");
    for (std::int64_t row = 0; row < n; row += 97)
      EXPECT_NEAR(y[static_cast<std::size_t>(row * 48 + row % 48)], 20 * of_row(row), 0.1 * of_row(row))
          << n << " rows, row " << row;
  }
}
