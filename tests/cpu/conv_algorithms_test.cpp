// Every algorithm of convolutions is chosen for some shape, and a kernel explains why each of the others was refused.
#include "lightcone/backends/cpu/conv/algorithms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "lightcone/autograd/autograd.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/device/kernel.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"
#include "random_inputs.h"

namespace lc {
namespace {

using backends::cpu::ConvAlgorithm;
using backends::cpu::Isa;
using backends::cpu::kConvAlgorithms;
using backends::cpu::Target;

// A processor with AVX-512 bf16 products and without tiles. No choice depends on the machine that runs the test.
CpuOptions zen4(Precision precision = Precision::Highest) {
  CpuOptions o{.threads = 1, .compiler = false, .precision = precision};
  o.target = Target();
  o.target->isa = Isa::Avx512;
  o.target->avx512_vnni = o.target->avx512_bf16 = o.target->fast_bf16 = o.target->halves_512 = true;
  o.machine = Machine{};
  return o;
}

// A processor with tile registers, whose bf16 products of vectors are slower than those of f32.
CpuOptions sapphire_rapids(Precision precision) {
  CpuOptions o = zen4(precision);
  o.target->amx = true, o.target->fast_bf16 = o.target->halves_512 = false;
  return o;
}

Tensor parameter(Graph& g, const std::string& name, const Shape& s) { return g.parameter(name, s, DType::F32); }

using Choice = std::vector<std::string>;
std::vector<Choice> choices(const Graph& g, const CpuOptions& o) {
  const Graph made = transform(g, generic() | cpu(o)).graph;
  std::vector<Choice> all;
  for (NodeId id = 0; id < made.size(); ++id)
    if (made[id].op == Op::Kernel && !made[id].kernel->choice.empty()) all.push_back(made[id].kernel->choice);
  return all;
}

// One convolution with contiguous pixels. A graph whose filters are not a parameter never changes to channels last.
struct Layer {
  Shape x, w;
  ConvOptions o = {};
  bool parameter = false;
};
Graph graph(const Layer& l) {
  Graph g;
  g.output("y", conv(g.input("x", l.x), l.parameter ? parameter(g, "w", l.w) : g.input("w", l.w), l.o));
  return g;
}
Choice choice(const Layer& l, const CpuOptions& o = zen4()) {
  const std::vector<Choice> all = choices(graph(l), o);
  return all.size() == 1 ? all[0] : Choice{"none"};
}

// Convolutions with channels last: the first one makes the whole net gain by that.
Graph channels_last(const Dim& channels, const ConvOptions& last, const Shape& filters) {
  Graph g;
  Tensor y = g.input("x", {4, 28, 28, channels}).permute({0, 3, 1, 2});
  y = relu(conv(y, parameter(g, "wide", {512, channels, 7, 7}), {.padding = {3}}));
  y = relu(conv(y, parameter(g, "narrow", {channels, 512, 1, 1}), ConvOptions{}));
  g.output("y", conv(y, parameter(g, "w", filters), last));
  return g;
}

bool has(const Choice& c, const std::string& line) { return std::find(c.begin(), c.end(), line) != c.end(); }
std::string str(const Choice& c) {
  std::string s;
  for (const std::string& line : c) s += line + "\n";
  return s;
}
void expect_line(const Layer& l, const std::string& line, const CpuOptions& o = zen4()) {
  const Choice c = choice(l, o);
  EXPECT_TRUE(has(c, line)) << line << "\n" << str(c);
}

const Layer kDense{{2, 64, 56, 56}, {64, 64, 3, 3}, {.padding = {1}}, true};

TEST(ConvAlgorithms, EachIsChosenForSomeShape) {
  std::set<std::string> seen;
  const auto expect = [&](const std::string& name, const std::vector<Choice>& all) {
    const bool found = std::any_of(all.begin(), all.end(), [&](const Choice& c) { return c[0] == name; });
    EXPECT_TRUE(found) << name;
    for (const Choice& c : all) EXPECT_TRUE(found) << str(c);
    if (found) seen.insert(name);
  };
  const auto of = [](const Layer& l, Precision p = Precision::Highest) { return choices(graph(l), zen4(p)); };
  expect("winograd", of(kDense));
  expect("slide", of({{1, 8, 20, 20}, {24, 8, 5, 5}, {.padding = {2}}}));
  expect("direct", of({{1, 64, 64, 64}, {32, 64, 1, 1}, {.stride = {1}, .padding = {1}}}));
  expect("depthwise", of({{1, 32, 56, 56}, {32, 1, 3, 3}, {.padding = {1}, .groups = 32}}));
  expect("nchw_bf16", of({{1, 64, 14, 14}, {64, 64, 3, 3}, {.padding = {1}}, true}, Precision::Medium));
  const ConvOptions plain{.padding = {1}}, strided{.stride = {2}, .padding = {1}};
  expect("nhwc", choices(channels_last(32, strided, {32, 32, 3, 3}), zen4()));
  expect("winograd_nhwc", choices(channels_last(256, plain, {256, 256, 3, 3}), zen4()));
  expect("depthwise_nhwc", choices(channels_last(32, {.padding = {1}, .groups = 32}, {32, 1, 3, 3}), zen4()));
  expect("nhwc_bf16", choices(channels_last(32, plain, {32, 32, 3, 3}), zen4(Precision::Medium)));
  Graph g;
  const Tensor w = parameter(g, "w", {16, 16, 3, 3});
  const Tensor y = conv(g.input("x", {4, 16, 32, 32}), w, {.padding = {1}});
  g.output("dw", vjp({y}, {w}, {g.input("dy", {4, 16, 32, 32})})[0]);
  expect("filter_gradient", choices(g, zen4()));
  if (!backends::cpu::tiles_refused()) {
    const CpuOptions tiles = sapphire_rapids(Precision::Medium);
    expect("nhwc_registers", choices(channels_last(32, plain, {32, 32, 3, 3}), tiles));
    expect("filter_gradient_registers", choices(g, tiles));
  } else {
    seen.insert({"nhwc_registers", "filter_gradient_registers"});
  }
  for (const ConvAlgorithm& a : kConvAlgorithms) EXPECT_TRUE(seen.contains(std::string(a.name))) << a.name;
}

// Winograd's algorithm in f32 is chosen over bf16 products of large layers where arithmetic is slow beside memory.
TEST(ConvAlgorithms, WinogradBesideBf16) {
  Graph g;
  Tensor y = g.input("x", {4, 56, 56, 128}).permute({0, 3, 1, 2});
  for (const char* name : {"a", "b"}) y = relu(conv(y, parameter(g, name, {128, 128, 3, 3}), {.padding = {1}}));
  g.output("y", y);
  CpuOptions zen5 = zen4(Precision::Medium);
  zen5.target->halves_512 = false;
  for (const Choice& c : choices(g, zen4(Precision::Medium))) EXPECT_EQ(c[0], "winograd_nhwc") << str(c);
  for (const Choice& c : choices(g, zen5)) EXPECT_EQ(c[0], "nhwc_bf16") << str(c);
}

// The explanation has a line for each of the others, in the order of the table.
TEST(ConvAlgorithms, AllOthersAreExplained) {
  for (const Precision precision : {Precision::Highest, Precision::Medium})
    for (const Layer& l : {kDense, Layer{{1, 3, 20, 20}, {8, 3, 5, 5}, {.padding = {2}}},
                           Layer{{1, 32, 9, 9}, {32, 1, 3, 3}, {.padding = {1}, .groups = 32}}}) {
      const Choice c = choice(l, zen4(precision));
      ASSERT_EQ(c.size(), kConvAlgorithms.size()) << str(c);
      std::size_t line = 1;
      for (const ConvAlgorithm& a : kConvAlgorithms) {
        if (a.name == c[0]) continue;
        EXPECT_TRUE(c[line].starts_with(str_cat(a.name, ": "))) << c[line];
        EXPECT_GT(c[line].size(), a.name.size() + 10) << c[line];
        ++line;
      }
    }
}

TEST(ConvAlgorithms, SayWhyTheyRefuse) {
  const ConvOptions padded{.padding = {1}};
  expect_line({{1, 64, 56, 56}, {64, 64, 3, 3}, {.stride = {2}, .padding = {1}}}, "winograd: the stride is 2");
  expect_line({{1, 64, 57, 57}, {64, 64, 3, 3}, {.stride = {2}}}, "winograd: the stride is 2");
  expect_line({{1, 64, 56, 56}, {64, 64, 3, 3}, {.padding = {2}, .dilation = {2}}}, "winograd: the dilation is 2");
  expect_line({{1, 64, 56, 56}, {64, 64, 5, 5}, {.padding = {2}}},
              "winograd: the sums are not over channels and 3x3 taps");
  expect_line({{1, 3, 56, 56}, {64, 3, 3, 3}, padded}, "winograd: there are fewer than 16 channels");
  expect_line({{1, 64, 56, 56}, {8, 64, 3, 3}, padded}, "winograd: there are fewer than 16 filters");
  expect_line({{1, 64, 56, 56}, {64, 64, 3, 3}, {.padding = {2}}},
              "winograd: a window may lie entirely in the padding");
  CpuOptions exact = zen4();
  exact.winograd = false;
  expect_line(kDense, "winograd: CpuOptions::winograd is false", exact);
  expect_line(kDense, "depthwise: 64 filters read each channel; more than 4 are a matrix product");
  expect_line(kDense, "nhwc: the channels are not last");
  expect_line(kDense, "nchw_bf16: the precision is not medium");
  expect_line(kDense, "filter_gradient: the filters are a parameter, which is packed");
  CpuOptions old = zen4(Precision::Medium);
  old.target = Target();
  old.target->isa = Isa::Avx2;
  expect_line(kDense, "nchw_bf16: bf16 products are not faster than f32 on this processor", old);
  expect_line({{1, 256, 112, 112}, {256, 256, 3, 3}, padded, true},
              "nchw_bf16: Winograd in f32 is faster for so many pixels and channels", zen4(Precision::Medium));
  expect_line({{1, 1, 56, 56}, {64, 1, 3, 3}, padded, true},
              "nhwc_bf16: a pixel has no pairs of channels, or a window is too long", zen4(Precision::Medium));
  expect_line({{1, 64, 64, 64}, {32, 64, 1, 1}, padded},
              "slide: windows do not overlap, and a result has more than 1,024 pixels");
}

// Where sizes are symbolic, the choice is that of the largest sizes, and runs choose again.
TEST(ConvAlgorithms, RunsOfSymbolicSizesChooseAgain) {
  const Dim n = Dim::symbol("n", 8, 64);
  const Choice c = choice({{1, 64, n, n}, {64, 64, 3, 3}, {.padding = {1}}, true});
  EXPECT_EQ(c[0], "winograd, for the largest sizes; each run chooses again among slide, direct, winograd");
}

TEST(ConvAlgorithms, ProfilesTellTheChoice) {
  const Layer l{{1, 20, 9, 9}, {24, 20, 3, 3}, {.stride = {2}, .padding = {1}}};
  CpuOptions o{.threads = 1, .compiler = false};
  o.target = Target(), o.machine = Machine{};
  const Program p = compile(graph(l), generic() | cpu(o));
  Context c(p);
  for (const auto& [name, v] : test::random_values(graph(l), 1))
    c.set(name, std::vector<float>(v.f.begin(), v.f.end()));
  c.profile(true);
  c.run();
  const Profile found = c.profile();
  EXPECT_NE(found.choices().find("conv [1, 20, 9, 9] x [24, 20, 3, 3]: "), std::string::npos) << found.choices();
  EXPECT_NE(found.choices().find("\n  winograd: the stride is 2\n"), std::string::npos) << found.choices();
  EXPECT_NE(found.json({}).find("\"winograd: the stride is 2\""), std::string::npos) << found.json({});
}

}  // namespace
}  // namespace lc
