// Programs for tile registers agree with the f64 reference: training steps, whose convolutions and gradients are
// multiplied in bf16 with channels last, and products of f32 whose weights are split when they are loaded.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "lightcone/autograd/autograd.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/backends/cpu/machine.h"
#include "lightcone/backends/cpu/products/microkernel.h"
#include "lightcone/lowering/types/mixed_precision.h"
#include "lightcone/nn/parameter.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"
#include "lightcone/verify/verify.h"

using namespace lc;
using namespace lc::backends::cpu;

namespace {

struct Net {
  int images = 4, side = 8, stride = 1;
  bool parameters = true;  // otherwise filters are inputs
  bool smooth = false;     // tanh instead of relu, at whose kink the rounding of Precision::Medium decides
};

// A picture, two convolutions with a shortcut, and the gradients of everything.
Graph network(const Net& n) {
  Graph g;
  const auto weight = [&](const char* name, const Shape& s) {
    return n.parameters ? g.parameter(name, s, DType::F32) : g.input(name, s);
  };
  const Tensor x = g.input("x", {n.images, 3, n.side, n.side});
  const Tensor first = weight("first", {32, 3, 3, 3}), u = weight("u", {48, 32, 3, 3}), v = weight("v", {48, 48, 3, 3}),
               across = weight("across", {48, 32, 1, 1});
  const auto active = [&](const Tensor& t) { return n.smooth ? tanh(t) : relu(t); };
  const Tensor a = active(conv(x, first, {.padding = {1}}));
  const Tensor b = active(conv(a, u, {.stride = {n.stride}, .padding = {1}}));
  const Tensor y = conv(b, v, {.padding = {1}}) + conv(a, across, {.stride = {n.stride}});
  const std::vector<Tensor> wrt = {first, u, v, across};
  const std::vector<Tensor> d = gradients(mean(y * y), wrt);
  g.output("y", y);
  for (const char* name : {"dfirst", "du", "dv", "dacross"}) g.output(name, d[g.roots().size() - 1]);
  return g;
}

int kernels(const Graph& g, const std::string& name) {
  int n = 0;
  for (NodeId id = 0; id < g.size(); ++id) n += g[id].kernel && g[id].kernel->name().starts_with(name);
  return n;
}

bool tiles() { return on_tiles(*microkernel(Arithmetic::Bf16, this_target())); }

void agrees(const Net& n, const Compiler& types, Precision precision) {
  const Graph g = network(n);
  const Compiler all = types | generic() | cpu({.threads = 2, .precision = precision});
  const Graph made = transform(g, all).graph;
  EXPECT_EQ(kernels(made, "conv_winograd"), 0) << made.str();
  EXPECT_GE(kernels(made, "conv_nhwc_bf16"), n.stride == 1 ? 5 : 4) << made.str();  // the strided one is a product
  EXPECT_GE(kernels(made, "conv_filter_gradient_bf16"), 2) << made.str();
  EXPECT_EQ(kernels(made, "conv_filter_gradient") - kernels(made, "conv_filter_gradient_bf16"), 0) << made.str();
  const VerifyReport r = verify(g, all, {.trials = 2, .products = precision == Precision::Medium ? 0x1p-8 : 0});
  EXPECT_TRUE(r.ok()) << r.str();
}

}  // namespace

TEST(RegistersMedium, TrainingWithAutocast) {
  if (!tiles()) GTEST_SKIP() << "the processor has no tile registers";
  for (const int stride : {1, 2}) agrees({.stride = stride}, autocast(DType::BF16), Precision::Highest);
  agrees({.images = 3, .side = 7, .parameters = false}, autocast(DType::BF16), Precision::Highest);
}

TEST(RegistersMedium, Training) {
  if (!tiles()) GTEST_SKIP() << "the processor has no tile registers";
  for (const int stride : {1, 2}) agrees({.stride = stride, .smooth = true}, Compiler(), Precision::Medium);
}

