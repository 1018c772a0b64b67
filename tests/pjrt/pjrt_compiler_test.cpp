// pjrt() compiles and runs graphs, training steps and states as cpu() and the f64 reference do, and copies no more than
// it must.
#include <dlfcn.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <random>
#include <thread>

#include "lightcone/autograd/autograd.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/backends/pjrt/device.h"
#include "lightcone/backends/pjrt/pjrt.h"
#include "lightcone/ops/ops.h"
#include "lightcone/optim/optim.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"
#include "lightcone/verify/random_graph.h"
#include "lightcone/verify/verify.h"
#include "paths.h"
#include "plugins.h"

using namespace lc;
using test::refusal;

namespace {

class Pjrt : public ::testing::TestWithParam<std::string> {
 protected:
  Compiler there() const { return generic() | pjrt({.plugin = GetParam()}); }
  static Compiler here() { return generic() | cpu({.threads = 1}); }
};
INSTANTIATE_TEST_SUITE_P(Plugins, Pjrt, ::testing::ValuesIn(test::plugin_paths()), test::name_of);

std::vector<float> ramp(std::size_t n, float from) {
  std::vector<float> v(n);
  for (std::size_t k = 0; k < n; ++k) v[k] = from + static_cast<float>(k % 13) / 8;
  return v;
}

void expect_same(const Context& a, const Context& b, const std::vector<const char*>& names) {
  for (const char* name : names) {
    const auto x = a.get(name), y = b.get(name);
    ASSERT_EQ(x.size(), y.size()) << name;
    for (std::size_t k = 0; k < x.size(); ++k) ASSERT_NEAR(x[k], y[k], 1e-4 * (1 + std::abs(x[k]))) << name << " " << k;
  }
}

// A network of two layers, its loss and a step of AdamW.
struct Training {
  Graph g;
  std::vector<std::pair<std::string, std::vector<float>>> weights;
  Training() {
    const Tensor x = g.input("x", {8, 5}), target = g.input("target", {8, 3});
    const auto weight = [&](const char* name, Shape shape, std::size_t n) {
      weights.emplace_back(name, ramp(n, -0.7f));
      return g.input(name, std::move(shape));
    };
    const Tensor w = weight("w", {5, 16}, 80), b = weight("b", {16}, 16), v = weight("v", {16, 3}, 48);
    const Tensor y = matmul(tanh(matmul(x, w) + b), v), d = y - target;
    const Tensor loss = mean(d * d);
    const std::vector<Tensor> slopes = gradients(loss, {w, b, v});
    optim::step(optim::AdamW{.lr = 0.05f}, {{w, slopes[0]}, {b, slopes[1]}, {v, slopes[2]}});
    g.output("loss", loss);
  }
  void launch_kernel(Context& c) const {
    for (const auto& [name, value] : weights) c.set(name, value);
  }
  void step(Context& c, int k) const {
    c.set("x", ramp(40, static_cast<float>(k % 3) - 1)).set("target", ramp(24, 0.1f * static_cast<float>(k % 3))).run();
  }
};

// ---- a plugin that counts what is asked of it -----------------------------------------------------

using backends::pjrt::api::Function;
struct Counts {
  std::atomic<int> from_host{0}, to_host{0}, compiled{0}, runs{0}, arguments{0}, not_donated{0};
} counts;
std::atomic<int> fail_runs{0};
const backends::pjrt::api::Api* real_table = nullptr;

template <class Args>
backends::pjrt::api::Error* real(Args* args) {
  return reinterpret_cast<backends::pjrt::api::Error* (*)(Args*)>(
      real_table->functions[static_cast<int>(Args::function)])(args);
}
template <class Args, std::atomic<int> Counts::*Which>
void count(backends::pjrt::api::Api& table) {
  table.functions[static_cast<int>(Args::function)] = reinterpret_cast<backends::pjrt::api::AnyFunction>(
      static_cast<backends::pjrt::api::Error* (*)(Args*)>([](Args* args) { return ++(counts.*Which), real(args); }));
}
backends::pjrt::api::Error* count_run(backends::pjrt::api::LoadedExecutableExecute* args) {
  ++counts.runs;
  counts.arguments += static_cast<int>(args->count);
  counts.not_donated += static_cast<int>(args->options->not_donated_count);
  if (fail_runs > 0) args->devices = 7, --fail_runs;
  return real(args);
}
std::shared_ptr<const backends::pjrt::Client> counting_client() {
  static const std::shared_ptr<const backends::pjrt::Plugin> plugin = [] {
    void* const library = ::dlopen(paths::kPjrtPlugin, RTLD_NOW | RTLD_LOCAL);
    real_table = reinterpret_cast<const backends::pjrt::api::Api* (*)()>(::dlsym(library, "GetPjrtApi"))();
    static backends::pjrt::api::Api table = *real_table;
    count<backends::pjrt::api::ClientBufferFromHostBuffer, &Counts::from_host>(table);
    count<backends::pjrt::api::BufferToHostBuffer, &Counts::to_host>(table);
    count<backends::pjrt::api::ClientCompile, &Counts::compiled>(table);
    table.functions[static_cast<int>(Function::LoadedExecutableExecute)] =
        reinterpret_cast<backends::pjrt::api::AnyFunction>(&count_run);
    return backends::pjrt::Plugin::of(&table, "counting");
  }();
  return backends::pjrt::Client::create(plugin);
}
void forget() {
  counts.from_host = counts.to_host = counts.compiled = counts.runs = counts.arguments = counts.not_donated = 0;
}

}  // namespace

