// Depthwise convolutions of random shapes agree with f64 in both layouts, on every instruction set and number of
// threads.
#include "lightcone/backends/cpu/conv/depthwise.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <list>
#include <random>

#include "guarded.h"
#include "lightcone/backends/cpu/conv/algorithms.h"
#include "lightcone/backends/cpu/conv/nhwc.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/backends/cpu/products/microkernel.h"
#include "lightcone/backends/cpu/threads/thread_pool.h"
#include "lightcone/device/host_kernel.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"
#include "other_caches.h"
#include "random_inputs.h"

using namespace lc;
using namespace lc::backends::cpu;
using lc::test::Inputs;
using lc::test::random_values;

namespace {

Tensor parameter(Graph& g, const std::string& name, const Shape& s) { return g.parameter(name, s, DType::F32); }

// Counts the kernels that `cpu` makes of the graph with names that start with `begin`.
int count(const Graph& g, const std::string& begin, const CpuOptions& o = {.threads = 1}) {
  const Graph made = transform(g, generic() | cpu(o)).graph;
  int n = 0;
  for (NodeId id = 0; id < made.size(); ++id)
    n += made[id].op == Op::Kernel && made[id].kernel->name().starts_with(begin);
  return n;
}

void expect_close(const Value& want, const Value& got, const std::string& what) {
  ASSERT_EQ(want.size(), got.size()) << what;
  for (std::size_t k = 0; k < want.size(); ++k) {
    const double y = got.at(k), expected = want.at(k);
    if (std::isnan(expected)) ASSERT_TRUE(std::isnan(y)) << what << k << " got " << y;
    else if (std::isinf(expected)) ASSERT_EQ(y, expected) << what << k;
    else ASSERT_LE(std::abs(y - expected), want.error_at(k) * 4 + 1e-30) << what << k << " want " << expected;
  }
}

// Compares the graph, as a user compiles it and with interpreted loops, with the reference interpreter.
void agree(const Graph& g, const Inputs& in, const Bindings& env = {}) {
  const Results want = interpret(g, in, env, Rounding::Wide, true);
  Results first;
  for (const CpuOptions& o : {CpuOptions{.threads = 1}, {.threads = 2}, {.threads = 1, .compiler = false}}) {
    const Graph made = transform(g, generic() | cpu(o)).graph;
    const Results got = test::run_guarded(made, in, env, o.threads == 1 ? test::Against::Front : test::Against::Back);
    for (const auto& [name, v] : want.outputs) {
      expect_close(v, got.outputs.at(name), str_cat(name, " ", o.compiler ? "compiled " : "interpreted "));
      if (o.threads == 2 && v.size() > 0) {
        EXPECT_EQ(std::memcmp(got.outputs.at(name).f.data(), first.outputs.at(name).f.data(), v.size() * 8), 0)
            << "threads change bits";
      }
    }
    if (o.threads == 1 && o.compiler) first = got;
  }
}

// Runs one kernel on guarded operands, with scratch that is filled with NaN.
Value run(const HostKernel& k, const std::vector<const Value*>& in, const std::vector<std::int64_t>& shape,
          Parallel& pool) {
  std::list<test::Guarded> memory;
  std::vector<const void*> operands;
  for (const Value* v : in) {
    memory.emplace_back(v->size() * 4, memory.empty() ? test::Against::Back : test::Against::Front);
    write_value(*v, memory.back().data());
    operands.push_back(memory.back().data());
  }
  Value out = make_value(DType::F32, shape);
  test::Guarded y(out.size() * 4, test::Against::Back);
  std::vector<std::int64_t> sizes;
  for (const Dim& d : k.sizes()) sizes.push_back(d.eval({}));
  const auto bytes = (static_cast<std::size_t>(k.scratch_bytes(pool.workers()).eval({})) + 63) / 64 * 64;
  test::Guarded scratch(bytes, test::Against::Back);
  std::memset(scratch.data(), 0xff, bytes);
  k.run({operands, y.data(), sizes, scratch.data(), pool});
  for (std::size_t i = 0; i < out.size(); ++i) out.f[i] = static_cast<double>(reinterpret_cast<float*>(y.data())[i]);
  return out;
}

struct Case {
  int batch, channels, height, width;
  int down, across;  // extents of the filter
  ConvOptions o = {};
  int filters = 1;  // per channel
};
std::string str(const Case& c, const Graph& g) { return str_cat(c.channels, " channels\n", g.str()); }

Graph make(const Case& c, bool last) {
  Graph g;
  const Dim b = c.batch, n = c.channels, h = c.height, w = c.width;
  const Tensor x = last ? g.input("x", {b, h, w, n}).permute({0, 3, 1, 2}) : g.input("x", {b, n, h, w});
  ConvOptions o = c.o;
  o.groups = c.channels;
  const Tensor y = conv(x, parameter(g, "w", {n * c.filters, 1, c.down, c.across}), o);
  g.output("y", last ? y.permute({0, 2, 3, 1}) : y);
  return transform(g, generic()).graph;
}

std::optional<ConvPlan> only_convolution(const Graph& g, bool last) {
  for (NodeId id = 0; id < g.size(); ++id)
    if (const auto s = lowering::factors(g, id))
      if (auto c = find_convolution(g, *s, this_target()); c && c->channels_last == last) return ConvPlan{*c};
  return std::nullopt;
}

// Checks that one and two threads give the same bits and the right result.
void every_thread(const Value& want, const std::function<Value(const std::shared_ptr<Parallel>&)>& run_with,
                  const std::string& what) {
  const Value one = run_with(threads(1)), two = run_with(threads(2));
  ASSERT_EQ(std::memcmp(one.f.data(), two.f.data(), one.f.size() * 8), 0) << "threads change bits: " << what;
  expect_close(want, one, what);
}

void pixels_side_by_side(const Case& s, const Inputs* given = nullptr) {
  const Graph g = make(s, false);
  const Inputs in = given ? *given : random_values(g, 5);
  const auto c = only_convolution(g, false);
  if (!c && s.down == 1 && s.o.padding[1] == 0) return;  // lowered to a matrix product with overlapping rows
  ASSERT_TRUE(c && depthwise_shape(*c)) << str(s, g);
  const Value want = interpret(g, in, {}, Rounding::Wide, true).outputs.at("y");
  for (const Isa isa : isas())
    every_thread(
        want,
        [&](const std::shared_ptr<Parallel>& pool) {
          const auto k = depthwise_kernel(*c, nullptr, isa, test::blocking(*pool));
          EXPECT_EQ(k->name(), "conv_depthwise");
          return run(*k, {&in.at("x"), &in.at("w")}, want.shape, *pool);
        },
        str_cat(name(isa), " ", str(s, g)));
}

void channels_side_by_side(const Case& s, const Inputs* given = nullptr) {
  PassLog log;
  const Graph g = make(s, true);
  const auto turned = channels_last(g, log, this_target());
  if (const Shape& y = g[g.roots()[0].edge.node].shape; y[3] == Dim(1) || y[4] == Dim(1)) return;  // not an image
  ASSERT_TRUE(turned) << str(s, g);
  const Inputs in = given ? *given : random_values(g, 6);
  const auto c = only_convolution(*turned, true);
  ASSERT_TRUE(c && is_depthwise_nhwc(*c)) << str(s, *turned);
  const Value want = interpret(g, in, {}, Rounding::Wide, true).outputs.at("y");
  for (const Isa isa : isas()) {
    const PackedFilters f = *packed_filters(*turned, *c, isa);
    const auto pack = pack_weights_kernel(f, isa);
    const Value w = run(*pack, {&in.at("w")}, {f.floats(f.panel(isa))}, *threads(1));
    every_thread(
        want,
        [&](const std::shared_ptr<Parallel>& pool) {
          const auto k = depthwise_nhwc_kernel(*c, nullptr, isa);
          EXPECT_EQ(k->name(), "conv_depthwise_nhwc");
          return run(*k, {&in.at("x"), &w}, want.shape, *pool);
        },
        str_cat("last ", name(isa), " ", str(s, g)));
  }
}

void both(const Case& s, const Inputs* given = nullptr) {
  pixels_side_by_side(s, given);
  if (testing::Test::HasFatalFailure() || s.filters > 1) return;
  Inputs turned;
  if (given) {
    turned = *given;
    const Value& x = given->at("x");
    Value& y = turned.at("x");
    y = make_value(DType::F32, {s.batch, s.height, s.width, s.channels});
    const auto n = static_cast<std::size_t>(s.channels), pixels = static_cast<std::size_t>(s.height * s.width);
    for (std::size_t i = 0; i < x.size(); ++i)
      y.f[(i / pixels / n * pixels + i % pixels) * n + i / pixels % n] = x.f[i];
  }
  channels_side_by_side(s, given ? &turned : nullptr);
}

}  // namespace

