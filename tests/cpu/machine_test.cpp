// A machine profile is written and read back as text, is kept where it should be, and changes no bit of a result.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <random>

#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/backends/cpu/machine.h"
#include "lightcone/backends/cpu/target/blocking.h"
#include "lightcone/backends/cpu/tune.h"
#include "lightcone/base/error.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"

using namespace lc;

namespace {

std::string refusal(const std::string& text) {
  try {
    parse_machine(text);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

std::vector<float> result(Tensor (*make)(Tensor), const Machine& m, std::int64_t rows, std::int64_t columns) {
  Graph g;
  g.output("y", make(g.input("x", {rows, columns})));
  const Program p = compile(g, generic() | cpu({.threads = 2, .machine = m}));
  std::mt19937 rng(5);
  std::normal_distribution<float> d;
  std::vector<float> x(static_cast<std::size_t>(rows * columns));
  for (float& v : x) v = d(rng);
  return Context(p).set("x", x).run().get("y");
}

}  // namespace

TEST(Machine, TextAndBack) {
  Machine m = backends::cpu::default_machine();
  EXPECT_FALSE(m.processor.empty());
  EXPECT_GE(m.l2, m.l1);
  m.vector = 32, m.stream = 12345678, m.fetch = 0, m.fetch_rows = 4096, m.fetch_level = 2, m.pipeline = false,
  m.copy_bandwidth = 1e10;
  EXPECT_EQ(parse_machine(str(m)), m);
  EXPECT_EQ(parse_machine("# a comment\n\nvector 16\n").vector, 16);
}

TEST(Machine, WhatIsNoProfileIsRefused) {
  EXPECT_NE(refusal("vectors 64\n").find("'vectors'"), std::string::npos);
  EXPECT_NE(refusal("vector 48\n").find("16, 32 or 64"), std::string::npos);
  EXPECT_NE(refusal("l1 12 KB\n").find("a number"), std::string::npos);
  EXPECT_NE(refusal("l1\n").find("a name, a space and a value"), std::string::npos);
  EXPECT_NE(refusal("l1 -5\n").find("between"), std::string::npos);
  EXPECT_NE(refusal("streams 0\n").find("between"), std::string::npos);
  EXPECT_NE(refusal("pipeline maybe\n").find("true or false"), std::string::npos);
  EXPECT_NE(refusal("fetch 0\nfetch 1\n").find("twice"), std::string::npos);
  EXPECT_NE(refusal("copy_bandwidth nan\n").find("a rate"), std::string::npos);
  EXPECT_NE(refusal(std::string(5000, 'x')).find("something else"), std::string::npos);
}

TEST(Machine, IsKeptForItsProcessor) {
  const auto folder = std::filesystem::temp_directory_path() / ("lightcone-machine-" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  std::filesystem::permissions(folder, std::filesystem::perms::owner_all);
  ::setenv("LIGHTCONE_CACHE", folder.c_str(), 1);
  ::unsetenv("LIGHTCONE_MACHINE");
  EXPECT_FALSE(backends::cpu::profile_is_kept());
  EXPECT_TRUE(backends::cpu::keep_profile(backends::cpu::default_machine()));
  EXPECT_TRUE(backends::cpu::profile_is_kept());
  ::setenv("LIGHTCONE_CACHE", "off", 1);
  EXPECT_FALSE(backends::cpu::keep_profile(backends::cpu::default_machine()));
  EXPECT_TRUE(backends::cpu::profile_is_kept());  // without a cache there is nothing to measure for
  ::unsetenv("LIGHTCONE_CACHE");
  std::filesystem::remove_all(folder);
}

// Vector widths, prefetch distances and the order of rows depend on the machine; no bit of a result does.
TEST(Machine, ResultsDoNotDependOnIt) {
  Machine small, narrow, plain, past;
  small.l1 = 1 << 12, small.l2 = 1 << 15;
  narrow.vector = 16;
  plain.pipeline = false, plain.fetch = plain.fetch_rows = 0, plain.stream = std::int64_t{1} << 40;
  past.stream = 0, past.vector = 32, past.fetch = 1024, past.fetch_level = 2, past.pipeline = false;
  Tensor (*const all[])(Tensor) = {[](Tensor x) { return gelu(x); }, [](Tensor x) { return softmax(x, -1); },
                                   [](Tensor x) { return layer_norm(x, {x.extent(-1)}) * 2.0 + x; },
                                   [](Tensor x) { return softmax(gelu(x.transpose(0, 1)), -1); }};
  for (const auto& make : all)
    for (const std::int64_t columns : {300, 1024}) {
      const std::vector<float> want = result(make, Machine{}, 70, columns);
      for (const Machine& m : {small, narrow, plain, past}) {
        const std::vector<float> got = result(make, m, 70, columns);
        ASSERT_EQ(std::memcmp(got.data(), want.data(), want.size() * sizeof(float)), 0) << columns << "\n" << str(m);
      }
    }
}

// Block sizes of products and convolutions follow the caches; the order of additions does not.
TEST(Machine, BlockingFollowsTheCaches) {
  const backends::cpu::Blocking usual, small(Machine{.l2 = 256 << 10}), large(Machine{.l1 = 48 << 10, .l2 = 2 << 20});
  EXPECT_EQ(usual.rows(512), 170);
  EXPECT_EQ(usual.columns(usual.rows(512)), 512);
  for (const backends::cpu::Blocking& b : {usual, small, large}) {  // A and C of a task, and two strips of B, fit
    const std::int64_t rows = b.rows(512);
    EXPECT_LE(4 * rows * (512 + b.columns(rows)), b.l2() * 2 / 3);
    EXPECT_GE(4 * rows * (512 + b.columns(rows)), b.l2() / 2);
  }
  EXPECT_GT(large.l1_budget_floats(), usual.l1_budget_floats());
  EXPECT_EQ(small.llc_bytes(4), 4 * small.l2());
  // the largest caches that a profile may state
  const backends::cpu::Blocking wild(Machine{.l1 = 1 << 24, .l2 = 1 << 30});
  EXPECT_LE(wild.l2(), 8 << 20);
  // a memory plan depends on the machine it is made for
  const auto scratch = [](std::int64_t l2) {
    Graph g;
    g.output("y", matmul(g.input("a", {2000, 1000}), g.input("b", {1000, 300})));
    return compile(g, generic() | cpu({.threads = 2, .machine = Machine{.l2 = l2}})).plan().arena_bytes;
  };
  EXPECT_LT(scratch(256 << 10), scratch(2 << 20));
}

namespace {

// A simulated machine with given running times, plus noise. Its clock advances only during runs.
struct FakeMachine {
  std::function<double(backends::cpu::TuneWork, const Machine&)> takes;
  double noise = 0, clock = 0;
  std::mt19937 random{3};
  Machine tuned(const Machine& built_in, TuneOptions o = {}) {
    std::uniform_real_distribution<double> part(0, noise);
    const backends::cpu::TuneBench bench{
        .prepare = [&](backends::cpu::TuneWork w, const std::vector<Machine>& all) -> backends::cpu::TuneBench::Turn {
          return [&, w, all] {
            std::vector<double> seconds;
            for (const Machine& m : all) clock += seconds.emplace_back(takes(w, m) * (1 + part(random)));
            return seconds;
          };
        },
        .now = [&] { return clock; },
        .wide = true};
    return backends::cpu::choose_profile(built_in, o, bench);
  }
};
bool of_weights(backends::cpu::TuneWork w) { return w >= backends::cpu::TuneWork::Q8Weights; }

}  // namespace

// A setting that is not faster by more than the noise keeps the default of the processor's family.
TEST(Tune, NoiseChangesNothing) {
  const Machine built_in{.streams = 4};
  FakeMachine even{[](auto, const Machine&) { return 0.01; }};
  EXPECT_EQ(even.tuned(built_in), built_in);
  for (unsigned seed = 0; seed < 50; ++seed) {
    FakeMachine noisy{[](auto, const Machine&) { return 0.01; }, 0.3};
    noisy.random.seed(seed);
    EXPECT_EQ(noisy.tuned(built_in), built_in) << seed;
  }
  // one stream is 3 % faster, but only for weights of one format, or by less than the required gain
  FakeMachine weak{[](auto w, const Machine& m) {
    return m.streams == 1 && w == backends::cpu::TuneWork::Q8Weights ? 0.0097 : 0.01;
  }};
  EXPECT_EQ(weak.tuned(built_in), built_in);
}

TEST(Tune, WhatWinsIsTaken) {
  FakeMachine one{[](auto w, const Machine& m) { return of_weights(w) && m.streams == 1 ? 0.008 : 0.01; }, 0.01};
  EXPECT_EQ(one.tuned({.streams = 4}).streams, 1);
  FakeMachine four{[](auto w, const Machine& m) { return of_weights(w) && m.streams == 4 ? 0.006 : 0.01; }, 0.05};
  EXPECT_EQ(four.tuned({.streams = 1}).streams, 4);
  FakeMachine narrow{[](auto w, const Machine& m) { return !of_weights(w) && m.vector == 32 ? 0.009 : 0.01; }, 0.02};
  EXPECT_EQ(narrow.tuned({}).vector, 32);
  // a gain for one loop at the expense of another is no gain
  FakeMachine torn{[](auto w, const Machine& m) {
    return m.vector != 32 ? 0.01 : w == backends::cpu::TuneWork::Softmax ? 0.0115 : 0.008;
  }};
  EXPECT_EQ(torn.tuned({}).vector, 64);
  // the second cache level is better for rows and worse for 8-bit weights
  const auto level = [](double weights) {
    return [=](auto w, const Machine& m) { return m.fetch_level == 1 ? 0.01 : of_weights(w) ? weights : 0.008; };
  };
  EXPECT_EQ((FakeMachine{level(0.0105)}).tuned({}).fetch_level, 1);
  EXPECT_EQ((FakeMachine{level(0.01)}).tuned({}).fetch_level, 2);
}

TEST(Tune, EndsInTime) {
  FakeMachine slow{[](auto, const Machine& m) { return m.vector == 32 ? 0.2 : 0.5; }};
  EXPECT_EQ(slow.tuned({.streams = 4}, {.seconds = 10}).streams, 4);
  EXPECT_LT(slow.clock, 15);
  FakeMachine slower{[](auto, const Machine&) { return 20.0; }};
  EXPECT_EQ(slower.tuned({}), Machine{});
  EXPECT_LT(slower.clock, 250);  // one comparison, begun within the time limit: three candidates, three rounds
}

namespace {

// Compiles a product [m, k] x [k, n] with at most `m` rows.
Program product_of(std::int64_t m, std::int64_t n, std::int64_t k, Precision p,
                   std::optional<backends::cpu::Target> t = {}) {
  Graph g;
  g.output("y", matmul(g.input("a", {Dim::symbol("m" + std::to_string(m), 1, m), k}), g.input("b", {k, n})));
  return compile(g, generic() | cpu({.threads = 1, .precision = p, .target = t}));
}
bool on_tiles(const Program& p) {
  for (const PassLog& log : p.log())
    if (log.fired.contains("product on tiles")) return true;
  return false;
}

}  // namespace

// Tiles are used for products that gain by them, which the upper bounds of their sizes decide.
TEST(Tiles, AreForLargeProducts) {
  backends::cpu::Target t;
  t.isa = backends::cpu::Isa::Avx512, t.avx512_vnni = t.avx512_bf16 = t.amx = true;
  EXPECT_FALSE(on_tiles(product_of(1024, 1024, 1024, Precision::Highest, t)));
  EXPECT_TRUE(on_tiles(product_of(2048, 2048, 2048, Precision::Highest, t)));
  EXPECT_FALSE(on_tiles(product_of(64, 1024, 1024, Precision::High, t)));
  EXPECT_TRUE(on_tiles(product_of(512, 512, 512, Precision::High, t)));
  EXPECT_TRUE(on_tiles(product_of(32, 64, 64, Precision::Medium, t)));
  EXPECT_FALSE(on_tiles(product_of(4, 64, 64, Precision::Medium, t)));
}

// Each case runs in a process of its own, because the availability of tiles is determined once per process.
TEST(Tiles, AreAskedForWhereAProductWantsThem) {
  if (backends::cpu::detect_isa() != backends::cpu::Isa::Avx512)
    GTEST_SKIP() << "tiles, emulated or not, go with AVX-512";
  if (const char* units = std::getenv("LIGHTCONE_ISA"); units && std::strchr(units, '+'))
    GTEST_SKIP() << "LIGHTCONE_ISA names the units, and tiles are none of them";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const std::string wish : {"emulated", "refused", "off"}) {
    const auto one = [&] {
      ::setenv("LIGHTCONE_TILES", wish.c_str(), 1);
      Graph g;
      g.output("y", gelu(g.input("x", {64, 64})));
      const auto plain = compile(g, generic() | cpu({.precision = Precision::Medium}));
      bool right = plain.notes().empty() && product_of(512, 512, 512, Precision::Highest).notes().empty() &&
                   product_of(4, 64, 64, Precision::Medium).notes().empty() && backends::cpu::tiles_note().empty();
      const Program p = product_of(32, 64, 64, Precision::Medium);
      const std::string word = wish == "emulated" ? "stacks that threads have" : "as on a processor without AMX";
      right = right && on_tiles(p) == (wish == "emulated") && p.notes().size() == (wish == "off" ? 0 : 1) &&
              (wish == "off" || p.notes()[0].find(word) != std::string::npos);
      right = right && product_of(4, 64, 64, Precision::Medium).notes().empty();
      std::exit(right ? 0 : 1);
    };
    EXPECT_EXIT(one(), testing::ExitedWithCode(0), "") << wish;
  }
}

TEST(Machine, TuningGivesAProfileOfThisProcessor) {
  int steps = 0;
  const Machine m = tune({.threads = 1, .rounds = 1, .elements = 1 << 16, .said = [&](std::string_view) { ++steps; }});
  EXPECT_EQ(steps, 7);
  EXPECT_EQ(m.processor, backends::cpu::processor());
  EXPECT_GT(m.copy_bandwidth, 0);
  EXPECT_NO_THROW(parse_machine(str(m)));
  EXPECT_THROW(tune({.elements = 100}), Error);
}
