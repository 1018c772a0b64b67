// With programmatic dependent launch every kernel of ours waits for the one before it, other kernels are launched in
// order, and results have the same bits.
#include "cuda_fixture.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"

using namespace lc;
using test::Fake;

namespace {

CudaOptions overlapping(bool on) {
  CudaOptions o = test::fake_options();
  o.overlap = on;
  return o;
}

// Loops, row reductions, products of several sizes, attention, a sort and a scatter.
Graph graph() {
  Graph g;
  const Tensor x = g.input("x", {2, 4, 40, 16}), table = g.input("table", {30, 16});
  const Tensor y = scaled_dot_product_attention(x, x * 0.5f, x + 1.0f);
  const Tensor rows = softmax(y.reshape({320, 16}), 1);
  const Tensor order = argsort(rows.slice(1, 0, 1).reshape({320}), 0);
  g.output("order", order);
  g.output("product", matmul(rows, g.input("w", {16, 24})));
  g.output("running", cumsum(rows, 0));
  g.output("added", index_add(table, 0, order.slice(0, 0, 20) % 30, rows.slice(0, 0, 20)));
  return g;
}

std::vector<float> run(const Graph& g, bool overlap) {
  const Program p = compile(g, generic() | cuda(overlapping(overlap)));
  Context c(p);
  std::vector<float> all;
  for (int k = 0; k < 3; ++k) {
    std::vector<float> x(2 * 4 * 40 * 16), table(30 * 16), w(16 * 24);
    const auto fill = [&](std::vector<float>& v) {
      for (std::size_t i = 0; i < v.size(); ++i)
        v[i] = static_cast<float>((i * 37 + static_cast<std::size_t>(k)) % 101) / 50 - 1;
    };
    fill(x), fill(table), fill(w);
    c.set("x", x).set("table", table).set("w", w).run();
    for (const char* name : {"order", "product", "running", "added"})
      for (const float v : c.get(name)) all.push_back(v);
  }
  return all;
}

}  // namespace

TEST(CudaOverlap, EveryKernelOfOursWaitsItself) {
  Fake driver;
  const Graph g = graph();
  long launches = driver.get("launches"), overlaps = driver.get("overlapping");
  const std::vector<float> apart = run(g, false);
  EXPECT_EQ(driver.get("overlapping"), overlaps);
  launches = driver.get("launches");
  EXPECT_EQ(run(g, true), apart);
  EXPECT_EQ(driver.get("overlapping") - overlaps, driver.get("launches") - launches) << "each of them";
  EXPECT_GT(driver.get("overlapping") - overlaps, 3 * 8);
}

TEST(CudaOverlap, AKernelThatDoesNotIsLaunchedAsEver) {
  Fake driver;
  const auto device = backends::cuda::open_device(overlapping(true));
  const auto code = device->compile(test::kText, test::kKernels);
  const auto x = device->allocate(400), y = device->allocate(400);
  test::put(*device, {x.get(), 0}, test::iota(100));
  const long before = driver.get("overlapping");
  const BufferSlice places[] = {{x.get(), 0}, {y.get(), 0}};
  const std::int64_t sizes[] = {100, 3};
  device->launch_kernel({.code = code.get(), .grid_size = 2, .block_size = 64, .buffers = places, .sizes = sizes});
  EXPECT_EQ(test::take<float>(*device, {y.get(), 0}, 100)[99], 297);
  EXPECT_EQ(driver.get("overlapping"), before);
}

TEST(CudaOverlap, IsOfNewDevicesAlone) {
  Fake driver;
  driver.set("compute_capability", 80);
  const long before = driver.get("overlapping");
  run(graph(), true);
  EXPECT_EQ(driver.get("overlapping"), before);
}

// CUDA graphs of older drivers do not support such launches.
TEST(CudaOverlap, NeedsADriverThatKnowsIt) {
  const test::SecondDriver second;
  Fake fake(second.path);
  fake.set("driver_version", 12020);
  CudaOptions o = overlapping(true);
  o.driver = second.path;
  std::string said;
  try {
    backends::cuda::open_device(o);
  } catch (const Error& e) {
    said = e.what();
  }
  EXPECT_NE(said.find("need a driver of version 12.3 or newer, and this one is of version 12.2"), std::string::npos)
      << said;
  o.overlap = false;
  EXPECT_NE(backends::cuda::open_device(o), nullptr);
}
