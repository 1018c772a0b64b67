// Whole programs run on a device whose memory the host may not touch: plan, Program and Context reach its bytes through
// copies alone.
#include "separate_device.h"
#include "paths.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstring>
#include <fstream>
#include <functional>
#include <limits>
#include <optional>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/backends/cpu/threads/thread_pool.h"
#include "lightcone/base/error.h"
#include "lightcone/device/host_device.h"
#include "lightcone/llm/sampler.h"
#include "lightcone/models/llama/llama.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"
#include "lightcone/verify/random_graph.h"
#include "lightcone/verify/verify.h"

using namespace lc;
using test::ClosedBuffer;
using test::separate;
using test::SeparateDevice;

namespace {

std::vector<float> ramp(std::size_t n, float from) {
  std::vector<float> v(n);
  for (std::size_t k = 0; k < n; ++k) v[k] = from + static_cast<float>(k % 13) / 8;
  return v;
}

// Returns the signal that ends a child which runs `f`, or 0.
int signal_of(const std::function<void()>& f) {
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGSEGV, SIG_DFL);
    std::signal(SIGBUS, SIG_DFL);
    f();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

std::string refusal(const std::function<void()>& f) {
  try {
    f();
    return "";
  } catch (const Error& e) {
    return e.what();
  }
}

// The same program on the host, interpreted, and on the device.
struct Both {
  std::shared_ptr<SeparateDevice> device = std::make_shared<SeparateDevice>();
  Program host, there;
  explicit Both(const Graph& g) : host(compile(g)), there(compile(g, generic() | separate(device))) {
    EXPECT_EQ(there.device().get(), device.get());
    EXPECT_GT(there.kernels(), 0u);
  }
  void load(const char* name, const std::vector<float>& v) {
    const auto kept = std::make_shared<std::vector<float>>(v);
    host.load(name, kept->data(), v.size() * 4, kept);
    std::vector<float> gone = v;  // the device copies parameters, so the memory need not stay
    there.load(name, gone.data(), v.size() * 4);
    std::fill(gone.begin(), gone.end(), -1e9f);
  }
};
void expect_same(const Context& a, const Context& b, const std::vector<const char*>& names) {
  for (const char* name : names) {
    const auto x = a.get(name), y = b.get(name);
    ASSERT_EQ(x.size(), y.size()) << name;
    for (std::size_t k = 0; k < x.size(); ++k) ASSERT_NEAR(x[k], y[k], 1e-4 * (1 + std::abs(x[k]))) << name << " " << k;
  }
}

}  // namespace

TEST(SeparateDevice, TouchingItsMemoryFromTheHostIsAFault) {
  SeparateDevice d;
  for (const bool reserved : {false, true}) {
    const auto b = reserved ? d.reserve(100000) : d.allocate(100000);
    ASSERT_TRUE(b->commit(0, 100000));
    EXPECT_EQ(b->host(), nullptr);
    const float x = 5;
    d.copy_in({b.get(), 64}, &x, 4);
    float y = 0;
    d.copy_out(&y, {b.get(), 64}, 4);
    EXPECT_EQ(y, 5);
    volatile std::byte* const at = static_cast<ClosedBuffer&>(*b).address() + 64;
    EXPECT_EQ(signal_of([&] { static_cast<void>(*at); }), SIGSEGV);
    EXPECT_EQ(signal_of([&] { *at = std::byte{1}; }), SIGSEGV);
    const ClosedBuffer::Open open(b.get());
    EXPECT_EQ(signal_of([&] { static_cast<void>(*at); }), 0);
  }
  // the device itself must not access uncommitted memory either
  const auto b = d.reserve(1 << 20);
  ASSERT_TRUE(b->commit(0, 1 << 16));
  EXPECT_EQ(signal_of([&] { d.zero({b.get(), 0}, 1 << 16); }), 0);
  EXPECT_EQ(signal_of([&] { d.zero({b.get(), 1 << 19}, 1); }), SIGSEGV);
}

TEST(SeparateDevice, TellsTheStoryOfTheCpu) {
  const std::string folder = std::string(paths::kSource) + "/models/story/";
  auto ids = nlohmann::json::parse(std::ifstream(folder + "reference.json"))["ids"].get<std::vector<int>>();
  const auto device = std::make_shared<SeparateDevice>();
  const auto tell = [&](const LlamaOptions& o) {
    const Llama m = Llama::load(folder + "story.gguf", o);
    LlamaSession s(m);
    llm::Sampler pick({});
    std::vector<int> have(ids.begin(), ids.begin() + 3);
    int next = pick(s.feed(have));  // a prompt of several tokens, then one at a time
    while (have.size() < 12) have.push_back(next), next = pick(s.feed(next));
    return m.tokenizer().decode(have);
  };
  const std::string here = tell({.threads = 1});
  EXPECT_EQ(device->launches, 0);
  EXPECT_EQ(tell({.context = 64, .chunk = 16, .compiler = generic() | separate(device)}), here);
  EXPECT_GT(device->launches, 400);
  EXPECT_GT(here.size(), 12u);
}

