// Convolutions in bf16 with channels first agree with f64 on operands rounded to bf16, for every tile that this machine
// can run or emulate.
#include "lightcone/backends/cpu/conv/nchw_bf16.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "guarded.h"
#include "lightcone/backends/cpu/conv/algorithms.h"
#include "lightcone/backends/cpu/cpu.h"
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

struct Shapes {
  std::vector<int> x, w;
  ConvOptions o = {};
};
Shape shape(const std::vector<int>& v) { return {v.begin(), v.end()}; }

// Rounds the named inputs to bf16, as a bf16 product sees them.
Inputs rounded(Inputs in, const std::vector<std::string>& names) {
  for (const std::string& name : names)
    for (double& x : in.at(name).f) x = static_cast<double>(bf16_to_f32(f32_to_bf16(static_cast<float>(x))));
  return in;
}

std::vector<const Microkernel*> units() {
  std::vector<const Microkernel*> found;
  for (const Microkernel* u : microkernels())
    // kernels that multiply pairs; the convolution uses no others
    if (u->arithmetic == Arithmetic::Bf16 && u->step > 1) found.push_back(u);
  return found;
}

std::optional<ConvPlan> only_convolution(const Graph& g) {
  for (NodeId id = 0; id < g.size(); ++id)
    if (const auto s = lowering::factors(g, id))
      if (auto c = find_convolution(g, *s, this_target())) return ConvPlan{*c};
  return std::nullopt;
}

// Runs a kernel on guarded operands, with scratch that is filled with NaN.
template <class T>
std::vector<T> run(const HostKernel& k, const std::vector<const void*>& in, std::size_t count, Parallel& pool) {
  std::vector<std::int64_t> sizes;
  for (const Dim& d : k.sizes()) sizes.push_back(d.eval({}));
  test::Guarded out(count * sizeof(T), test::Against::Back);
  const auto bytes = static_cast<std::size_t>(k.scratch_bytes(pool.workers()).eval({}));
  test::Guarded scratch((bytes + 63) / 64 * 64, test::Against::Back);
  std::memset(scratch.data(), 0xff, (bytes + 63) / 64 * 64);
  k.run({in, out.data(), sizes, scratch.data(), pool});
  std::vector<T> y(count);
  std::memcpy(y.data(), out.data(), count * sizeof(T));
  return y;
}

std::vector<float> convolve(ConvPlan c, const Microkernel& unit, int workers, const Value& image, const Value& weight,
                            std::size_t size) {
  const auto pool = threads(workers);
  c.nchw_bf16 = make_nchw_bf16(c, weight.dtype == DType::BF16 ? WeightType::BF16 : WeightType::F32, unit);
  if (!c.nchw_bf16) return {};
  test::Guarded x(image.size() * 4, test::Against::Back);
  test::Guarded w(weight.size() * size_of(weight.dtype), test::Against::Front);
  write_value(image, x.data()), write_value(weight, w.data());
  const auto bytes = static_cast<std::size_t>(c.nchw_bf16->groups * c.nchw_bf16->group_bytes());
  const auto packed = run<std::byte>(*pack_nchw_bf16_kernel(c.nchw_bf16), {w.data()}, bytes, *pool);
  test::Guarded a((bytes + 63) / 64 * 64, test::Against::Front);
  std::memcpy(a.data(), packed.data(), bytes);
  return run<float>(*nchw_bf16_kernel(c, nullptr, test::blocking(*pool)), {x.data(), a.data()}, size, *pool);
}

void expect_close(const Value& want, const std::vector<float>& got, const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (std::size_t k = 0; k < got.size(); ++k) {
    const double y = static_cast<double>(got[k]), expected = want.at(k);
    if (std::isnan(expected)) ASSERT_TRUE(std::isnan(y)) << what << k << " got " << y;
    else if (std::isinf(expected)) ASSERT_EQ(y, expected) << what << k;
    else ASSERT_LE(std::abs(y - expected), want.error_at(k) * 4 + 1e-30) << what << k << " want " << expected;
  }
}

