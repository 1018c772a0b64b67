// Column sums and maxima, rows kept in shared memory and long sums are right for any size, on every GPU device.
#include <cmath>
#include <limits>
#include <optional>
#include <regex>

#include "gpu_devices.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/backends/cpu/jit/llvm.h"
#include "lightcone/core/array_view.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"
#include "lightcone/verify/verify.h"

using namespace lc;

namespace {

class Columns : public test::OnGpu {};
LIGHTCONE_ON_GPUS(Columns);

}  // namespace

// A sum over rows and columns of values that are scaled by another sum of each row. Threads share the rows.
TEST_P(Columns, OfRowsThatAreNormed) {
  for (const int rows : {2, 3, 70}) {
    Graph g;
    const Tensor x = g.input("x", {rows, 16}), by = g.input("by", {1, 1});
    g.output("y", sum(x * (1.0 / sqrt(sum(x * x, 1, true) + 1.0)) * by));
    const VerifyReport r = verify(g, generic() | compiler());
    EXPECT_TRUE(r.ok()) << rows << ": " << r.str();
  }
}

TEST_P(Columns, AreSummed) {
  Graph g;
  std::map<std::string, std::vector<float>> inputs;
  int number = 0;
  for (const auto& [rows, columns] : std::vector<std::pair<int, int>>{{9, 33}, {257, 1}, {1000, 70}, {515, 300}})
    for (const DType t : {DType::F32, DType::BF16}) {
      const std::string name = str_cat("x", number++);
      const Tensor x = g.input(name, {rows, columns}, t);
      g.output(name + ".sum", sum(to(x, DType::F32), 0)), g.output(name + ".max", amax(x, 0));
      for (int k = 0; k < rows * columns; ++k) inputs[name].push_back(static_cast<float>(k * 7919 % 251) / 64 - 2);
    }
  const Program here = compile(g, generic() | cpu({.threads = 1})), there = compile(g, generic() | compiler());
  Context a(here), b(there);
  for (Context* c : {&a, &b}) {
    for (const auto& [name, values] : inputs) c->set(name, values);
    c->run();
  }
  for (const std::string& name : here.outputs()) {
    const auto want = a.get(name), got = b.get(name);
    ASSERT_EQ(want.size(), got.size());
    for (std::size_t k = 0; k < want.size(); ++k)
      ASSERT_NEAR(got[k], want[k], 1e-5 * (4 + std::abs(want[k]))) << name << " " << k;
  }
}

namespace {

// Returns the bytes of shared memory that a kernel's text declares.
std::size_t declared(const std::string& text) {
  static const std::map<std::string, std::size_t> sizes = {{"float", 4}, {"double", 8}, {"long", 8}, {"int", 4}};
  static const std::regex declaration("LC_SHARED\\((\\w+), \\w+, (\\d+)\\)");
  std::size_t all = 0;
  for (std::sregex_iterator i(text.begin(), text.end(), declaration), end; i != end; ++i)
    all += sizes.at((*i)[1]) * std::stoul((*i)[2]);
  return all;
}

Graph softmax_of(std::int64_t rows, std::int64_t columns, DType t) {
  Graph g;
  g.output("y", softmax(g.input("x", {rows, columns}, t), 1));
  return g;
}

}  // namespace

// CUDA compiles no text that declares more than 48 KB of shared memory, although a block may have 227 KB at launch.
// Regression: an A100 refused softmax of 1,537 columns.
TEST_P(Columns, KeptRowsAreDeclaredWithinTheLimit) {
  std::size_t largest = 0;
  const auto see = [&](DType t, std::initializer_list<std::int64_t> lengths) {
    for (const std::int64_t n : lengths) {
      const Graph made = transform(softmax_of(600, n, t), generic() | compiler()).graph;
      for (NodeId id = 0; id < made.size(); ++id)
        if (made[id].kernel) largest = std::max(largest, declared(made[id].kernel->source()));
    }
  };
  see(DType::F32, {1408, 1409, 1537, 1792, 2048, 11264, 11265, 12273, 20864});
  see(DType::BF16, {1600, 12288});
  if (device->limits().f64) see(DType::F64, {769, 1024, 6137});
  EXPECT_LE(largest, std::min<std::size_t>(48 << 10, device->limits().shared));
  EXPECT_GE(largest, std::size_t{8} << 10) << "rows are kept at all";
}