// Results that are larger than the caches are written in whole rows and past the caches, with what the epilogue adds:
// of products, and of windows of one pixel that leave pixels out, whose 560 channels take two blocks. The machine's
// caches and when it writes past them change no bit.
TEST(RegistersMedium, LargeResults) {
  if (!tiles()) GTEST_SKIP() << "the processor has no tile registers";
  Graph g;
  const auto weight = [&](const char* name, const Shape& s) { return g.parameter(name, s, DType::F32); };
  const Tensor x = g.input("x", {3, 48, 18, 20});
  const Tensor a = tanh(conv(x, weight("u", {64, 48, 3, 3}), {.padding = {1}}));
  const Tensor across = conv(a, weight("across", {560, 64, 1, 1}), {.stride = {2}});
  const Tensor beside = conv(a, weight("v", {560, 64, 3, 3}), {.stride = {2}, .padding = {1}});
  g.output("y", tanh(across + tanh(beside)));
  const Tensor rows = g.input("rows", {300, 96}), more = g.input("more", {300, 560});
  g.output("z", tanh(linear(rows, weight("w", {560, 96})) + more));
  Machine small = default_machine();
  small.l2 = 256 << 10, small.stream = 4096;
  std::vector<NodeId> inputs;
  for (NodeId id = 0; id < g.size(); ++id)
    if (g[id].op == Op::Input) inputs.push_back(id);
  std::map<std::string, std::vector<float>> first;
  for (const int threads : {1, 2, 3})
    for (const bool streams : {false, true}) {
      const CpuOptions o{
          .threads = threads, .precision = Precision::Medium, .machine = streams ? small : default_machine()};
      if (threads == 2 && streams) {
        const VerifyReport r = verify(g, generic() | cpu(o), {.trials = 1, .products = 0x1p-8});
        EXPECT_TRUE(r.ok()) << r.str();
      }
      Program p = compile(g, generic() | cpu(o));
      std::map<std::string, std::vector<float>> given;
      for (const NodeId id : inputs) {
        std::vector<float> values(static_cast<std::size_t>(*product(g[id].shape).constant()));
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i) * 0.7f) * 0.3f;
        if (g[id].parameter) p.load(g[id].name, values.data(), values.size() * 4);
        else given[g[id].name] = values;
      }
      Context c(p);
      for (const auto& [name, values] : given) c.set(name, values);
      c.run();
      for (const char* name : {"y", "z"}) {
        const std::vector<float> got = c.get(name);
        const auto [at, fresh] = first.try_emplace(name, got);
        ASSERT_EQ(std::memcmp(at->second.data(), got.data(), got.size() * 4), 0) << name << threads << streams;
      }
    }
}

namespace {

// Two layers with rows of a known number or at least `fewest`, and one that reads the second weight in the other order.
Graph layers(const Dim& rows, bool both_orders = false) {
  Graph g;
  const Tensor u = g.parameter("u", {576, 480}, DType::F32), v = g.parameter("v", {480, 576}, DType::F32);
  const Tensor y = linear(tanh(linear(g.input("x", {rows, 480}), u)), v);
  g.output("y", both_orders ? linear(y, v.permute({1, 0})) : y);
  return g;
}
int of_split_weights(const Graph& made) { return kernels(made, "matmul_f32_packed_split"); }

}  // namespace

TEST(RegistersMedium, WeightsSplitWhenLoaded) {
  if (!tiles()) GTEST_SKIP() << "the processor has no tile registers";
  const auto expect = [](const Graph& g, Precision precision, int products, double allowed) {
    const Compiler all = generic() | cpu({.threads = 2, .precision = precision});
    const Graph made = transform(g, all).graph;
    EXPECT_EQ(of_split_weights(made), products) << made.str();
    const VerifyReport r = verify(g, all, {.trials = 1, .products = allowed});
    EXPECT_TRUE(r.ok()) << r.str();
  };
  expect(layers(260), Precision::Highest, 2, 0);
  expect(layers(96), Precision::High, 2, 0x1p-15);
  expect(layers(Dim::symbol("rows", 257, 270)), Precision::Highest, 2, 0);
  expect(layers(Dim::symbol("rows", 1, 270)), Precision::Highest, 0, 0);  // few rows may be asked for
  expect(layers(128), Precision::Highest, 0, 0);
  expect(layers(260, true), Precision::Highest, 1, 0);  // a weight that is read in both orders is not packed
}

