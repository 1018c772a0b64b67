// Gradients of a convolution's filters are found in a backward pass in either layout and agree with the sums that
// define them, on every instruction set, and in bf16 on tile registers.
#include "lightcone/backends/cpu/conv/gradients/filter_gradient.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>

#include "guarded.h"
#include "lightcone/autograd/autograd.h"
#include "lightcone/backends/cpu/conv/conv.h"
#include "lightcone/backends/cpu/conv/gradients/on_registers.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/backends/cpu/threads/thread_pool.h"
#include "lightcone/device/host_kernel.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"
#include "lightcone/verify/verify.h"
#include "other_caches.h"

using namespace lc;
using namespace lc::backends::cpu;
using i64 = std::int64_t;

namespace {

int filter_gradients(const Graph& g) {
  int n = 0;
  for (NodeId id = 0; id < g.size(); ++id) n += g[id].kernel && g[id].kernel->name() == "conv_filter_gradient";
  return n;
}

struct Case {
  i64 batch = 3, in = 5, out = 6, size = 16;
  ConvOptions o = {};
  i64 filter = 3;
};

// Two convolutions and the gradients of both filters. If `last` is true, the image has channels last.
Graph network(const Case& c, bool last) {
  Graph g;
  const auto weight = [&](const char* name, Shape s) { return g.parameter(name, s, DType::F32); };
  const Tensor x = last ? g.input("x", {c.batch, c.size, c.size, c.in}).permute({0, 3, 1, 2})
                        : g.input("x", {c.batch, c.in, c.size, c.size});
  const Tensor w = weight("w", {c.out, c.in / Dim(c.o.groups), c.filter, c.filter});
  const Tensor v = weight("v", {4, c.out, 3, 3});
  const Tensor y = conv(relu(conv(x, w, c.o)), v, {.padding = {1}});
  const std::vector<Tensor> d = gradients(mean(y * y), {w, v});
  g.output("dw", d[0]), g.output("dv", d[1]);
  return g;
}

void expect_fused(const Case& c, int least) {
  for (const bool last : {false, true}) {
    const Graph g = network(c, last);
    const Compiler compiler = generic() | cpu({.threads = 2});
    EXPECT_GE(filter_gradients(transform(g, compiler).graph), last ? least : 1) << g.str();
    const VerifyReport r = verify(g, compiler);
    EXPECT_TRUE(r.ok()) << r.str();
  }
}

// One kernel with all its parameters: strides, dilation and padding of both axes, image first or last.
struct Kernel1 {
  i64 images = 2, height = 6, width = 7, in = 5, out = 9, taps = 3, stride = 1, dilation = 1, padding = 1;
  bool image_in_rows = true;
  bool padded = true;  // otherwise nothing is read outside of the image, and the plan has no coordinates
  i64 down() const { return (height + 2 * padding - dilation * (taps - 1) - 1) / stride + 1; }
  i64 across() const { return (width + 2 * padding - dilation * (taps - 1) - 1) / stride + 1; }
  i64 row(i64 channel, i64 dy, i64 dx, i64 o) const {
    return image_in_rows ? ((channel * taps + dy) * taps + dx) * out + o : ((o * taps + dy) * taps + dx) * in + channel;
  }
  ConvPlan plan() const {
    ConvPlan c;
    const int t = image_in_rows ? 1 : 0, f = image_in_rows ? 0 : 2;
    c.channels_last = image_in_rows;
    c.pixels[t] = {taps, width * in * dilation, dilation, padding, padding + height};
    c.pixels[t + 1] = {taps, in * dilation, dilation, padding, padding + width};
    if (!padded) c.pixels[t] = {taps, width * in * dilation}, c.pixels[t + 1] = {taps, in * dilation};
    c.pixels[f] = {in, 1, 0};
    c.rows = {out, 0, 1, image_in_rows ? 1 : taps * taps * in};
    c.sums = {{images, height * width * in, down() * across() * out, {}},
              {down(), width * in * stride, across() * out, {}},
              {across(), in * stride, out, {}}};
    if (padded) c.sums[1].dilation[t] = stride, c.sums[2].dilation[t + 1] = stride;
    c.image_offset = -padding * (width + 1) * in, c.weight_offset = 0;
    return c;
  }
};

using MakeKernel = std::function<std::shared_ptr<HostKernel>(const ConvPlan&, const Blocking&)>;

std::vector<float> computed(const Kernel1& k, const MakeKernel& make, int workers, const std::vector<float>& image,
                            const std::vector<float>& cotangent) {
  const auto pool = threads(workers);
  const auto kernel = make(k.plan(), test::blocking(*pool));
  test::Guarded x(image.size() * 4, test::Against::Back), g(cotangent.size() * 4, test::Against::Back);
  const std::size_t size = static_cast<std::size_t>(k.taps * k.taps * k.in * k.out);
  test::Guarded out(size * 4, test::Against::Back);
  std::copy(image.begin(), image.end(), reinterpret_cast<float*>(x.data()));
  std::copy(cotangent.begin(), cotangent.end(), reinterpret_cast<float*>(g.data()));
  const void* in[] = {x.data(), g.data()};
  std::vector<i64> sizes;
  for (const Dim& d : kernel->sizes()) sizes.push_back(d.eval({}));
  std::vector<std::byte> scratch(static_cast<std::size_t>(kernel->scratch_bytes(workers).eval({})) + 64,
                                 std::byte{0xff});
  kernel->run({in, out.data(), sizes, scratch.data(), *pool});
  const auto* y = reinterpret_cast<const float*>(out.data());
  return {y, y + size};
}

float number(i64 k) { return static_cast<float>(k * 2654435761u % 2001) / 1000 - 1; }

// Kernels in f32 of every instruction set, or in bf16 for emulated tile registers and for the processor's.
std::map<std::string, MakeKernel> kernels(bool registers) {
  std::map<std::string, MakeKernel> all;
  if (!registers) {
    for (const Isa isa : isas())
      all[name(isa)] = [isa](const ConvPlan& c, const Blocking&) { return filter_gradient_kernel(c, isa); };
    return all;
  }
  for (const GradientTilesTable* t : {&kGradientTilesEmulated, &gradient_tiles(this_target())})
    all[t->name] = [t](const ConvPlan& c, const Blocking& b) { return gradient_registers_kernel(c, *t, b); };
  return all;
}

void expect_sums(const Kernel1& k, std::optional<float> odd = {}, bool registers = false) {
  std::vector<float> image(static_cast<std::size_t>(k.images * k.height * k.width * k.in));
  std::vector<float> cotangent(static_cast<std::size_t>(k.images * k.down() * k.across() * k.out));
  for (std::size_t i = 0; i < image.size(); ++i) image[i] = number(static_cast<i64>(i));
  for (std::size_t i = 0; i < cotangent.size(); ++i) cotangent[i] = number(static_cast<i64>(i) + 77);
  if (odd) cotangent[1] = *odd, cotangent[cotangent.size() - 2] = *odd;
  const std::vector<float> whole[] = {image, cotangent};
  if (registers)
    for (auto* v : {&image, &cotangent})
      for (float& x : *v) x = bf16_to_f32(f32_to_bf16(x));
  ASSERT_TRUE(filter_gradient_shape(k.plan()));
  ASSERT_FALSE(registers && gradient_registers_refusal(k.plan()));
  std::vector<double> want(static_cast<std::size_t>(k.taps * k.taps * k.in * k.out));
  for (i64 n = 0; n < k.images; ++n)
    for (i64 y = 0; y < k.down(); ++y)
      for (i64 x = 0; x < k.across(); ++x)
        for (i64 dy = 0; dy < k.taps; ++dy)
          for (i64 dx = 0; dx < k.taps; ++dx) {
            const i64 row = y * k.stride + dy * k.dilation - k.padding,
                      column = x * k.stride + dx * k.dilation - k.padding;
            const bool inside = row >= 0 && row < k.height && column >= 0 && column < k.width;
            for (i64 c = 0; c < k.in; ++c)
              for (i64 o = 0; o < k.out; ++o) {
                const i64 pixel = (n * k.height + row) * k.width + column;
                const double a = inside ? static_cast<double>(image[static_cast<std::size_t>(pixel * k.in + c)]) : 0;
                const i64 b = ((n * k.down() + y) * k.across() + x) * k.out + o;
                want[static_cast<std::size_t>(k.row(c, dy, dx, o))] +=
                    a * static_cast<double>(cotangent[static_cast<std::size_t>(b)]);
              }
          }
  for (const auto& [name, make] : kernels(registers)) {
    const auto one = computed(k, make, 1, whole[0], whole[1]), two = computed(k, make, 2, whole[0], whole[1]);
    ASSERT_EQ(std::memcmp(one.data(), two.data(), one.size() * 4), 0) << name << ": threads or caches change bits";
    const double error = 1e-6 * static_cast<double>(k.images * k.down() * k.across());
    for (std::size_t i = 0; i < want.size(); ++i) {
      if (std::isnan(want[i])) ASSERT_TRUE(std::isnan(one[i])) << name << " " << i << ": " << one[i];
      else if (std::isinf(want[i])) ASSERT_EQ(static_cast<double>(one[i]), want[i]) << name << " " << i;
      else ASSERT_NEAR(static_cast<double>(one[i]), want[i], error) << name << " " << i;
    }
  }
}

}  // namespace