TEST_P(Pjrt, RandomGraphsAgreeWithTheReference) {
  const Compiler compiler = there();
  int failures = 0, compiled = 0, refused = 0;
  VerifyReport::Checked seen;
  for (std::uint64_t i = 7000000; i < 7000060 && failures < 5; ++i) {
    const Graph g = random_graph(i, {.nodes = 4 + static_cast<int>(i % 10), .elements = 200});
    const Bindings env = random_bindings(g, i);
    const auto inputs = random_inputs(g, env, i, i % 3 == 0);
    std::optional<Difference> d;
    try {
      const Compiled done = transform(g, compiler);
      EXPECT_EQ(fired(done.log, "program"), 1);
      d = compare(interpret(g, inputs, env, Rounding::Wide, true), run_values(done.graph, inputs, env), 4, &seen);
      ++compiled;
    } catch (const Error& e) {
      const bool known = std::string_view(e.what()).find("StableHLO") != std::string_view::npos;
      refused += known;
      if (!known) d.emplace().problem = e.what();
    }
    if (!d) continue;
    ++failures;
    ADD_FAILURE() << "graph " << i << ": " << d->str() << "\n" << g.str();
  }
  EXPECT_GT(compiled, 10 * refused);
  EXPECT_GT(seen.elements, 10 * seen.undecided);
}

TEST_P(Pjrt, ATrainingStep) {
  const Training t;
  const Program host = compile(t.g, here()), device = compile(t.g, there());
  EXPECT_EQ(device.kernels(), 1u);
  EXPECT_EQ(device.interpreted(), 0u);
  Context a(host), b(device);
  t.launch_kernel(a), t.launch_kernel(b);
  float first = 0, last = 0;
  for (int k = 0; k < 30; ++k) {
    t.step(a, k), t.step(b, k);
    ASSERT_NEAR(a.scalar("loss"), b.scalar("loss"), 1e-4 * (1 + std::abs(a.scalar("loss")))) << "step " << k;
    if (k == 0) first = b.scalar("loss");
    last = b.scalar("loss");
  }
  EXPECT_LT(last, first / 2);
  expect_same(a, b, {"loss", "w", "b", "v"});
}