TEST_P(Columns, LongRowsAreRight) {
  for (const std::int64_t n : {1600, 12288, 20001}) {
    const VerifyReport r = verify(softmax_of(3, n, DType::F32), generic() | compiler(), {.trials = 1, .shrink = false});
    EXPECT_TRUE(r.ok()) << n << ": " << r.str();
  }
}

namespace {

// One way to compute a graph: the CPU's three (the interpreter may be slow), or a device.
struct Way {
  std::string name;
  std::function<Compiler()> compiler;
};
[[maybe_unused]] void PrintTo(const Way& w, std::ostream* out) { *out << w.name; }
std::vector<Way> every_way() {
  std::vector<Way> all{{"c", [] { return cpu({.threads = 2}); }},
                       {"interpreter", [] { return cpu({.threads = 2, .compiler = false}); }}};
  if (!backends::cpu::find_llvm().path.empty())
    all.push_back({"llvm", [] { return cpu({.threads = 2, .jit = {.compiler = "llvm"}}); }});
  for (const test::GpuUnderTest& d : test::gpus_under_test())
    all.push_back({d.name, [d] {
                     static auto& opened = *new std::map<std::string, std::shared_ptr<backends::gpu::GpuDevice>>;
                     if (!opened[d.name]) opened[d.name] = d.open();
                     return backends::gpu::compiler(opened[d.name]);
                   }});
  return all;
}

// Sums of many numbers. Their error must not grow with the count (docs/accuracy.md).
class LongSums : public testing::TestWithParam<Way> {
 protected:
  // relative to the sum of magnitudes: the error of 64 f32 numbers added one after the other
  static constexpr double kAllowed = 0x1p-18;
  std::map<std::string, std::vector<float>> inputs;
  Graph g;
  std::optional<Compiler> compiler;

  Tensor of(const std::string& name, const Shape& shape, const std::function<float(std::size_t)>& value) {
    const Tensor x = g.input(name, shape);
    std::vector<float>& to = inputs[name];
    to.resize(static_cast<std::size_t>(*product(shape).constant()));
    for (std::size_t k = 0; k < to.size(); ++k) to[k] = value(k);
    return x;
  }
  Tensor tenths(const std::string& name, const Shape& shape) {
    return of(name, shape, [](std::size_t) { return 0.1f; });
  }
  bool slow() const { return GetParam().name != "c" && GetParam().name != "llvm"; }
  // Expects each element of y to be `want`, with a relative error of at most `allowed`.
  void expect(const Tensor& y, double want, double allowed = kAllowed) {
    const std::string name = str_cat("y", wanted_.size());
    g.output(name, y);
    wanted_[name] = {want, allowed};
  }
  void SetUp() override {
    try {
      compiler = GetParam().compiler();
    } catch (const Error& e) {
      if (GetParam().name != "opencl") throw;  // only OpenCL may lack a driver; the simulators are always built
      GTEST_SKIP() << "SKIPPED: " << e.what();
    }
  }
  void run() {
    const Program p = compile(g, generic() | *compiler);
    Context c(p);
    for (const auto& [name, values] : inputs) c.set(name, values);
    c.run();
    for (const auto& [name, want] : wanted_)
      for (const float got : c.get(name))
        ASSERT_NEAR(got, want.first, want.second * std::abs(want.first)) << name << ", of " << want.first;
  }

 private:
  std::map<std::string, std::pair<double, double>> wanted_;
};
INSTANTIATE_TEST_SUITE_P(Ways, LongSums, testing::ValuesIn(every_way()),
                         [](const auto& way) { return way.param.name; });
const double kTenth = static_cast<double>(0.1f);

}  // namespace