TEST(Depthwise, GridOfShapes) {
  for (const int kernel : {2, 3, 4, 5, 7})
    for (const int stride : {1, 2, 3})
      for (const int padding : {0, 1, 3})
        for (const int dilation : {1, 2}) {
          const int size = (kernel - 1) * dilation + 6;
          both({2,
                5,
                size,
                size + 3,
                kernel,
                kernel,
                {.stride = {stride}, .padding = {padding}, .dilation = {dilation}}});
          if (HasFatalFailure()) return;
        }
}

TEST(Depthwise, RandomShapes) {
  std::mt19937 random(11);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int i = 0; i < 60; ++i) {
    Case s{1 + below(3), 2 + below(90), 0, 0, 1 + below(6), 2 + below(5), {}, i % 3 ? 1 : 1 + below(4)};
    const int dilate[2] = {1 + below(3), 1 + below(3)}, pad[2] = {below(4), below(4)};
    s.o = {.stride = {1 + below(3), 1 + below(3)}, .padding = {pad[0], pad[1]}, .dilation = {dilate[0], dilate[1]}};
    s.height = std::max(1, (s.down - 1) * dilate[0] + 1 - 2 * pad[0]) + 1 + below(20);
    s.width = std::max(1, (s.across - 1) * dilate[1] + 1 - 2 * pad[1]) + 1 + below(40);
    both(s);
    if (HasFatalFailure()) return;
  }
}