// A weight that is split takes six bytes a number, and is not kept twice.
TEST(RegistersMedium, BytesOfSplitWeights) {
  if (!tiles()) GTEST_SKIP() << "the processor has no tile registers";
  const auto bytes = [](Precision p) {
    return compile(layers(260), generic() | cpu({.threads = 1, .precision = p})).plan().prepared_bytes;
  };
  EXPECT_EQ(bytes(Precision::Highest), 2 * (576 / 16) * (480 / 32) * (64 + 3 * 1024));
  EXPECT_EQ(bytes(Precision::High), 2 * (576 / 16) * (480 / 32) * (64 + 2 * 1024));
  Graph g;  // a large one, too, although half as many bytes again are more than other prepared values may take
  g.output("y", nn::linear(g.input("x", {260, 2048}), nn::parameter(g, "w", {1024, 2048}, DType::F32)));
  const Program large = compile(g, generic() | cpu({.threads = 1, .precision = Precision::Highest}));
  EXPECT_EQ(large.plan().prepared_bytes, (1024 / 16) * (2048 / 32) * (64 + 3 * 1024));
}

// Prompts are multiplied in bf16, few rows with the bits of a program for few rows.
TEST(RegistersMedium, PromptsOfBlocks) {
  if (!tiles()) GTEST_SKIP() << "the processor has no tile registers";
  for (const QuantFormat format : {QuantFormat::Q8_0, QuantFormat::Q4_0, QuantFormat::Q4_K, QuantFormat::Q6_K}) {
    const auto layer = [&](int most) {
      Graph g;
      const nn::Parameter w = nn::parameter(g, "w", {70, 512}, DType::U8, format);
      g.output("y", nn::linear(g.input("x", {Dim::symbol("rows", 1, most), 512}), w));
      return g;
    };
    const Compiler all = generic() | cpu({.threads = 2, .precision = Precision::Medium});
    const Graph made = transform(layer(64), all).graph;
    const auto text = [&](NodeId id) { return made[id].kernel ? made[id].kernel->name() : ""; };
    bool found = false;
    for (NodeId id = 0; id < made.size(); ++id)
      found = found || (text(id).starts_with("matmul") && text(id).find("_packed_bf16_") != std::string::npos);
    EXPECT_TRUE(found) << made.str();
    Graph tied;  // rows of the weight are read, too, so that it is not packed: few and many rows have one microkernel
    const nn::Parameter both = nn::parameter(tied, "w", {70, 512}, DType::U8, format);
    tied.output("y", nn::linear(tied.input("x", {Dim::symbol("rows", 1, 64), 512}), both));
    tied.output("rows", both.rows(tied.input("ids", {2}, DType::I64)));
    const Graph unpacked = transform(tied, all).graph;
    EXPECT_EQ(kernels(unpacked, "matmul_" + std::string(info(format).name) + "_int8"), 1) << unpacked.str();
    for (const int rows : {5, 33, 64}) {
      const VerifyReport r = verify(layer(64), all, {.sizes = {{"rows", rows}}, .products = 0x1p-8});
      EXPECT_TRUE(r.ok()) << r.str();
    }
    std::vector<float> y[2], x(3 * 512);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i));
    std::vector<std::byte> w(static_cast<std::size_t>(70 * 512 / info(format).elements * info(format).bytes));
    for (std::size_t i = 0; i < w.size(); ++i) w[i] = static_cast<std::byte>(i * 2654435761u >> 9 & 0x3b);
    for (const bool prompts : {false, true}) {
      Program p = compile(layer(prompts ? 64 : 4), all);
      p.load("w", w.data(), w.size());
      Context c(p);
      c.bind("rows", 3).set("x", x).run();
      y[prompts] = c.get("y");
    }
    EXPECT_EQ(std::memcmp(y[0].data(), y[1].data(), y[0].size() * 4), 0) << info(format).name;
  }
}
