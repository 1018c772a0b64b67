// Every call of a GPU driver fails once while a program is compiled, loaded, run and read. Each failure gives an Error
// or the right result, and nothing leaks.
#include "../cuda/cuda_fixture.h"
#include "gpu_devices.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"

using namespace lc;

namespace {

// A state update, a parameter with a value computed at load time, a product, a softmax, and a symbolic size.
Graph graph() {
  Graph g;
  const Dim n = Dim::symbol("n", 1, 512);
  const Tensor x = g.input("x", {n, 8}), total = g.input("total", {4});
  const Tensor w = g.parameter("w", {8, 4}, DType::F32);
  const Tensor y = softmax(matmul(x, exp(w)), 1);
  g.output("y", y);
  g.assign(total, total + sum(y, {0}));
  return g;
}

std::vector<float> numbers(std::size_t n) {
  std::vector<float> v(n);
  for (std::size_t k = 0; k < n; ++k) v[k] = static_cast<float>(k % 11) / 7 - 0.5f;
  return v;
}

struct Given {
  std::vector<float> y, total;
  friend bool operator==(const Given&, const Given&) = default;
};

Given run(const Graph& g, const Compiler& c) {
  Program p = compile(g, generic() | c);
  const auto w = std::make_shared<std::vector<float>>(numbers(32));
  p.load("w", w->data(), 128, w);
  Context context(p);
  Given r;
  for (const std::int64_t n : {3, 3, 3, 70, 3}) {
    context.bind("n", n).set("x", numbers(static_cast<std::size_t>(n) * 8)).run();
    const auto y = context.get("y");
    r.y.insert(r.y.end(), y.begin(), y.end());
  }
  const auto total = context.get("total");
  r.total.assign(total.begin(), total.end());
  return r;
}

}  // namespace

TEST(GpuFaults, EveryCallOfTheDriverInTurn) {
  test::Fake driver;
  const TempDir cache;  // caches compiled kernels
  const Graph g = graph();
  const auto compiler = [&] { return cuda(test::fake_options(cache / "")); };
  const Given want = run(g, compiler());
  const long before = driver.get("calls"), live = driver.live();
  EXPECT_EQ(run(g, compiler()), want);
  const long calls = driver.get("calls") - before;
  EXPECT_GT(calls, 60);
  EXPECT_EQ(driver.live(), live);
  int errors = 0, tried = 0;
  for (const int code : {1, 2, 700})
    for (long call = 0; call < calls; ++call, ++tried) {
      driver.fail(call + 1, code);
      try {
        EXPECT_EQ(run(g, compiler()), want) << "call " << call << " with " << code << " gave another result";
      } catch (const Error& e) {
        ++errors;
        EXPECT_FALSE(std::string(e.what()).empty());
      }
      driver.fail(0, 0);
      ASSERT_EQ(driver.live(), live) << "after call " << call << " failed with " << code;
      if (call % 8 == 0) {
        ASSERT_EQ(run(g, compiler()), want) << "after call " << call << " failed with " << code;
      }
    }
  std::printf("%d of %d failing calls gave an Error\n", errors, tried);
  EXPECT_GT(errors, tried / 2);
  EXPECT_EQ(run(g, compiler()), want);
}

// The same for a warpgroup product, with launches that take tensor maps encoded by the driver.
TEST(GpuFaults, EveryCallOfAWarpgroupsProductInTurn) {
  test::Fake driver;
  const TempDir cache;
  CudaOptions options = test::fake_options(cache / "");
  options.warpgroups = true;
  Graph g;
  const Dim n = Dim::symbol("n", 16384, 16500);
  g.output("y", matmul(g.input("x", {n, 8}, DType::BF16), g.input("w", {8, 8}, DType::BF16)));
  const auto run = [&] {
    const Program p = compile(g, generic() | cuda(options));
    Context c(p);
    c.set("w", numbers(64));
    std::vector<float> all;
    for (const std::int64_t rows : {16384, 16384, 16400}) {
      c.bind("n", rows).set("x", numbers(static_cast<std::size_t>(rows) * 8)).run();
      const std::vector<float> y = c.get("y");
      all.insert(all.end(), y.begin(), y.end());
    }
    return all;
  };
  const std::vector<float> want = run();
  const long before = driver.get("calls"), live = driver.live();
  EXPECT_EQ(run(), want);
  const long calls = driver.get("calls") - before;
  int errors = 0;
  for (long call = 0; call < calls; ++call) {
    driver.fail(call + 1, 1);
    try {
      EXPECT_EQ(run(), want) << "call " << call << " gave another result";
    } catch (const Error&) {
      ++errors;
    }
    driver.fail(0, 0);
    ASSERT_EQ(driver.live(), live) << "after call " << call << " failed";
  }
  EXPECT_GT(errors, calls / 2);
  EXPECT_EQ(run(), want);
}

// An Error for insufficient memory states how much was needed; a smaller run succeeds afterwards.
TEST(GpuFaults, OutOfMemory) {
  test::Fake driver;
  const auto device = backends::cuda::open_device(test::cuda_under_test());
  Graph g;
  const Dim n = Dim::symbol("n", 1, 1 << 24);
  const Tensor x = g.input("x", {n, 8});
  g.output("y", cumsum(exp(x), 0));
  const Program p = compile(g, generic() | backends::gpu::compiler(device));
  Context c(p);
  driver.set("memory", 8 << 20);
  c.bind("n", 1 << 20);
  try {
    c.set("x", numbers(std::size_t{8} << 20)).run();
    ADD_FAILURE() << "32 MB fit into 8";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("memory"), std::string::npos) << e.what();
  }
  c.bind("n", 1000).set("x", numbers(8000)).run();
  EXPECT_EQ(c.get("y").size(), 8000u);
}