TEST(Depthwise, EdgesOfItsSizes) {
  both({1, 3, 120, 121, 3, 3, {.padding = {1}}});                // several bands of a plane
  both({1, 2, 40, 300, 5, 5, {.stride = {2}, .padding = {2}}});  // strided phases, and bands
  both({1, 40, 7, 7, 3, 3, {.padding = {1}}});                   // several planes at a time
  both({2, 130, 3, 4, 3, 3, {.padding = {1}}});                  // several panels of channels
  both({1, 2, 1, 50, 1, 9, {.padding = {0, 4}}});                // 1-D as 2-D
  both({1, 2, 50, 1, 9, 1, {.padding = {4, 0}}});
  both({1, 4, 3, 3, 3, 3, {.padding = {4}}});         // windows that lie outside entirely
  both({1, 3, 20, 20, 17, 13, {.padding = {8, 6}}});  // a large filter
  both({1, 3, 9, 60, 3, 3, {.padding = {1, 20}, .dilation = {1, 20}}});
  pixels_side_by_side({2, 3, 9, 11, 3, 3, {.padding = {1}}, 4});  // several filters per channel
}

TEST(Depthwise, NumbersThatAreNone) {
  for (const double odd : {kNaN, kInf, -kInf, 3e38, -0.0})
    for (const char* where : {"x", "w"})
      for (const int stride : {1, 2}) {
        const Case s{2, 17, 9, 10, 3, 3, {.stride = {stride}, .padding = {1}}};
        Inputs in = random_values(make(s, false), 3);
        in.at(where).f[137] = odd;
        both(s, &in);
      }
}