// Runs every microkernel and number of threads on one shape.
void every_unit(const Shapes& s, const Inputs* given = nullptr) {
  Graph user;
  const Tensor w = user.parameter("w", shape(s.w), DType::F32);
  user.output("y", conv(user.input("x", shape(s.x)), w, s.o));
  const Graph g = transform(user, generic()).graph;
  const Inputs in = given ? *given : random_values(g, 7);
  const auto c = only_convolution(g);
  ASSERT_TRUE(c) << g.str();
  const Value y = interpret(g, rounded(in, {"x", "w"}), {}, Rounding::Wide, true).outputs.at("y");
  for (const Microkernel* u : units()) {
    const auto one = convolve(*c, *u, 1, in.at("x"), in.at("w"), y.size());
    const auto two = convolve(*c, *u, 2, in.at("x"), in.at("w"), y.size());
    ASSERT_EQ(one.size(), y.size()) << "no pairs\n" << g.str();
    ASSERT_EQ(std::memcmp(one.data(), two.data(), one.size() * 4), 0) << "threads change bits: " << u->name;
    expect_close(y, one, str_cat(u->name, "\n", g.str()));
  }
}

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

Tensor parameter(Graph& g, const std::string& name, const Shape& s, DType t = DType::F32) {
  return g.parameter(name, s, t);
}

const bool kFast = bf16_is_fast(detect_isa());

}  // namespace

TEST(ConvPairs, GridOfShapes) {
  for (const int kernel : {1, 3, 5})
    for (const int stride : {1, 2, 3})
      for (const int padding : {0, 1, 2})
        for (const int dilation : {1, 2}) {
          if (kernel == 1 && dilation == 2) continue;
          const int size = (kernel - 1) * dilation + 4;
          every_unit({{2, 5, size, size + 17},
                      {17, 5, kernel, kernel},
                      {.stride = {stride}, .padding = {padding}, .dilation = {dilation}}});
        }
}

TEST(ConvPairs, GroupsAndOddSizes) {
  every_unit({{2, 6, 9, 11}, {27, 2, 3, 3}, {.padding = {1}, .groups = 3}});
  every_unit({{3, 12, 8, 9}, {18, 6, 1, 1}, {.groups = 2}});
  every_unit({{3, 7, 41}, {17, 7, 5}, {.stride = {2}, .padding = {2}}});  // 1-D
  every_unit({{1, 33, 7, 7}, {65, 33, 3, 3}, {.stride = {1, 2}, .padding = {1}}});
  every_unit({{5, 40, 7, 7}, {29, 40, 3, 3}, {.padding = {1}}});      // tiles with pixels of two images
  every_unit({{1, 40, 6, 70}, {29, 40, 3, 1}, {.padding = {1, 0}}});  // padding along one axis
  every_unit({{2, 70, 9, 9}, {30, 70, 1, 1}, {.stride = {2}}});
  every_unit({{2, 1, 20, 20}, {9, 1, 3, 3}, {.padding = {1}}});  // half of a pair is missing
  every_unit({{1, 3, 3, 3}, {2, 3, 3, 3}, {.padding = {3}}});    // windows that lie outside entirely
  every_unit({{1, 3, 30, 31}, {20, 3, 7, 7}, {.stride = {2}, .padding = {3}}});
  every_unit({{1, 130, 5, 6}, {40, 130, 3, 3}, {.padding = {1}}});  // several blocks of the depth
  every_unit({{2, 450, 5, 7}, {15, 450, 1, 1}});
  every_unit({{1, 18, 60, 61}, {33, 18, 3, 3}, {.padding = {1}}});  // several tasks of columns
}

// A large dilation would need scratch for all rows between its taps, so another algorithm is used.
TEST(ConvPairs, WindowsThatReachFar) {
  for (const int dilation : {30, 4000}) {
    Graph g;
    const Tensor w = parameter(g, "w", {16, 8, 3, 3});
    const ConvOptions o{.padding = {dilation, 1}, .dilation = {dilation, 1}};
    g.output("y", conv(g.input("x", {1, 8, 9, 40}), w, o));
    const Graph made = transform(g, generic() | cpu({.threads = 1, .precision = Precision::Medium})).graph;
    for (NodeId id = 0; id < made.size(); ++id)
      EXPECT_TRUE(made[id].op != Op::Kernel || made[id].kernel->scratch_bytes(1).eval({}) < 1 << 24);
    EXPECT_EQ(count(kernels(g, Precision::Medium), "conv_bf16"), kFast && dilation == 30 ? 1 : 0);
  }
}