TEST_P(Pjrt, StatesParametersAndSizes) {
  Graph g;
  const Dim n = Dim::symbol("n", 1, 4096);
  const Tensor x = g.input("x", {n, 4});
  const Tensor w = g.parameter("w", {4}, DType::F32);
  const Tensor total = g.input("total", {4}), rows = g.input("rows", {n}), turned = g.input("turned", {2, 3});
  g.output("y", x * exp(w));
  g.output("before", total);
  g.output("same", x);
  g.assign(total, total + sum(x, {0}));
  g.assign(rows, rows + sum(x, {1}));
  g.assign(turned, (turned.permute({1, 0}) + 1.0).reshape({2, 3}));
  Program host = compile(g, here()), device = compile(g, there());
  const std::vector<float> weight{0.1f, 0.2f, -0.3f, 0.4f};
  for (Program* p : {&host, &device}) p->load("w", weight.data(), 16, std::make_shared<int>());
  Context a(host), b(device);
  for (Context* c : {&a, &b}) c->set("total", ramp(4, 1)).set("turned", ramp(6, -1));
  for (const std::int64_t now : {3, 7, 2, 300, 3}) {
    for (Context* c : {&a, &b}) {
      c->bind("n", now).set("rows", std::vector<float>(static_cast<std::size_t>(now), 0.5f));
      c->set("x", ramp(static_cast<std::size_t>(now) * 4, -0.75f)).run().run();
    }
    expect_same(a, b, {"y", "before", "same", "total", "rows", "turned"});
    EXPECT_EQ(b.shape("y"), (std::vector<std::int64_t>{now, 4}));
  }
  // both views stay valid at the same time
  const auto y = b.bytes("y"), before = b.bytes("before");
  EXPECT_EQ(y.size(), 3u * 4 * 4);
  float value = 0;
  std::memcpy(&value, before.data(), 4);
  EXPECT_EQ(value, b.get("before")[0]);
  for (Context* c : {&a, &b}) c->clear_states();
  expect_same(a, b, {"total", "turned"});
  // the caller's memory: inputs are copied in before a run, and a state out after it
  std::vector<float> xs = ramp(4096 * 4, 0), s1 = ramp(4, 3), s2 = s1;
  a.use("x", xs.data(), xs.size() * 4).use("total", s1.data(), 16).run();
  b.use("x", xs.data(), xs.size() * 4).use("total", s2.data(), 16).run();
  expect_same(a, b, {"y", "total"});
  for (std::size_t k = 0; k < 4; ++k) EXPECT_NEAR(s1[k], s2[k], 1e-4);
  // loads other weights
  const std::vector<float> other{1, 2, 3, 4};
  for (Program* p : {&host, &device}) p->load("w", other.data(), 16, std::make_shared<int>());
  Context c(host), d(device);
  for (Context* k : {&c, &d})
    k->bind("n", 2)
        .set("x", ramp(8, 0))
        .set("rows", ramp(2, 0))
        .set("total", ramp(4, 0))
        .set("turned", ramp(6, 0))
        .run();
  expect_same(c, d, {"y", "total", "rows", "turned"});
}

TEST_P(Pjrt, OddNumbersAndEmptyTensors) {
  Graph g;
  const Tensor x = g.input("x", {6}), e = g.input("e", {0, 3});
  g.output("up", relu(x));
  g.output("root", sqrt(x));
  g.output("empty", exp(e));
  g.output("sum", sum(e, {0}));
  g.output("three", g.constant(3.0));
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> odd{inf, -inf, nan, -0.0f, 1e-30f, 3.4e38f};  // XLA treats numbers below 2^-126 as zero
  const Program host = compile(g, here()), device = compile(g, there());
  Context a(host), b(device);
  for (Context* c : {&a, &b}) c->set("x", odd).set("e", std::vector<float>{}).run();
  for (const char* name : {"up", "root", "empty", "sum", "three"}) {
    const auto want = a.get(name), got = b.get(name);
    ASSERT_EQ(want.size(), got.size());
    for (std::size_t k = 0; k < want.size(); ++k)
      EXPECT_TRUE(std::isnan(want[k]) ? std::isnan(got[k])
                                      : std::abs(want[k] - got[k]) <= 1e-6f * std::abs(want[k]) || want[k] == got[k])
          << name << " " << k << ": " << want[k] << " " << got[k];
  }
}