// Shapes that are too large for the kernel use another algorithm and are right.
TEST(Depthwise, HugeDilationAndManyFilters) {
  const auto net = [](int channels, int filters, int size, int dilation) {
    Graph g;
    const Tensor x = g.input("x", {1, channels, size, size});
    g.output("y", conv(x, parameter(g, "w", {channels * filters, 1, 3, 3}),
                       ConvOptions{.padding = {dilation}, .dilation = {dilation}, .groups = channels}));
    return g;
  };
  const Graph far = net(2, 1, 6, 4000), many = net(2, 8, 6, 1), near = net(2, 1, 6, 2);
  EXPECT_EQ(count(far, "conv_depthwise"), 0);
  EXPECT_EQ(count(many, "conv_depthwise"), 0);
  EXPECT_EQ(count(near, "conv_depthwise"), 1);
  for (const Graph* g : {&far, &many, &near}) agree(*g, random_values(*g, 2));
}

TEST(Depthwise, EmptyAndSymbolic) {
  Graph none;
  const Tensor x = none.input("x", {0, 3, 5, 5});
  none.output("y", conv(x, parameter(none, "w", {3, 1, 3, 3}), ConvOptions{.padding = {1}, .groups = 3}));
  agree(none, random_values(none, 1));
  Graph g;
  const Dim b = Dim::symbol("b", 0, 5), n = Dim::symbol("n", 4, 20);
  const ConvOptions o{.padding = {1}, .groups = 6};
  const Tensor w = parameter(g, "w", {6, 1, 3, 3});
  g.output("batch", relu(conv(g.input("x", {b, 6, 8, 9}), w, o)));
  g.output("image", relu(conv(g.input("z", {2, 6, n, n}), w, o)));  // a symbolic image size uses another algorithm
  EXPECT_EQ(count(g, "conv_depthwise"), 1);
  for (const int batch : {0, 1, 5}) {
    const Bindings env{{"b", batch}, {"n", 4 + batch}};
    agree(g, random_values(g, 4, env), env);
  }
}

// A block of MobileNetV2: its layout and its epilogues, with channels first and channels last.
TEST(Depthwise, InANet) {
  for (const bool grouped : {false, true})
    for (const Precision precision : {Precision::Highest, Precision::Medium}) {
      Graph g;
      int parameters = 0;
      const auto block = [&](const Tensor& x, int in, int out, int kernel, int stride, int groups) {
        const Tensor w = parameter(g, str_cat("p", parameters++), {out, in / groups, kernel, kernel});
        const Tensor y = conv(x, w, {.stride = {stride}, .padding = {kernel / 2}, .groups = groups});
        const Tensor v = parameter(g, str_cat("p", parameters++), {out});
        return batch_norm(y, v * 0.5, v * v, v, v);
      };
      Tensor x = g.input("x", {Dim::symbol("b", 1, 3), 3, 31, 34});
      x = relu6(block(x, 3, 16, 3, 2, 1));
      for (const int stride : {1, 2}) {
        Tensor y = relu6(block(x, 16, 96, 1, 1, grouped ? 2 : 1));  // a grouped convolution keeps the net's layout
        y = hardswish(block(y, 96, 96, 3, stride, 96));
        y = block(y, 96, 16, 1, 1, 1);
        x = stride == 1 ? x + y : y;
      }
      g.output("y", mean(x, {2, 3}));
      const CpuOptions o{.threads = 1, .precision = precision};
      EXPECT_EQ(count(g, "conv_depthwise_nhwc+", o), grouped ? 0 : 2);
      EXPECT_EQ(count(g, "conv_depthwise+", o), grouped ? 2 : 0);
      if (precision == Precision::Medium) continue;
      for (const int batch : {1, 3}) agree(g, random_values(g, 9, {{"b", batch}}), {{"b", batch}});
    }
}