TEST(ConvPairs, NumbersThatAreNone) {
  for (const double odd : {kNaN, kInf, -kInf, 3e38})
    for (const char* where : {"x", "w"})
      for (const int kernel : {1, 3}) {
        const Shapes s{{2, 17, 9, 10}, {30, 17, kernel, kernel}, {.padding = {kernel / 2}}};
        Graph g;
        g.output("y", conv(g.input("x", shape(s.x)), g.input("w", shape(s.w)), s.o));
        Inputs in = random_values(g, 3);
        in.at(where).f[137] = odd;
        every_unit(s, &in);
      }
}

TEST(ConvPairs, WeightsStoredInBf16) {
  const Shapes s{{2, 9, 7, 8}, {21, 9, 3, 3}, {.padding = {1}}};
  Graph user;
  user.output("y", conv(user.input("x", shape(s.x)), user.input("w", shape(s.w)), s.o));
  const Graph g = transform(user, generic()).graph;
  const Inputs in = rounded(random_values(g, 4), {"w"});
  Value narrow = make_value(DType::BF16, in.at("w").shape);
  narrow.f = in.at("w").f;
  for (const Microkernel* u : units()) {
    const auto wide = convolve(*only_convolution(g), *u, 1, in.at("x"), in.at("w"), 2 * 21 * 7 * 8);
    EXPECT_EQ(wide, convolve(*only_convolution(g), *u, 1, in.at("x"), narrow, 2 * 21 * 7 * 8)) << u->name;
  }
}

// A block of a network as a user compiles it: an epilogue and a residual, one and two threads, a symbolic batch.
TEST(ConvPairs, InAGraph) {
  for (const DType t : {DType::F32, DType::BF16})
    for (const int least : {0, 1}) {
      Graph g;
      const Dim b = Dim::symbol("b", least, 5);
      const Tensor x = g.input("x", {b, 24, 9, 10}), r = g.input("r", {b, 40, 9, 10});
      const Tensor w = parameter(g, "w", {40, 24, 3, 3}, t);
      const Tensor y = conv(x, t == DType::F32 ? w : to(w, DType::F32), ConvOptions{.padding = {1}});
      g.output("y", relu(y + parameter(g, "bias", {40}).reshape({1, 40, 1, 1}) + r));
      const auto medium = kernels(g, Precision::Medium);
      EXPECT_EQ(count(medium, "conv_bf16"), kFast ? 1 : 0);
      EXPECT_EQ(count(medium, "pack_conv_bf16"), kFast ? 1 : 0);
      if (kFast) {  // if the batch may be empty, the epilogue is not fused
        EXPECT_EQ(medium.size(), least == 0 ? 3u : 2u);
      }
      EXPECT_EQ(count(kernels(g, Precision::High), "conv_bf16"), 0);
      for (const int batch : {least, 2, 5}) {
        const Bindings env{{"b", batch}};
        const Inputs in = random_values(g, 5, env);
        const Results want = interpret(g, kFast ? rounded(in, {"x", "w"}) : in, env, Rounding::Wide, true);
        std::vector<double> first;
        for (const int workers : {1, 2}) {
          const Graph made = transform(g, generic() | cpu({.threads = workers, .precision = Precision::Medium})).graph;
          const Value got = test::run_guarded(made, in, env, test::Against::Back).outputs.at("y");
          expect_close(want.outputs.at("y"), {got.f.begin(), got.f.end()}, str_cat("batch ", batch, " at "));
          if (workers == 1) first = got.f;
          else EXPECT_EQ(first, got.f) << "threads change bits";
        }
      }
    }
}