// A million tenths: along rows, along columns, over axes that are not adjacent, as halves, and in operations composed
// of sums.
TEST_P(LongSums, OfAMillionTenths) {
  const std::int64_t n = 1'000'000;
  const Tensor x = tenths("x", {n});
  expect(sum(x), n * kTenth);
  expect(mean(x), kTenth);
  expect(sqrt(sum(square(x))), std::sqrt(static_cast<double>(n)) * kTenth);
  expect(sum(x.reshape({1000, 10, 100}), {0, 2}), 100'000 * kTenth);
  expect(sum(x.reshape({50, 20'000}).permute({1, 0}), {0, 1}), n * kTenth);
  expect(sum(x.reshape({n / 4, 4}), 0), n / 4 * kTenth);
  expect(sum(x.reshape({2, n / 2}), 1), n / 2 * kTenth);
  expect(logsumexp(x, {0}), std::log(static_cast<double>(n)) + kTenth);
  expect(sum(softmax(x.reshape({10, n / 10}), 1), 1), 1, 0x1p-16);
  expect(sum(to(x, DType::BF16)), n * static_cast<double>(0.10009765625), 0x1p-8);
  run();
}

TEST_P(LongSums, AlongTheFirstAxisOfThreeColumns) {
  const std::int64_t n = slow() ? 100'000 : 1'000'000;
  const Tensor x = of("x", {n, 3}, [](std::size_t k) { return k % 3 == 0 ? 0.1f : k % 3 == 1 ? 0.7f : 3.3f; });
  const Tensor m = mean(x, {0}), one = sum(x, {0});
  const double each[] = {kTenth, static_cast<double>(0.7f), static_cast<double>(3.3f)};
  for (int k = 0; k < 3; ++k) {
    expect(m.slice(0, k, k + 1), each[k]);
    expect(one.slice(0, k, k + 1), static_cast<double>(n) * each[k]);
  }
  run();
}

// Counts continue beyond 2^24, where a single f32 accumulator would stop growing.
TEST_P(LongSums, CountBeyondWhatOneAccumulatorHolds) {
  if (slow()) GTEST_SKIP() << "twenty million steps";
  const std::int64_t n = 20'000'000;
  const std::vector<std::byte> ones(static_cast<std::size_t>(n), std::byte{1});
  g.output("y", sum(to(g.input("one", {n, 1}, DType::Bool), DType::F32), 0));
  const Program p = compile(g, generic() | *compiler);
  Context c(p);
  c.set("one", ArrayView{DType::Bool, {n, 1}, ones}).run();
  EXPECT_EQ(c.get("y")[0], 2e7f);
}

// Sizes are bound at run time, from zero to many terms.
TEST_P(LongSums, OfAnyNumberOfTerms) {
  const Dim n = Dim::symbol("n", 0, 1 << 20);
  const Tensor x = g.input("x", {n, 2});
  g.output("columns", sum(x, {0})), g.output("rows", sum(prim::contiguous(x.permute({1, 0})), {1})),
      g.output("all", sum(x));
  const Program p = compile(g, generic() | *compiler);
  Context c(p);
  for (const std::int64_t size : {0, 1, 15, 63, 64, 65, 1023, 1024, 1025, 1040, 2050, 70'001}) {
    std::vector<float> in(static_cast<std::size_t>(2 * size));
    double want[2] = {};
    for (std::size_t k = 0; k < in.size(); ++k) in[k] = static_cast<float>(k * 7919 % 251) / 64, want[k % 2] += in[k];
    c.bind("n", size).set("x", in).run();
    for (const char* name : {"columns", "rows"})
      for (std::size_t k = 0; k < 2; ++k)
        ASSERT_NEAR(c.get(name)[k], want[k], kAllowed * std::abs(want[k])) << name << " of " << size;
    ASSERT_NEAR(c.get("all")[0], want[0] + want[1], kAllowed * (want[0] + want[1])) << size;
  }
}

// Infinities and NaN propagate through blocks as through any sum.
TEST_P(LongSums, OfInfinitiesAreInfinite) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const std::int64_t n : {100, 5'000}) {
    const std::string by = std::to_string(n);
    const Tensor x = of("inf" + by, {n}, [&](std::size_t k) { return k == 70 ? inf : 1.0f; });
    const Tensor y = of("nan" + by, {n, 2}, [&](std::size_t k) { return k == 71 ? inf : k == 173 ? -inf : 1.0f; });
    g.output("a" + by, sum(x)), g.output("b" + by, sum(y, 0)), g.output("c" + by, sum(y * y, 0));
  }
  const Program p = compile(g, generic() | *compiler);
  Context c(p);
  for (const auto& [name, values] : inputs) c.set(name, values);
  c.run();
  for (const int n : {100, 5'000}) {
    const std::string by = std::to_string(n);
    EXPECT_EQ(c.get("a" + by)[0], inf) << n;
    EXPECT_EQ(c.get("b" + by)[0], n) << n;
    EXPECT_TRUE(std::isnan(c.get("b" + by)[1])) << n;
    EXPECT_EQ(c.get("c" + by)[1], inf) << n;
  }
}

// Products over a long k, for every number of rows that has a kernel of its own.
TEST_P(LongSums, OfProducts) {
  const std::int64_t k = slow() ? 40'000 : 1'000'000;
  const double want = static_cast<double>(k) * kTenth * static_cast<double>(0.7f), loose = 0x1p-16;
  const auto other = [&](const std::string& name, const Shape& s) {
    return of(name, s, [](std::size_t) { return 0.7f; });
  };
  const Tensor a = tenths("a", {k}), b = other("b", {k}), w = other("w", {3, k}), wt = other("wt", {k, 3});
  expect(sum(a * b), want, loose);
  expect(matmul(a.reshape({1, k}), b.reshape({k, 1})), want, loose);
  for (const int rows : {1, 2, 4, 6}) {
    const Tensor x = tenths(str_cat("x", rows), {rows, k});
    expect(matmul(x, w.permute({1, 0})), want, loose);
    expect(matmul(x, wt), want, loose);
    if (rows < 4)
      expect(matmul(x, to(to(w, DType::BF16), DType::F32).permute({1, 0})),
             static_cast<double>(k) * kTenth * 0.69921875, loose);
  }
  run();
}

// Products by tensor cores, with and without warpgroups. Products of halves are exact.
TEST_P(LongSums, OfProductsOfTensorCores) {
  if (GetParam().name != "cuda") GTEST_SKIP() << "CUDA's";
  const std::int64_t k = 17'472;
  for (const int side : {64, 128}) {
    const Tensor x = g.input(str_cat("x", side), {side, k}, DType::BF16);
    const Tensor w = g.input(str_cat("w", side), {side, k}, DType::BF16);
    for (const char* name : {"x", "w"})
      inputs[str_cat(name, side)].assign(static_cast<std::size_t>(side * k),
                                         name[0] == 'x' ? 0.10009765625f : 0.69921875f);
    expect(matmul(to(x, DType::F32), to(w, DType::F32).permute({1, 0})), k * 0.10009765625 * 0.69921875, 0x1p-16);
  }
  run();
}

// Attention to many equal keys is the mean of their values.
TEST_P(LongSums, OfAttention) {
  const std::int64_t keys = slow() ? 20'000 : 300'000;
  const Tensor k = tenths("k", {1, 1, keys, 4}), v = tenths("v", {1, 1, keys, 4});
  for (const int queries : {1, 20})
    expect(scaled_dot_product_attention(tenths(str_cat("q", queries), {1, 1, queries, 4}), k, v), kTenth, 0x1p-14);
  run();
}

// Block sizes depend only on the sizes of the sum: C and LLVM add in the same order for any number of threads, and so
// does the interpreter if the reduced axis is not vectorized.
TEST(LongSumsOnTheCpu, HaveTheSameBitsEveryWay) {
  Graph g;
  const Dim n = Dim::symbol("n", 1, 100'000);
  const Tensor x = g.input("x", {n, 20});
  g.output("columns", sum(x, {0})), g.output("rows", sum(prim::contiguous(x.permute({1, 0})), {1}));
  g.output("all", sum(x)), g.output("norm", x - mean(x, {0}, true)), g.output("soft", softmax(x, 0));
  g.output("two", sum(x.reshape({n, 4, 5}), {0, 2}));
  std::vector<CpuOptions> ways{{.threads = 1}, {.threads = 2}, {.threads = 5}};
  if (!backends::cpu::find_llvm().path.empty())
    for (const int threads : {1, 3}) ways.push_back({.threads = threads, .jit = {.compiler = "llvm"}});
  ways.push_back({.threads = 2, .compiler = false});
  for (const std::int64_t rows : {64, 65, 3'000, 3'333}) {
    std::vector<float> in(static_cast<std::size_t>(rows * 20));
    for (std::size_t k = 0; k < in.size(); ++k) in[k] = static_cast<float>(k * 7919 % 1009) / 1009 - 0.4f;
    std::map<std::string, std::vector<float>> first;
    for (const CpuOptions& way : ways) {
      const Program p = compile(g, generic() | cpu(way));
      Context c(p);
      c.bind("n", rows).set("x", in).run();
      for (const std::string& name : p.outputs()) {
        if (!way.compiler && name != "columns" && name != "norm") continue;
        const std::vector<float> y = c.get(name);
        const auto [at, fresh] = first.try_emplace(name, y);
        EXPECT_TRUE(at->second == y) << name << " of " << rows << ", way " << &way - ways.data();
      }
    }
  }
}