TEST(FilterGradient, OfEveryLayoutIsFusedAndRight) {
  expect_fused({}, 2);
  expect_fused({.o = {.padding = {1}}}, 2);
  expect_fused({.size = 28, .o = {.stride = {2}, .padding = {1}}}, 2);
  expect_fused({.size = 29, .o = {.stride = {2}}}, 2);
  expect_fused({.o = {.padding = {2}, .dilation = {2}}}, 2);
  expect_fused({.in = 6, .o = {.padding = {1}, .groups = 2}}, 1);
  expect_fused({.in = 1, .out = 17, .o = {.padding = {1}}}, 1);
  expect_fused({.batch = 1, .in = 9, .out = 3, .size = 25, .o = {.padding = {1}}}, 2);
}

TEST(FilterGradient, EveryInstructionSetAndOddSizes) {
  for (const bool rows : {true, false}) {
    expect_sums({.image_in_rows = rows});
    expect_sums({.in = 70, .out = 67, .image_in_rows = rows});
    expect_sums({.in = 1, .out = 1, .image_in_rows = rows});
    expect_sums({.height = 9, .width = 8, .stride = 2, .image_in_rows = rows});
    expect_sums({.height = 11, .width = 12, .taps = 3, .dilation = 2, .padding = 2, .image_in_rows = rows});
    expect_sums({.height = 5, .width = 4, .taps = 5, .padding = 4, .image_in_rows = rows});
    expect_sums({.images = 9, .height = 24, .width = 24, .in = 6, .out = 7, .image_in_rows = rows});  // several blocks
    expect_sums({.images = 0, .image_in_rows = rows});
  }
}