TEST(SeparateDevice, RandomGraphsAgreeWithTheReference) {
  const auto device = std::make_shared<SeparateDevice>();
  int loops = 0, failures = 0;
  std::size_t interpreted = 0;
  VerifyReport::Checked seen;
  for (std::uint64_t i = 6000000; i < 6002000 && failures < 5; ++i) {
    const Graph g = random_graph(i, {.nodes = 4 + static_cast<int>(i % 14)});
    const Bindings env = random_bindings(g, i);
    const auto inputs = random_inputs(g, env, i, i % 3 == 0);
    std::optional<Difference> d;
    try {
      const Compiled done = transform(g, generic() | separate(device));
      loops += fired(done.log, "loop");
      interpreted += compile(done.graph).interpreted();
      d = compare(interpret(g, inputs, env, Rounding::Wide, true), run_values(done.graph, inputs, env), 4, &seen);
    } catch (const std::exception& e) {
      d.emplace().problem = e.what();
    }
    if (!d) continue;
    ++failures;
    ADD_FAILURE() << "graph " << i << ": " << d->str() << "\n" << g.str();
  }
  EXPECT_GT(loops, 3000);
  EXPECT_GT(interpreted, 100u);  // results are copied to the host and back
  EXPECT_GT(seen.elements, 20 * seen.undecided);
}

// Parameters and values computed from them at load time; states that are overwritten, are results, are copied or are
// read through a view; symbolic sizes.
TEST(SeparateDevice, StatesParametersAndSizesThatGrow) {
  Graph g;
  const Dim n = Dim::symbol("n", 1, 1 << 20);
  const Tensor x = g.input("x", {n, 4});
  const Tensor w = g.parameter("w", {4}, DType::F32);
  const Tensor total = g.input("total", {4}), rows = g.input("rows", {n}), turned = g.input("turned", {2, 3});
  const Tensor first = g.input("first", {5});
  g.output("y", cumsum(x * exp(w), 0));
  g.output("before", total);
  g.assign(total, total + sum(x, {0}));
  g.assign(rows, rows + sum(x, {1}));
  g.assign(turned, (turned.permute({1, 0}) + 1.0).reshape({2, 3}));
  g.assign(first, first * 2.0);
  Both b(g);
  EXPECT_GT(b.there.plan().prepared_bytes, 0u);
  b.load("w", {0.1f, 0.2f, -0.3f, 0.4f});
  b.load("first", {1, 2, 3, 4, 5});
  Context here(b.host), there(b.there);
  for (Context* c : {&here, &there}) c->set("total", ramp(4, 1)).set("turned", ramp(6, -1));
  for (Context* c : {&here, &there}) c->bind("n", 3).set("rows", std::vector<float>(3));
  std::size_t before = 0;
  for (const std::int64_t rows_now : {3, 7, 5000, 2}) {
    for (Context* c : {&here, &there}) {
      c->bind("n", rows_now);
      if (rows_now != 3) c->set("rows", std::vector<float>(static_cast<std::size_t>(rows_now), 0.5f));
      c->set("x", ramp(static_cast<std::size_t>(rows_now) * 4, -0.75f)).run().run();
    }
    expect_same(here, there, {"y", "before", "total", "rows", "turned", "first"});
    EXPECT_LT(there.memory_bytes(), std::size_t{16} << 20);  // the largest sizes would take 64 MiB and more
    EXPECT_GE(there.memory_bytes(), before);
    before = there.memory_bytes();
  }
  const auto y = there.bytes("y"), kept = there.bytes("before");  // both views stay valid at the same time
  EXPECT_EQ(y.size(), 2u * 4 * 4);
  float value = 0;
  std::memcpy(&value, kept.data(), 4);
  EXPECT_EQ(value, there.get("before")[0]);
  for (Context* c : {&here, &there}) c->clear_states();
  expect_same(here, there, {"total", "turned", "first"});
  EXPECT_EQ(there.get("total"), std::vector<float>(4));
}

