// Convolutions in bf16 with channels last agree with f64 on operands rounded to bf16, for every tile that this machine
// can run.
#include "lightcone/backends/cpu/conv/nhwc_bf16.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "guarded.h"
#include "lightcone/backends/cpu/conv/algorithms.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/backends/cpu/products/microkernel.h"
#include "lightcone/backends/cpu/threads/thread_pool.h"
#include "lightcone/device/host_kernel.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"
#include "lightcone/verify/verify.h"
#include "other_caches.h"
#include "random_inputs.h"

using namespace lc;
using namespace lc::backends::cpu;
using lc::test::Inputs;
using lc::test::random_values;

namespace {

struct Shapes {
  std::vector<int> x, w;
  ConvOptions o = {};
};
Shape shape(const std::vector<int>& v) { return {v.begin(), v.end()}; }

Tensor parameter(Graph& g, const std::string& name, const Shape& s, DType t = DType::F32) {
  const Tensor p = g.parameter(name, s, t);
  return t == DType::F32 ? p : to(p, DType::F32);
}

// Rounds the named inputs to bf16, as a bf16 product sees them.
Inputs rounded(Inputs in, const std::vector<std::string>& names) {
  for (const std::string& name : names)
    for (double& x : in.at(name).f) x = static_cast<double>(bf16_to_f32(f32_to_bf16(static_cast<float>(x))));
  return in;
}

void expect_number(double got, double want, double error, const std::string& at) {
  if (std::isnan(want)) ASSERT_TRUE(std::isnan(got)) << at << " got " << got;
  else if (std::isinf(want)) ASSERT_EQ(got, want) << at;
  else ASSERT_LE(std::abs(got - want), error * 4 + 1e-30) << at << " want " << want << " got " << got;
}

// Runs a kernel on guarded operands, with scratch that is filled with NaN.
std::vector<float> run(const HostKernel& k, const std::vector<const void*>& in, std::size_t count, Parallel& pool) {
  std::vector<std::int64_t> sizes;
  for (const Dim& d : k.sizes()) sizes.push_back(d.eval({}));
  test::Guarded out(count * 4, test::Against::Back);
  const auto bytes = (static_cast<std::size_t>(k.scratch_bytes(pool.workers()).eval({})) + 63) / 64 * 64;
  test::Guarded scratch(bytes, test::Against::Back);
  std::memset(scratch.data(), 0xff, bytes);
  k.run({in, out.data(), sizes, scratch.data(), pool});
  std::vector<float> y(count);
  std::memcpy(y.data(), out.data(), count * 4);
  return y;
}

// Returns the plan of convolution "y" after the channels-last pass. A large convolution that gains by the pass is
// added.
std::optional<ConvPlan> turned(const Shapes& s, bool image_last, DType stored) {
  Graph g;
  const int n = s.x[0], channels = s.x[1], height = s.x[2], width = s.x[3];
  const Tensor x =
      image_last ? g.input("x", shape({n, height, width, channels})).permute({0, 3, 1, 2}) : g.input("x", shape(s.x));
  g.output("y", conv(x, parameter(g, "w", shape(s.w), stored), s.o));
  g.output("z", conv(g.input("large", {1, 300, 300, 4}).permute({0, 3, 1, 2}), parameter(g, "v", {64, 4, 7, 7}),
                     ConvOptions{.padding = {1}}));
  PassLog log;
  const std::optional<Graph> all = channels_last(transform(g, generic()).graph, log, this_target(), Precision::Medium);
  if (!all) return std::nullopt;
  for (NodeId id = 0; id < all->size(); ++id)
    if (const auto both = lowering::factors(*all, id))
      if (auto c = find_convolution(*all, *both, this_target());
          c && c->channels_last && (*all)[c->weight_node].name == "w")
        return ConvPlan{*c};
  return std::nullopt;
}

Value channels_behind(const Value& x, const std::vector<int>& s) {
  Value y = x;
  for (int b = 0; b < s[0]; ++b)
    for (int i = 0; i < s[1]; ++i)
      for (int p = 0; p < s[2] * s[3]; ++p)
        y.f[static_cast<std::size_t>((b * s[2] * s[3] + p) * s[1] + i)] =
            x.f[static_cast<std::size_t>((b * s[1] + i) * s[2] * s[3] + p)];
  return y;
}

std::vector<float> convolve(const ConvPlan& c, Isa isa, int workers, const Value& image, const Value& weight,
                            std::size_t size) {
  PackedFilters f;  // as packed_filters() returns it for a graph, for any instruction set
  const auto s = *nhwc_shape(c);
  f.offset = *c.weight_offset.constant(), f.rows = s.rows, f.row = *c.rows.weight.constant();
  for (const auto& sum : s.sums) f.sums.push_back({sum.extent, sum.weight});
  f.channels_last = f.bf16 = true, f.stored = c.stored;
  f.depth = s.depth / f.sums.back()[0] * f.words();
  const auto pool = threads(workers);
  test::Guarded x(image.size() * 4, test::Against::Back);
  test::Guarded w(weight.size() * size_of(weight.dtype), test::Against::Front);
  write_value(image, x.data()), write_value(weight, w.data());
  const auto floats = static_cast<std::size_t>(f.floats(f.panel(isa)));
  const auto packed = run(*pack_weights_kernel(f, isa), {w.data()}, floats, *pool);
  test::Guarded a(floats * 4, test::Against::Back);
  std::memcpy(a.data(), packed.data(), floats * 4);
  return run(*nhwc_bf16_kernel(c, nullptr, isa, test::blocking(*pool)), {x.data(), a.data()}, size, *pool);
}

// Runs every tile size and number of threads on one shape, with weights in f32 and in bf16.
void every_tile(const Shapes& s, bool image_last = true, const Inputs* given = nullptr) {
  Graph user;
  user.output("y", conv(user.input("x", shape(s.x)), user.input("w", shape(s.w)), s.o));
  const Inputs in = rounded(given ? *given : random_values(user, 7), {"w"});
  const Value y = interpret(user, rounded(in, {"x"}), {}, Rounding::Wide, true).outputs.at("y");
  Value narrow = make_value(DType::BF16, in.at("w").shape);
  narrow.f = in.at("w").f;
  const Value image = image_last ? channels_behind(in.at("x"), s.x) : in.at("x");
  const auto wide = turned(s, image_last, DType::F32), half = turned(s, image_last, DType::BF16);
  ASSERT_TRUE(wide && half && !nhwc_bf16_refusal(*wide)) << user.str();
  const auto rows = static_cast<std::size_t>(s.w[0]);
  const std::size_t pixels = y.size() / rows / static_cast<std::size_t>(s.x[0]);
  for (const Isa isa : isas()) {
    const std::string what = str_cat(nhwc_bf16_table(isa).name, "\n", user.str());
    const auto one = convolve(*wide, isa, 1, image, in.at("w"), y.size());
    ASSERT_EQ(std::memcmp(one.data(), convolve(*wide, isa, 2, image, in.at("w"), y.size()).data(), y.size() * 4), 0)
        << "threads change bits: " << what;
    ASSERT_EQ(std::memcmp(one.data(), convolve(*half, isa, 1, image, narrow, y.size()).data(), y.size() * 4), 0)
        << "as stored: " << what;
    for (std::size_t k = 0; k < one.size(); ++k) {
      const std::size_t b = k / rows / pixels, p = k / rows % pixels, at = (b * rows + k % rows) * pixels + p;
      expect_number(static_cast<double>(one[k]), y.at(at), y.error_at(at), str_cat(at, " ", what));
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

const bool kFast = bf16_dots_are_fast(detect_isa());

std::vector<std::string> kernels(const Graph& g, Precision p) {
  const Graph made = transform(g, generic() | cpu({.threads = 1, .precision = p})).graph;
  std::vector<std::string> names;
  for (NodeId id = 0; id < made.size(); ++id)
    if (made[id].op == Op::Kernel) names.push_back(made[id].kernel->name());
  return names;
}
int count(const std::vector<std::string>& names, const std::string& begin) {
  int n = 0;
  for (const std::string& name : names) n += name.starts_with(begin);
  return n;
}

// A net of several convolutions, one of them depthwise, with all kinds of epilogues.
Graph net(DType stored, const Dim& batch) {
  Graph g;
  Tensor x = g.input("x", {batch, 3, 30, 27});
  x = max_pool(relu(conv(x, parameter(g, "stem", {18, 3, 7, 7}, stored), {.stride = {2}, .padding = {3}})), {3}, {2},
               {1});
  Tensor y = relu(conv(x, parameter(g, "a", {90, 18, 1, 1}, stored)));
  y = relu(conv(y, parameter(g, "deep", {90, 1, 3, 3}, stored), {.padding = {1}, .groups = 90}));
  y = relu(conv(y, parameter(g, "b", {90, 90, 3, 3}, stored), {.padding = {1}}) +
           parameter(g, "bias", {90}).reshape({1, 90, 1, 1}));
  y = conv(y, parameter(g, "c", {33, 90, 1, 1}, stored), {.stride = {2}});
  x = relu(y + conv(x, parameter(g, "down", {33, 18, 1, 1}, stored), {.stride = {2}}));
  g.output("y", x);  // the result is needed with channels first
  g.output("m", mean(x, {2, 3}));
  return g;
}

}  // namespace

TEST(ConvLastBf16, GridOfShapes) {
  for (const int kernel : {1, 3, 5})
    for (const int stride : {1, 2, 3})
      for (const int padding : {0, 1, 2})
        for (const int dilation : {1, 2}) {
          if (kernel == 1 && dilation == 2) continue;
          const int size = (kernel - 1) * dilation + 4;
          every_tile({{2, 5, size, size + 13},
                      {19, 5, kernel, kernel},
                      {.stride = {stride}, .padding = {padding}, .dilation = {dilation}}});
        }
}

TEST(ConvLastBf16, OddSizes) {
  every_tile({{2, 3, 15, 18}, {70, 3, 7, 7}, {.stride = {2}, .padding = {3}}}, false);  // a colour image
  every_tile({{1, 70, 6, 35}, {9, 70, 3, 3}, {.padding = {1}}}, false);
  every_tile({{1, 300, 7, 7}, {130, 300, 1, 1}});  // several blocks of taps
  every_tile({{3, 141, 7, 8}, {125, 141, 3, 3}, {.stride = {2, 1}, .padding = {1, 2}}});
  every_tile({{7, 40, 29, 31}, {33, 40, 3, 3}, {.stride = {2}, .padding = {1}}});  // several tasks
  every_tile({{9, 34, 7, 7}, {65, 34, 3, 3}, {.padding = {1}}});                   // several tasks of several images
  every_tile({{2, 2, 3, 3}, {8, 2, 3, 3}, {.padding = {3}}});                      // windows that lie outside entirely
  every_tile({{1, 40, 6, 70}, {29, 40, 3, 5}, {.padding = {1, 2}, .dilation = {2, 1}}});
  every_tile({{2, 64, 9, 9}, {64, 64, 1, 1}, {.stride = {2}}});
}

TEST(ConvLastBf16, NumbersThatAreNone) {
  for (const double odd : {kNaN, kInf, -kInf, 3e38, -0.0, 1e-40})
    for (const char* where : {"x", "w"})
      for (const int kernel : {1, 3}) {
        const Shapes s{{2, 17, 9, 10}, {30, 17, kernel, kernel}, {.padding = {kernel / 2}}};
        Graph g;
        g.output("y", conv(g.input("x", shape(s.x)), g.input("w", shape(s.w)), s.o));
        Inputs in = random_values(g, 3);
        in.at(where).f[153] = odd;  // for weights: the first element of a filter, next to a pair that is only half used
        every_tile(s, true, &in);
      }
}

TEST(ConvLastBf16, WhatDoesNotFit) {
  const auto one = turned({{1, 1, 9, 9}, {8, 1, 3, 3}, {.padding = {1}}}, true, DType::F32);
  EXPECT_TRUE(!one || nhwc_bf16_refusal(*one));  // one channel has no pairs
  const auto far =
      turned({{1, 32, 9, 40}, {8, 32, 3, 3}, {.padding = {300, 1}, .dilation = {300, 1}}}, true, DType::F32);
  EXPECT_TRUE(far && nhwc_bf16_refusal(*far));  // the dilation is too large
}

// A net as a user compiles it: one and two threads, a symbolic batch, an empty batch.
TEST(ConvLastBf16, ANet) {
  for (const DType stored : {DType::F32, DType::BF16})
    for (const bool symbol : {false, true}) {
      const Graph g = net(stored, symbol ? Dim::symbol("b", 0, 3) : Dim(2));
      const auto made = kernels(g, Precision::Medium);
      // on registers neither products nor windows that are not padded
      const bool registers = !kFast && on_tiles(*microkernel(Arithmetic::Bf16, this_target()));
      EXPECT_EQ(count(made, "conv_nhwc_bf16"), kFast ? 5 : registers ? 4 : 0) << g.str();
      if (kFast) {
        EXPECT_EQ(count(made, "conv_depthwise_nhwc"), 1);
      }
      EXPECT_EQ(count(kernels(g, Precision::High), "conv_nhwc_bf16"), 0);
      for (const int batch : {0, 1, 2, 3}) {
        if (!symbol && batch != 2) continue;
        const Bindings env{{"b", batch}};
        const Inputs in = random_values(g, 5, env);
        const Results want = interpret(g, in, env, Rounding::Wide, true);
        Results first;
        for (const int workers : {1, 2}) {
          const Graph all = transform(g, generic() | cpu({.threads = workers, .precision = Precision::Medium})).graph;
          const Results got = test::run_guarded(all, in, env, test::Against::Back);
          for (const auto& [name, v] : want.outputs) {
            double most = 0;
            for (std::size_t k = 0; k < v.size(); ++k) most = std::max(most, std::abs(v.at(k)));
            for (std::size_t k = 0; k < v.size(); ++k)  // five roundings of 2^-9 in sequence
              ASSERT_NEAR(got.outputs.at(name).at(k), v.at(k), 0.02 * most) << name << k;
          }
          if (workers == 1) first = got;
          for (const auto& [name, v] : got.outputs) EXPECT_EQ(first.outputs.at(name).f, v.f) << "threads change bits";
        }
      }
    }
}

// More pixels than an epilogue on tile registers has at a time, rows whose last register overlaps, and a residual.
TEST(ConvLastBf16, AWideNet) {
  Graph g;
  Tensor x = g.input("x", {2, 23, 50, 32}).permute({0, 3, 1, 2});
  x = relu(conv(x, parameter(g, "a", {40, 32, 3, 3}), {.padding = {1}}));
  x = relu(x + conv(x, parameter(g, "b", {40, 40, 3, 3}), {.padding = {1}}) + parameter(g, "bias", {40, 1, 1}));
  g.output("y", x);
  const bool registers = !kFast && on_tiles(*microkernel(Arithmetic::Bf16, this_target()));
  EXPECT_EQ(count(kernels(g, Precision::Medium), "conv_nhwc_bf16"), kFast || registers ? 2 : 0);
  const Inputs in = random_values(g, 6);
  const Value want = interpret(g, in, {}, Rounding::Wide, true).outputs.at("y");
  std::vector<double> first;
  double most = 0;
  for (std::size_t k = 0; k < want.size(); ++k) most = std::max(most, std::abs(want.at(k)));
  for (const int workers : {1, 2}) {
    const Graph all = transform(g, generic() | cpu({.threads = workers, .precision = Precision::Medium})).graph;
    const Value got = test::run_guarded(all, in, {}, test::Against::Back).outputs.at("y");
    for (std::size_t k = 0; k < want.size(); ++k) ASSERT_NEAR(got.at(k), want.at(k), 0.02 * most) << k;
    if (workers == 1) first = got.f;
    EXPECT_EQ(first, got.f) << "threads change bits";
  }
}

// What convolutions alone read is rounded where it is computed, with the same bits: through a maximum, too, in several
// tasks and chunks of panels, with 40 channels in planes of 32, and with a stride.
TEST(ConvLastBf16, ValuesStayBf16) {
  const Dim batch = Dim::symbol("b", 1, 3);
  Graph g;
  const auto filters = [&](const char* name, int to, int from, int side) {
    return parameter(g, name, {to, from, side, side}, DType::BF16);
  };
  Tensor x = relu(conv(g.input("x", {batch, 3, 46, 50}), filters("a", 40, 3, 3), {.padding = {1}}));
  x = relu(conv(x, filters("b", 300, 40, 3), {.padding = {1}}) + parameter(g, "bias", {300, 1, 1}));
  x = relu(conv(max_pool(x, {3}, {2}, {1}), filters("c", 36, 300, 1)));
  x = relu(conv(x, filters("d", 44, 36, 5), {.stride = {2}, .padding = {2}}));
  const Tensor y = relu(conv(x, filters("e", 22, 44, 1), {.stride = {2}}));  // half of what reads d
  x = relu(conv(x, filters("f", 22, 44, 3), {.stride = {2}, .padding = {1}}) + y);
  g.output("y", mean(x, {2, 3}));  // neither y nor x is read by a convolution
  const bool registers = !kFast && on_tiles(*microkernel(Arithmetic::Bf16, this_target()));
  for (const int workers : {1, 2}) {
    const Compiler c = generic() | cpu({.threads = workers, .precision = Precision::Medium});
    const Compiled made = transform(g, c);
    const Graph wide = transform(g, c, {.skip = {"bf16-propagation"}}).graph;
    // a, b, the maximum, c and d; on registers c is a product, which may compute what it reads itself
    EXPECT_EQ(fired(made.log, "value kept in bf16"), kFast ? 5 : registers ? 4 : 0) << report(made.log);
    int narrow = 0;
    for (NodeId id = 0; id < made.graph.size(); ++id) {
      const Node& n = made.graph[id];
      narrow += n.op == Op::Kernel && n.dtype == DType::BF16 && n.kernel->name().starts_with("conv");
    }
    EXPECT_EQ(narrow, kFast ? 4 : registers ? 3 : 0) << "without an epilogue each is rounded by a loop";
    for (const int b : {1, 3}) {
      const Bindings env{{"b", b}};
      Inputs in = random_values(g, 9, env);
      for (std::size_t k = 0; b > 1 && k < 5; ++k)  // in the first image
        in.at("x").f[700 * k] = std::array{kNaN, kInf, -kInf, -0.0, 1e-40}[k];
      const Results got = test::run_guarded(made.graph, in, env, test::Against::Back);
      const Results want = test::run_guarded(wide, in, env, test::Against::Back);
      const std::vector<double>&g0 = got.outputs.at("y").f, &w0 = want.outputs.at("y").f;
      ASSERT_EQ(std::memcmp(g0.data(), w0.data(), g0.size() * sizeof(double)), 0) << "batch " << b;
      EXPECT_TRUE(std::isfinite(g0.back()) && g0.back() != 0) << "the last image has only ordinary numbers";
    }
    if (workers > 1 || registers) continue;  // emulated registers take half a minute
    const VerifyReport all = verify(g, c, {.trials = 2, .sizes = {{"b", 1}}, .products = 0x1p-8});
    EXPECT_TRUE(all.ok()) << all.str();
  }
}

// The same for products on registers, of more rows than a worker packs at a time. A norm stays with its product, and
// products of the same rows in one kernel.
TEST(ConvLastBf16, RowsStayBf16) {
  Graph g;
  const auto dense = [&](const Tensor& x, const char* name, int to, int from) {
    return linear(x, parameter(g, name, {to, from}, DType::BF16), parameter(g, str_cat(name, ".bias"), {to}));
  };
  const Tensor x = g.input("x", {3, 43, 72});
  const Tensor norm = layer_norm(x, {72});
  const Tensor y = x + dense(gelu(dense(norm, "up", 600, 72)), "down", 72, 600);
  const Tensor z = relu(dense(y, "in", 40, 72));
  g.output("y", dense(relu(dense(z, "left", 33, 40)) * dense(z, "right", 33, 40), "out", 20, 33));
  const bool registers = on_tiles(*microkernel(Arithmetic::Bf16, this_target()));
  for (const int workers : {1, 3}) {
    const Compiler c = generic() | cpu({.threads = workers, .precision = Precision::Medium});
    const Compiled made = transform(g, c);
    // what down, in, and left and right read; not what out reads
    EXPECT_EQ(fired(made.log, "value kept in bf16"), registers ? 3 : 0) << report(made.log);
    EXPECT_EQ(fired(made.log, "rows made in the product"), 1);
    EXPECT_EQ(fired(made.log, "products of the same rows"), 1);
    Inputs in = random_values(g, 9);
    for (std::size_t k = 0; k < 5; ++k) in.at("x").f[700 * k] = std::array{kNaN, kInf, 3e38, -0.0, 1e-40}[k];
    const Graph wide = transform(g, c, {.skip = {"bf16-propagation"}}).graph;
    const std::vector<double> got = test::run_guarded(made.graph, in, {}, test::Against::Back).outputs.at("y").f;
    const std::vector<double> want = test::run_guarded(wide, in, {}, test::Against::Back).outputs.at("y").f;
    ASSERT_EQ(std::memcmp(got.data(), want.data(), got.size() * sizeof(double)), 0);
    EXPECT_TRUE(std::isfinite(got.back()) && got.back() != 0) << "the last row has only ordinary numbers";
    if (workers > 1) continue;
    const VerifyReport all = verify(g, c, {.trials = 2, .products = 0x1p-8});
    EXPECT_TRUE(all.ok()) << all.str();
  }
}

// A single convolution with channels first gains nothing by the pass.
TEST(ConvLastBf16, NotForOneConvolution) {
  Graph g;
  g.output("y", conv(g.input("x", {1, 8, 9, 9}), parameter(g, "w", {16, 8, 3, 3}), {.padding = {1}}));
  EXPECT_EQ(count(kernels(g, Precision::Medium), "conv_nhwc_bf16"), 0);
}