// A tap that reads padding reads 0, and 0 times a number that is not finite is NaN.
TEST(FilterGradient, CotangentsThatAreNotFinite) {
  for (const bool rows : {true, false})
    for (const float odd : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()})
      expect_sums({.image_in_rows = rows}, odd);
}

// Windows of one row and two columns with padding on both axes are copied by loads that lie side by side under one
// condition, which GCC 12 once loaded wrongly.
TEST(FilterGradient, WindowsOfOneRow) {
  Graph g;
  const Tensor v = g.parameter("v", {8, 16, 1, 3}, DType::F32), u = g.parameter("u", {8, 8, 3, 3}, DType::F32);
  const Tensor y = conv(tanh(conv(g.input("x", {9, 16, 7, 2}), v, {.padding = {1, 1}})), u, {.padding = {1}});
  const std::vector<Tensor> d = gradients(mean(y * y), {v, u});
  g.output("dv", d[0]), g.output("du", d[1]);
  const VerifyReport r = verify(g, generic() | cpu({.threads = 2}));
  EXPECT_TRUE(r.ok()) << r.str();
}

// Images that fill whole registers, few, and several sets; channels, pixels and taps at the edges of registers and of
// blocks.
TEST(FilterGradient, OnTileRegisters) {
  const auto sums = [](const Kernel1& k) { expect_sums(k, {}, true); };
  for (const bool rows : {true, false}) {
    for (const i64 images : {2, 3, 5, 16, 31, 32, 33, 40, 70})
      sums({.images = images, .out = 16, .image_in_rows = rows});
    for (const i64 in : {1, 3, 16, 17, 33})
      for (const i64 out : {16, 31, 33, 70}) sums({.in = in, .out = out, .image_in_rows = rows});
    for (const i64 stride : {1, 2, 3})
      for (const i64 dilation : {1, 2})
        for (const i64 images : {2, 6, 20})
          sums({.images = images,
                .height = 15,
                .width = 14,
                .out = 16,
                .stride = stride,
                .dilation = dilation,
                .image_in_rows = rows});
    sums(
        {.images = 4, .height = 9, .width = 8, .out = 20, .taps = 1, .stride = 2, .padding = 0, .image_in_rows = rows});
    sums({.height = 9, .width = 12, .out = 20, .stride = 2, .padding = 0, .image_in_rows = rows, .padded = false});
    sums({.height = 9, .width = 9, .out = 20, .taps = 1, .padding = 0, .image_in_rows = rows, .padded = false});
    sums({.height = 9, .width = 9, .out = 20, .taps = 5, .padding = 4, .image_in_rows = rows});
    sums({.images = 34, .height = 20, .width = 24, .in = 40, .out = 50, .image_in_rows = rows});  // several blocks
    for (const float odd : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()})
      expect_sums({.out = 18, .image_in_rows = rows}, odd, true);
  }
}

TEST(FilterGradient, RefusedOnTileRegisters) {
  const auto refused = [](const Kernel1& k) { return gradient_registers_refusal(k.plan()).has_value(); };
  EXPECT_FALSE(refused({.out = 16}));
  EXPECT_TRUE(refused({.images = 1, .out = 16}));
  EXPECT_TRUE(refused({.out = 15}));
  EXPECT_TRUE(refused({.height = 3, .width = 3, .out = 16}));  // no more pixels than taps
}

// Windows of the image are not materialized, as the memory of a step shows.
TEST(FilterGradient, NeedsNoMemoryForWindows) {
  Graph g;
  const Tensor x = g.input("x", {4, 16, 32, 32}), dy = g.input("dy", {4, 16, 32, 32});
  const Tensor w = g.parameter("w", {16, 16, 3, 3}, DType::F32);
  g.output("dw", vjp({conv(x, w, {.padding = {1}})}, {w}, {dy})[0]);
  const i64 image = 4 * 16 * 32 * 32 * 4;
  // copies of both images fit; their windows would be nine times as large
  EXPECT_LT(compile(g, generic() | cpu({.threads = 1})).plan().arena_bytes, 4 * image);
}