// The caller's memory is copied in before each run, and states are copied out after it.
TEST(SeparateDevice, TheCallersMemory) {
  Graph g;
  const Tensor x = g.input("x", {6}), s = g.input("s", {6}), k = g.input("k", {6}, DType::I64);
  g.output("y", exp(x) + s);
  g.output("k2", k * k);
  g.assign(s, s + x);
  Both b(g);
  Context here(b.host), there(b.there);
  std::vector<float> xs = ramp(6, 0), s1 = ramp(6, 3), s2 = s1;
  here.use("x", xs.data(), 24).use("s", s1.data(), 24);
  there.use("x", xs.data(), 24).use("s", s2.data(), 24);
  const std::vector<std::int64_t> ks{1, 2, 3, 1ll << 31, 5, -6};
  for (Context* c : {&here, &there}) c->set_bytes("k", ks.data(), 48);
  for (int step = 0; step < 3; ++step) {
    here.run(), there.run();
    expect_same(here, there, {"y", "s"});
    EXPECT_EQ(there.get_i64("k2"), here.get_i64("k2"));
    for (std::size_t i = 0; i < 6; ++i) ASSERT_NEAR(s1[i], s2[i], 1e-5);
    for (float& v : xs) v += 0.25f;
    s1[2] = s2[2] = 7;
  }
  expect_same(here, there, {"s"});                                   // sees what the caller wrote after the last run
  for (Context* c : {&here, &there}) c->set("x", ramp(6, 9)).run();  // detaches the caller's memory
  expect_same(here, there, {"y"});
  for (Context* c : {&here, &there}) c->clear_states();
  EXPECT_EQ(s2, std::vector<float>(6));
}

// Operations without a kernel are computed on the host, between the device's kernels.
TEST(SeparateDevice, TheInterpreterRunsWhatItCannot) {
  Graph g;
  const Tensor x = g.input("x", {40});
  g.output("sorted", gather(exp(x), 0, argsort(sin(x * 3.0), 0)) * 2.0);
  Both b(g);
  EXPECT_GT(b.there.interpreted(), 0u);
  Context here(b.host), there(b.there);
  for (Context* c : {&here, &there}) c->set("x", ramp(40, -1)).run();
  expect_same(here, there, {"sorted"});
}

TEST(SeparateDevice, NaNIsFoundAndRunsAreMeasured) {
  Graph g;
  const Tensor x = g.input("x", {8});
  g.output("y", cumsum(sqrt(x), 0));
  Both b(g);
  Context c(b.there);
  c.set("x", ramp(8, 1)).run_checked();
  c.profile(true);
  c.run();
  EXPECT_EQ(c.profile().kernels.size(), b.there.kernels());
  EXPECT_GT(c.profile().kernels[0].seconds, 0);
  c.profile(false);
  c.set("x", ramp(8, -1));
  const std::string said = refusal([&] { c.run_checked(); });
  EXPECT_NE(said.find("holds NaN: it first appears in"), std::string::npos) << said;
}

TEST(SeparateDevice, AProgramRunsWhereItsKernelsAreFor) {
  Graph g;
  g.output("y", exp(g.input("x", {8})));
  const auto device = std::make_shared<SeparateDevice>();
  const Program there = compile(g, generic() | separate(device)), here = compile(g, generic() | cpu({.threads = 1}));
  EXPECT_NE(refusal([&] { Context c(there, backends::cpu::threads(1)); }).find("no use for the host's threads"),
            std::string::npos);
  EXPECT_NE(refusal([&] { Context c(there, host_device()); }).find("compiled for separate"), std::string::npos);
  EXPECT_NE(refusal([&] { Context c(here, std::static_pointer_cast<Device>(device)); }).find("compiled for host"),
            std::string::npos);
  Context c(here, host_device(backends::cpu::threads(2)));
  EXPECT_EQ(c.set("x", ramp(8, 0)).run().get("y").size(), 8u);
  // kernels of two devices in one graph
  Graph both;
  for (const Graph* part : {&here.graph(), &there.graph()})
    for (NodeId id = 0; id < part->size(); ++id) {
      if ((*part)[id].op != Op::Kernel) continue;
      Node n = (*part)[id];
      const NodeId x = both.input(str_cat("x", both.size()), {8}).edge().node;
      n.in = {{x, View(both[x].shape)}};
      const NodeId y = both.add(std::move(n));
      both.root(str_cat("y", y), {y, View(both[y].shape)});
    }
  EXPECT_NE(refusal([&] { compile(both); }).find("kernels of two devices"), std::string::npos);
}