// If many pixels share the filters, Winograd in f32 is faster and is chosen, unless it is disabled. This holds for a
// processor with AVX-512 bf16 products and without tiles.
TEST(ConvPairs, LeavesWinogradWhatItDoesFaster) {
  Target zen4;
  zen4.isa = Isa::Avx512, zen4.avx512_vnni = zen4.avx512_bf16 = zen4.fast_bf16 = true;
  for (const int size : {28, 112})
    for (const bool winograd : {true, false}) {
      Graph g;
      g.output("y", conv(g.input("x", {1, 256, size, size}), parameter(g, "w", {256, 256, 3, 3}), {.padding = {1}}));
      CpuOptions o{.threads = 1, .winograd = winograd, .precision = Precision::Medium};
      o.compiler = false, o.target = zen4, o.machine = Machine{};
      const std::string all = transform(g, generic() | cpu(o)).graph.str();
      EXPECT_EQ(all.find("conv_bf16") != std::string::npos, size == 28 || !winograd);
    }
}

// Filters that a run replaces are packed in every run.
TEST(ConvPairs, FiltersThatChange) {
  Graph g;
  const Tensor w = parameter(g, "w", {16, 8, 3, 3});
  g.assign(w, g.input("next", {16, 8, 3, 3}));
  g.output("y", conv(g.input("x", {1, 8, 9, 9}), w, {.padding = {1}}));
  const Inputs in = random_values(g, 3);
  const Results want = interpret(g, kFast ? rounded(in, {"x", "w"}) : in, {}, Rounding::Wide, true);
  const Graph made = transform(g, generic() | cpu({.threads = 1, .precision = Precision::Medium})).graph;
  const Value got = test::run_guarded(made, in, {}, test::Against::Back).outputs.at("y");
  expect_close(want.outputs.at("y"), {got.f.begin(), got.f.end()}, "at ");
}

// A batch that exceeds any memory gives an Error from the memory plan, not an arithmetic overflow.
TEST(ConvPairs, ABatchWithoutEnd) {
  for (const Precision precision : {Precision::Highest, Precision::Medium}) {
    Graph g;
    const Tensor x = g.input("x", {Dim::symbol("b", 1, std::int64_t{1} << 60), 64, 28, 28});
    Tensor y = conv(x, parameter(g, "wide", {512, 64, 1, 1}));
    y = conv(y, parameter(g, "narrow", {64, 512, 1, 1}));  // makes the f32 graph change to channels last
    g.output("y", conv(y, parameter(g, "w", {64, 64, 3, 3}), {.padding = {1}}));
    EXPECT_THROW(compile(g, generic() | cpu({.threads = 1, .precision = precision})), Error);
  }
}

TEST(ConvPairs, OnlyWhereAParameterIsReadOnceAndAllIsKnown) {
  const auto in_bf16 = [](const std::function<void(Graph&)>& build) {
    Graph g;
    build(g);
    return count(kernels(g, Precision::Medium), "conv_bf16");
  };
  const ConvOptions o{.padding = {1}};
  EXPECT_EQ(in_bf16([&](Graph& g) {
              g.output("y", conv(g.input("x", {1, 8, 9, 9}), parameter(g, "w", {16, 8, 3, 3}), o));
            }),
            kFast ? 1 : 0);
  EXPECT_EQ(in_bf16([&](Graph& g) {
              g.output("y", conv(g.input("x", {1, 8, 9, 9}), g.input("w", {16, 8, 3, 3}), o));
            }),
            0);
  EXPECT_EQ(in_bf16([&](Graph& g) {
              const Tensor w = parameter(g, "w", {16, 8, 3, 3}), x = g.input("x", {1, 8, 9, 9});
              g.output("y", conv(x, w, o)), g.output("z", conv(relu(x), w, o));
            }),
            0);
  EXPECT_EQ(in_bf16([&](Graph& g) {
              const Dim n = Dim::symbol("n", 4, 40);
              g.output("y", conv(g.input("x", {1, 8, n, n}), parameter(g, "w", {16, 8, 3, 3}), o));
            }),
            0);
  EXPECT_EQ(in_bf16([&](Graph& g) {  // depthwise
              g.output("y", conv(g.input("x", {1, 8, 9, 9}), parameter(g, "w", {8, 1, 3, 3}),
                                 ConvOptions{.padding = {1}, .groups = 8}));
            }),
            0);
}