TEST_P(Pjrt, ContextsOfSeveralThreads) {
  Graph g;
  const Tensor x = g.input("x", {16}), s = g.input("s", {16});
  const Tensor w = g.parameter("w", {16}, DType::F32);
  g.output("y", x * w + s);
  g.assign(s, s + x);
  Program p = compile(g, there());
  const std::vector<float> two(16, 2);
  p.load("w", two.data(), 64, std::make_shared<int>());
  std::vector<int> wrong(3);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < wrong.size(); ++t)
    threads.emplace_back([&, t] {
      Context c(p);
      c.set("s", std::vector<float>(16));
      for (int k = 0; k < 50; ++k) {
        const float v = static_cast<float>(t + 1);
        const auto y = c.set("x", std::vector<float>(16, v)).run().get("y");
        wrong[t] += y != std::vector<float>(16, 2 * v + static_cast<float>(k) * v);
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, std::vector<int>(wrong.size()));
}

TEST_P(Pjrt, Verifies) {
  Graph g;
  const Tensor x = g.input("x", {Dim::symbol("rows", 1, 64), 12});
  g.output("y", softmax(x, 1));
  const VerifyReport r = verify(g, there(), {.trials = 2});
  EXPECT_TRUE(r.ok()) << r.str();
}

// ---- what is copied -------------------------------------------------------------------------------

TEST(PjrtDevice, StatesStayOnTheDevice) {
  const Training t;
  const Program p = compile(t.g, pjrt(counting_client()));
  Context c(p);
  t.launch_kernel(c);
  t.step(c, 0), t.step(c, 1);
  forget();
  for (int k = 0; k < 10; ++k) t.step(c, k);
  EXPECT_EQ(counts.runs, 10);
  EXPECT_EQ(counts.compiled, 0);
  EXPECT_EQ(counts.from_host, 20);  // x and target
  EXPECT_EQ(counts.to_host, 0);
  EXPECT_EQ(counts.not_donated, 20);  // all other arguments are states
  EXPECT_GT(counts.arguments, 80);
  static_cast<void>(c.scalar("loss"));
  EXPECT_EQ(counts.to_host, 1);
}

TEST(PjrtDevice, WeightsAreCopiedOnce) {
  Graph g;
  const Tensor w = g.parameter("w", {16}, DType::F32);
  g.output("y", g.input("x", {16}) * w);
  Program p = compile(g, pjrt(counting_client()));
  const std::vector<float> v = ramp(16, 1);
  p.load("w", v.data(), 64, std::make_shared<int>());
  forget();
  for (int k = 0; k < 3; ++k) {
    Context c(p);
    c.set("x", v).run().run();
  }
  EXPECT_EQ(counts.from_host, 4);  // x once per context, and the weights once
}

TEST(PjrtDevice, AProgramForEachBinding) {
  Graph g;
  g.output("y", g.input("x", {Dim::symbol("n", 1, 64)}) + 1.0);
  const Program p = compile(g, pjrt(counting_client(), {.programs = 2}));
  Context c(p);
  forget();
  const auto run = [&](std::int64_t n) {
    const auto y = c.bind("n", n).set("x", ramp(static_cast<std::size_t>(n), 0)).run().get("y");
    ASSERT_EQ(y.size(), static_cast<std::size_t>(n));
    EXPECT_EQ(y[0], 1);
  };
  for (const std::int64_t n : {3, 4, 3, 4, 3}) run(n);
  EXPECT_EQ(counts.compiled, 2);
  run(5);  // evicts the program of 4
  EXPECT_EQ(counts.compiled, 3);
  run(3);
  EXPECT_EQ(counts.compiled, 3);
  run(4);
  EXPECT_EQ(counts.compiled, 4);
}

TEST(PjrtDevice, ARunThatFailsLeavesStatesAsTheyWere) {
  Graph g;
  const Tensor s = g.input("s", {4});
  g.assign(s, s + g.input("x", {4}));
  const Program p = compile(g, pjrt(counting_client()));
  Context c(p);
  c.set("s", ramp(4, 0)).set("x", std::vector<float>(4, 1)).run();
  fail_runs = 1;
  EXPECT_NE(refusal([&] { c.run(); }).find("cannot run a program"), std::string::npos);
  EXPECT_EQ(c.get("s"), ramp(4, 1));
  EXPECT_EQ(c.run().get("s"), ramp(4, 2));
}

TEST(PjrtDevice, MistakesAreErrors) {
  EXPECT_NE(refusal([] { pjrt({.plugin = "/nowhere/plugin.so"}); }).find("cannot be loaded"), std::string::npos);
  EXPECT_NE(refusal([] { pjrt({.plugin = paths::kPjrtPlugin, .device = 1}); }).find("there is no device 1"),
            std::string::npos);
  EXPECT_NE(refusal([] {
              pjrt({.plugin = paths::kPjrtPlugin, .options = {{"x", true}}});
            }).find("no option 'x'"),
            std::string::npos);
  Graph g;
  g.output("y", g.input("x", {4}) + 1.0);
  const Program p = compile(g, pjrt({.plugin = paths::kPjrtPlugin}));
  EXPECT_NE(p.device()->name().find("LightconeDevice"), std::string::npos);
  Context c(p);
  EXPECT_NE(refusal([&] { c.run(); }).find("input 'x' has no value"), std::string::npos);
  EXPECT_NE(refusal([&] { Context wrong(p, one_thread()); }).find("no use for the host's threads"), std::string::npos);
}

// A table of arrays behaves as bytes for copies.
TEST(PjrtDevice, ATableIsBytes) {
  const auto client = backends::pjrt::Client::create(backends::pjrt::Plugin::load(paths::kPjrtPlugin));
  backends::pjrt::PjrtDevice device(client, 0);
  std::mt19937 random(7);
  const auto below = [&](std::size_t n) { return random() % n; };
  constexpr std::size_t kSize = 96;
  std::unique_ptr<Buffer> tables[] = {device.allocate(kSize), device.allocate(kSize)};
  std::vector<std::byte> bytes[] = {std::vector<std::byte>(kSize), std::vector<std::byte>(kSize)};
  for (int k = 0; k < 20000; ++k) {
    const std::size_t t = below(2), at = below(kSize), n = below(kSize - at + 1), from = below(kSize - n + 1);
    const BufferSlice place{tables[t].get(), at};
    std::vector<std::byte> fresh(n);
    for (std::byte& b : fresh) b = static_cast<std::byte>(random());
    switch (below(5)) {
      case 0: {
        device.copy_in(place, fresh.data(), n);
        std::ranges::copy(fresh, bytes[t].begin() + static_cast<std::ptrdiff_t>(at));
        break;
      }
      case 1: {
        device.zero(place, n);
        std::fill_n(bytes[t].begin() + static_cast<std::ptrdiff_t>(at), n, std::byte{});
        break;
      }
      case 2: {
        device.copy(place, {tables[1 - t].get(), from}, n);
        std::copy_n(bytes[1 - t].begin() + static_cast<std::ptrdiff_t>(from), n,
                    bytes[t].begin() + static_cast<std::ptrdiff_t>(at));
        break;
      }
      case 3: {  // as a kernel reads it
        auto& table = static_cast<backends::pjrt::Table&>(*tables[t]);
        const auto array = table.value(at, n)->array(*client, 0, DType::U8, {static_cast<std::int64_t>(n)});
        const auto read = test::take<std::uint8_t>(*array);
        ASSERT_TRUE(n == 0 || std::memcmp(read.data(), bytes[t].data() + at, n) == 0) << k;
        break;
      }
      default: {
        std::vector<std::byte> read(n);
        device.copy_out(read.data(), {tables[t].get(), at}, n);
        ASSERT_TRUE(n == 0 || std::memcmp(read.data(), bytes[t].data() + at, n) == 0) << k;
      }
    }
    ASSERT_LE(tables[t]->committed(), kSize);
  }
}
