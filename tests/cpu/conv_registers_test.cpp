// Convolutions on tile registers with channels last agree with f64 on operands rounded to bf16, with the same bits for
// any threads and caches. Emulated registers run everywhere.
#include "lightcone/backends/cpu/conv/nhwc_bf16.h"

#include <gtest/gtest.h>

#include <cstring>

#include "guarded.h"
#include "lightcone/backends/cpu/conv/algorithms.h"
#include "lightcone/backends/cpu/threads/thread_pool.h"
#include "lightcone/device/host_kernel.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"
#include "other_caches.h"
#include "random_inputs.h"

using namespace lc;
using namespace lc::backends::cpu;
using lc::test::Inputs;

namespace {

struct Shapes {
  std::vector<int> x, w;  // [images, y, x, channels], [filters, channels, y, x]
  ConvOptions o = {};
};
Shape shape(const std::vector<int>& v) { return {v.begin(), v.end()}; }

Inputs rounded(Inputs in) {
  for (const std::string name : {"x", "w"})
    for (double& x : in.at(name).f) x = static_cast<double>(bf16_to_f32(f32_to_bf16(static_cast<float>(x))));
  return in;
}

// The convolution of an image whose channels are last, and whose result's are.
Graph graph(const Shapes& s) {
  Graph user;
  const Tensor w = user.parameter("w", shape(s.w), DType::F32);
  user.output("y", conv(user.input("x", shape(s.x)).permute({0, 3, 1, 2}), w, s.o).permute({0, 2, 3, 1}));
  PassLog log;
  const Graph g = transform(user, generic()).graph;
  auto last = channels_last(g, log, this_target(), Precision::Medium);
  return last ? transform(*last, generic()).graph : g.clone();
}

std::vector<const ConvTilesTable*> tables() {
  std::vector<const ConvTilesTable*> all{&kConvTilesEmulated};
  const ConvTilesTable& here = conv_tiles(this_target());
  if (&here != all[0]) all.push_back(&here);
  return all;
}

std::optional<ConvPlan> only_convolution(const Graph& g) {
  for (NodeId id = 0; id < g.size(); ++id)
    if (const auto s = lowering::factors(g, id))
      if (auto c = find_convolution(g, *s, this_target())) return ConvPlan{*c};
  return std::nullopt;
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

std::vector<float> convolve(const Graph& g, ConvPlan c, const ConvTilesTable& table, int workers, const Inputs& in,
                            std::size_t size) {
  const auto pool = threads(workers);
  c.algorithm = &conv_algorithm("nhwc_registers"), c.packed = true;
  const DType stored = in.at("w").dtype;
  c.stored = stored == DType::F16 ? WeightType::F16 : stored == DType::BF16 ? WeightType::BF16 : WeightType::F32;
  const auto filters = packed_filters(g, c, this_target());
  if (!filters) return {};
  const Value &image = in.at("x"), &weight = in.at("w");
  test::Guarded x(image.size() * 4, test::Against::Back), w(weight.size() * 4, test::Against::Front);
  write_value(image, x.data()), write_value(weight, w.data());
  const PackedParameter p = packed_parameter(c, *filters, this_target());
  const auto packed = run(*p.kernel, {w.data()}, static_cast<std::size_t>(p.elements), *pool);
  test::Guarded a((packed.size() * 4 + 63) / 64 * 64, test::Against::Front);
  std::memcpy(a.data(), packed.data(), packed.size() * 4);
  const auto y =
      run(*nhwc_registers_kernel(c, nullptr, table, test::blocking(*pool)), {x.data(), a.data()}, size, *pool);
  c.packed = false;  // the same bits if each run packs them
  const auto again =
      run(*nhwc_registers_kernel(c, nullptr, table, test::blocking(*pool)), {x.data(), w.data()}, size, *pool);
  EXPECT_EQ(std::memcmp(y.data(), again.data(), y.size() * 4), 0) << table.name;
  return y;
}

void every_table(const Shapes& s, const Inputs* given = nullptr) {
  const Graph g = graph(s);
  const Inputs in = given ? *given : test::random_values(g, 7);
  const auto c = only_convolution(g);
  ASSERT_TRUE(c) << g.str();
  ASSERT_FALSE(nhwc_registers_refusal(*c)) << *nhwc_registers_refusal(*c) << "\n" << g.str();
  const Value y = interpret(g, rounded(in), {}, Rounding::Wide, true).outputs.at("y");
  for (const ConvTilesTable* t : tables()) {
    const auto one = convolve(g, *c, *t, 1, in, y.size());
    ASSERT_EQ(one.size(), y.size()) << "not packed\n" << g.str();
    for (const int workers : {2, 3}) {
      const auto more = convolve(g, *c, *t, workers, in, y.size());
      ASSERT_EQ(std::memcmp(one.data(), more.data(), one.size() * 4), 0) << t->name << workers << "\n" << g.str();
    }
    for (std::size_t k = 0; k < one.size(); ++k) {
      const double got = static_cast<double>(one[k]), want = y.at(k);
      if (std::isnan(want)) ASSERT_TRUE(std::isnan(got)) << t->name << k;
      else if (std::isinf(want)) ASSERT_EQ(got, want) << t->name << k;
      else ASSERT_LE(std::abs(got - want), y.error_at(k) * 4 + 1e-30) << t->name << k << " want " << want << g.str();
    }
  }
}

}  // namespace

TEST(ConvRegisters, WindowsAndStrides) {
  for (const int kernel : {3, 5})
    for (const int stride : {1, 2, 3})
      for (const int dilation : {1, 2})
        every_table({{2, 11, 9, 32},
                     {32, 32, kernel, kernel},
                     {.stride = {stride}, .padding = {kernel / 2}, .dilation = {dilation}}});
}

// Windows of one pixel that leave out others, as in the shortcuts of residual networks.
TEST(ConvRegisters, OnePixelOfSeveral) {
  for (const int stride : {2, 3})
    for (const int high : {8, 9}) every_table({{2, high, 14, 48}, {40, 48, 1, 1}, {.stride = {stride}}});
  every_table({{1, 56, 56, 64}, {32, 64, 1, 1}, {.stride = {2}}});
}

// Few channels, of which a row of a register is up to eight pixels of a window.
TEST(ConvRegisters, Pictures) {
  for (const int channels : {1, 2, 3, 4})
    for (const int kernel : {3, 5, 7, 8})
      for (const int stride : {1, 2, 3})
        every_table(
            {{2, 13, 18, channels}, {32, channels, kernel, kernel}, {.stride = {stride}, .padding = {kernel / 2}}});
  every_table({{1, 9, 40, 3}, {17, 3, 3, 2}, {.padding = {1}}});
  every_table({{1, 12, 40, 3}, {16, 3, 3, 3}, {.padding = {2}, .dilation = {2, 1}}});
  every_table({{1, 3, 2, 3}, {16, 3, 3, 3}, {.padding = {1}}});
  every_table({{3, 112, 112, 3}, {70, 3, 7, 7}, {.stride = {2}, .padding = {3}}});
}

// Channels and filters that fill no whole registers; rows of one to four registers, of which the last overlaps.
TEST(ConvRegisters, EdgesOfRegisters) {
  for (const int channels : {16, 17, 33, 70})
    for (const int filters : {16, 31, 65})
      every_table({{1, 5, 7, channels}, {filters, channels, 3, 3}, {.padding = {1}}});
  for (const int wide : {2, 3, 15, 16, 17, 31, 33, 49})
    every_table({{2, 3, wide, 16}, {16, 16, 3, 3}, {.padding = {1}}});
}

// More images, rows and channels than a task or a chunk of steps has.
TEST(ConvRegisters, LargerThanATask) {
  every_table({{5, 14, 14, 160}, {96, 160, 3, 3}, {.padding = {1}}});
  every_table({{1, 40, 56, 64}, {48, 64, 3, 3}, {.padding = {1}}});
  every_table({{1, 9, 20, 16}, {16, 16, 7, 7}, {.stride = {2}, .padding = {3}}});
}

TEST(ConvRegisters, NumbersThatAreNone) {
  for (const Shapes& s :
       {Shapes{{1, 6, 6, 32}, {32, 32, 3, 3}, {.padding = {1}}}, Shapes{{1, 8, 9, 3}, {32, 3, 3, 3}, {.padding = {1}}},
        Shapes{{1, 16, 9, 32}, {32, 32, 1, 1}, {.stride = {2}}}})
    for (const double odd : {1.0 / 0.0, -1.0 / 0.0, 0.0 / 0.0, 3e38})
      for (const char* where : {"x", "w"}) {
        Inputs in = test::random_values(graph(s), 100);
        in.at(where).f[137] = odd;
        every_table(s, &in);
      }
}

// Filters in bf16 and f16 give the bits of the same numbers in f32.
TEST(ConvRegisters, HalfFilters) {
  for (const Shapes& s : {Shapes{{2, 9, 8, 40}, {35, 40, 3, 3}, {.padding = {1}}},
                          Shapes{{1, 12, 13, 3}, {20, 3, 5, 5}, {.stride = {2}, .padding = {2}}}}) {
    const Graph g = graph(s);
    Inputs in = test::random_values(g, 9);
    Value& w = in.at("w");
    for (double& x : w.f) {
      const float both =
          f16_to_f32(f32_to_f16(bf16_to_f32(f32_to_bf16(static_cast<float>(x)))));  // bf16 and f16 have it
      x = static_cast<double>(both);
    }
    const auto c = only_convolution(g);
    ASSERT_TRUE(c) << g.str();
    const std::size_t size = interpret(g, in).outputs.at("y").size();
    for (const ConvTilesTable* t : tables()) {
      w.dtype = DType::F32;
      const auto wide = convolve(g, *c, *t, 2, in, size);
      for (const DType half : {DType::BF16, DType::F16}) {
        w.dtype = half;
        const auto y = convolve(g, *c, *t, 2, in, size);
        ASSERT_EQ(y.size(), size);
        EXPECT_EQ(std::memcmp(y.data(), wide.data(), size * 4), 0) << t->name << name(half);
      }
    }
  }
}

TEST(ConvRegisters, Refusals) {
  const auto refusal = [](const Shapes& s) {
    const Graph g = graph(s);
    const auto c = only_convolution(g);
    return c ? nhwc_registers_refusal(*c).value_or("") : "no convolution";
  };
  const std::string why =
      "nothing is padded or left out, there are 5 to 15 channels or fewer than 16 filters, or a window is too long";
  EXPECT_EQ(refusal({{1, 8, 8, 8}, {32, 8, 3, 3}, {.padding = {1}}}), why);
  EXPECT_EQ(refusal({{1, 8, 8, 3}, {32, 3, 3, 9}, {.padding = {1, 4}}}), why);  // nine pixels
  EXPECT_EQ(refusal({{1, 8, 8, 32}, {8, 32, 3, 3}, {.padding = {1}}}), why);
  EXPECT_EQ(refusal({{1, 8, 8, 32}, {32, 32, 3, 3}}), why);
  EXPECT_EQ(refusal({{1, 8, 8, 32}, {32, 32, 3, 3}, {.padding = {1}}}), "");
}
