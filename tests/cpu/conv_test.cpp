// Convolutions of every rank, stride, padding, dilation and grouping are recognised and agree with f64, directly and by
// Winograd, on every instruction set that this machine has.
#include "lightcone/backends/cpu/conv/algorithms.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <random>

#include "guarded.h"
#include "lightcone/backends/cpu/conv/depthwise.h"
#include "lightcone/backends/cpu/conv/nhwc.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/backends/cpu/loops/epilogue.h"
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

int fired(const Graph& g, const std::string& what, const CpuOptions& o = {.threads = 1}) {
  int n = 0;
  for (const PassLog& l : transform(g, generic() | cpu(o)).log)
    if (const auto at = l.fired.find(what); at != l.fired.end()) n += at->second;
  return n;
}

void expect_close(const Results& want, const Results& got, const std::string& what) {
  for (const auto& [name, v] : want.outputs)
    for (std::size_t k = 0; k < v.size(); ++k) {
      const double y = got.outputs.at(name).at(k);
      if (std::isnan(v.at(k))) ASSERT_TRUE(std::isnan(y)) << what << " " << name << " " << k << ": " << y;
      else if (std::isinf(v.at(k))) ASSERT_EQ(y, v.at(k)) << what << " " << name << " " << k;
      else
        ASSERT_LE(std::abs(y - v.at(k)), v.error_at(k) * 4 + 1e-30)
            << what << " " << name << " " << k << " want " << v.at(k) << " got " << y;
    }
}

bool same_bits(const Results& a, const Results& b) {
  for (const auto& [name, v] : a.outputs)
    if (v.size() > 0 && std::memcmp(v.f.data(), b.outputs.at(name).f.data(), v.f.size() * sizeof(double)) != 0)
      return false;
  return true;
}

// Compares the graph, as a user compiles it with one and two threads, with the reference interpreter.
void agree(const Graph& g, const Inputs& in, const Bindings& env = {}, bool interpreted = true) {
  const Results want = interpret(g, in, env, Rounding::Wide, true);
  const Graph tidy = transform(g, generic()).graph;
  Results one = test::run_guarded(transform(tidy, cpu({.threads = 1})).graph, in, env, test::Against::Front);
  Results two = test::run_guarded(transform(tidy, cpu({.threads = 2})).graph, in, env, test::Against::Back);
  expect_close(want, one, "compiled");
  EXPECT_TRUE(same_bits(one, two)) << "threads change bits\n" << g.str();
  if (!interpreted) return;
  const Graph slow = transform(tidy, cpu({.threads = 1, .compiler = false, .winograd = false})).graph;
  expect_close(want, test::run_guarded(slow, in, env, test::Against::Back), "interpreted loops");
}

// Runs one kernel, which `make` creates for a pool of `workers` threads, on guarded operands.
using MakeKernel = std::function<std::shared_ptr<const HostKernel>(const std::shared_ptr<Parallel>&)>;
std::vector<float> run_kernel(const MakeKernel& make, int workers, const Value& image, const Value& weight,
                              std::size_t size) {
  const auto pool = threads(workers);
  const auto k = make(pool);
  test::Guarded x(image.size() * 4, test::Against::Back), w(weight.size() * 4, test::Against::Front);
  test::Guarded out(size * 4, test::Against::Back);
  write_value(image, x.data()), write_value(weight, w.data());
  const void* in[] = {x.data(), w.data()};
  std::vector<std::int64_t> sizes;
  for (const Dim& d : k->sizes()) sizes.push_back(d.eval({}));
  std::vector<std::byte> scratch(static_cast<std::size_t>(k->scratch_bytes(pool->workers()).eval({})) + 64,
                                 std::byte{0xff});
  auto* aligned = reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(scratch.data()) + 63) / 64 * 64);
  k->run({in, out.data(), sizes, aligned, *pool});
  std::vector<float> y(size);
  std::memcpy(y.data(), out.data(), size * 4);
  return y;
}

std::optional<std::pair<NodeId, ConvPlan>> only_convolution(const Graph& g) {
  for (NodeId id = 0; id < g.size(); ++id)
    if (const auto s = lowering::factors(g, id))
      if (auto c = find_convolution(g, *s, this_target())) return std::pair{id, ConvPlan{*c}};
  return std::nullopt;
}

struct Shapes {
  std::vector<int> x, w;
  ConvOptions o = {};
};
Shape shape(const std::vector<int>& v) { return {v.begin(), v.end()}; }
Graph make(const Shapes& s) {
  Graph g;
  g.output("y", conv(g.input("x", shape(s.x)), g.input("w", shape(s.w)), s.o));
  return transform(g, generic()).graph;
}

// Bounds Winograd's error, which is relative to the tile: to a filter's size and the image's largest number. (It is
// half as much again as when the reference's own bounds, which are added to it, were worst-case bounds.)
double winograd_error(const Inputs& in, int rows) {
  double pixel = 0, filters = 0;
  for (double v : in.at("x").f) pixel = std::max(pixel, std::isfinite(v) ? std::abs(v) : 0);
  for (double v : in.at("w").f) filters += std::isfinite(v) ? std::abs(v) : 0;
  return pixel < 1e30 && filters < 1e30 ? 6e-7 * pixel * filters / std::max(1, rows) : 0;
}

void expect_number(double got, double want, double error, const std::string& at) {
  if (std::isnan(want)) ASSERT_TRUE(std::isnan(got)) << at;
  else if (std::isinf(want)) ASSERT_EQ(got, want) << at;
  else ASSERT_LE(std::abs(got - want), error) << at << " want " << want << " got " << got;
}

// Runs every algorithm, instruction set and number of threads on one shape.
void every_way(const Shapes& s, const Inputs* given = nullptr) {
  const Graph g = make(s);
  const Inputs in = given ? *given : random_values(g, 7);
  const auto c = only_convolution(g);
  ASSERT_TRUE(c) << g.str();
  const Results want = interpret(g, in, {}, Rounding::Wide, true);
  const Value& y = want.outputs.at("y");
  const double tile = winograd_error(in, s.w[0]);
  for (const Isa isa : isas())
    for (const bool winograd : {false, true}) {
      if (winograd && winograd_refusal(c->second)) continue;
      const auto make_kernel = [&](const std::shared_ptr<Parallel>& pool) {
        const Blocking blocking = test::blocking(*pool);
        if (depthwise_shape(c->second)) return depthwise_kernel(c->second, nullptr, isa, blocking);
        return nchw_kernel(c->second, winograd ? UseWinograd::Always : UseWinograd::Never, nullptr, isa, blocking);
      };
      const auto one = run_kernel(make_kernel, 1, in.at("x"), in.at("w"), y.size());
      const auto two = run_kernel(make_kernel, 2, in.at("x"), in.at("w"), y.size());
      ASSERT_EQ(std::memcmp(one.data(), two.data(), one.size() * 4), 0)
          << "threads or caches change bits: " << name(isa);
      for (std::size_t k = 0; k < one.size(); ++k) {
        const std::string at = str_cat(name(isa), winograd ? " winograd " : " direct ", k, "\n", g.str());
        expect_number(static_cast<double>(one[k]), y.at(k), y.error_at(k) * 4 + (winograd ? tile : 1e-30), at);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
}

// Does the same with channels last, for every instruction set. The image has channels last, or it is transposed while
// it is padded. `rewrites` is false if the shape is not eligible and so keeps the whole graph as it is.
void channels_last_way(const Shapes& s, bool image_last, const Inputs* given = nullptr, bool rewrites = true) {
  const Graph g = make(s);
  const Inputs in = given ? *given : random_values(g, 11);
  const Results want = interpret(g, in, {}, Rounding::Wide, true);
  const Value& y = want.outputs.at("y");
  const auto parameter = [](Graph& h, const std::string& name, const std::vector<int>& v) {
    return h.parameter(name, shape(v), DType::F32);
  };
  Graph h;  // with a large convolution that gains by the pass, so that all are changed
  const int n = s.x[0], channels = s.x[1], height = s.x[2], width = s.x[3];
  const Tensor x =
      image_last ? h.input("x", shape({n, height, width, channels})).permute({0, 3, 1, 2}) : h.input("x", shape(s.x));
  h.output("y", conv(x, parameter(h, "w", s.w), s.o));
  h.output("z", conv(h.input("large", {1, 4, 300, 300}), parameter(h, "v", {64, 4, 7, 7}), {.padding = {1}}));
  PassLog log;
  const std::optional<Graph> all = channels_last(transform(h, generic()).graph, log, this_target());
  ASSERT_EQ(all.has_value(), rewrites);
  if (!all) return;
  const Graph& turned = *all;
  std::optional<ConvPlan> c;
  for (NodeId id = 0; id < turned.size(); ++id)
    if (const auto both = lowering::factors(turned, id))
      if (const auto m = find_convolution(turned, *both, this_target());
          m && m->channels_last && turned[m->weight_node].name == "w")
        c = ConvPlan{*m};
  ASSERT_TRUE(c) << turned.str();
  Value image = in.at("x");
  if (image_last)
    for (int b = 0; b < n; ++b)
      for (int i = 0; i < channels; ++i)
        for (int p = 0; p < height * width; ++p)
          image.f[static_cast<std::size_t>((b * height * width + p) * channels + i)] =
              in.at("x").f[static_cast<std::size_t>((b * channels + i) * height * width + p)];
  const double tile = winograd_error(in, s.w[0]);
  const auto rows = static_cast<std::size_t>(s.w[0]);
  const std::size_t pixels = y.size() / rows / static_cast<std::size_t>(std::max(1, n));
  for (const Isa isa : isas()) {
    const PackedFilters f = *packed_filters(turned, *c, isa);
    Value packed = make_value(DType::F32, {f.floats(f.panel(isa))});
    const auto one_worker = threads(1);
    const auto pack = pack_weights_kernel(f, isa);
    test::Guarded w(in.at("w").size() * 4, test::Against::Front), to(packed.size() * 4, test::Against::Back);
    write_value(in.at("w"), w.data());
    const void* operands[] = {w.data()};
    std::vector<std::byte> scratch(static_cast<std::size_t>(pack->scratch_bytes(1).eval({})));
    pack->run({operands, to.data(), {}, scratch.data(), *one_worker});
    for (std::size_t i = 0; i < packed.size(); ++i)
      packed.f[i] = static_cast<double>(reinterpret_cast<float*>(to.data())[i]);
    for (const bool winograd : {false, true}) {
      if (winograd && nhwc_winograd_refusal(*nhwc_shape(*c))) continue;
      const auto make_kernel = [&](const std::shared_ptr<Parallel>& pool) {
        return (winograd ? nhwc_winograd_kernel : nhwc_kernel)(*c, nullptr, isa, test::blocking(*pool));
      };
      const auto one = run_kernel(make_kernel, 1, image, packed, y.size());
      const auto two = run_kernel(make_kernel, 2, image, packed, y.size());
      ASSERT_EQ(std::memcmp(one.data(), two.data(), one.size() * 4), 0)
          << "threads or caches change bits: " << name(isa);
      for (std::size_t k = 0; k < one.size(); ++k) {
        const std::size_t b = k / rows / pixels, p = k / rows % pixels, at = (b * rows + k % rows) * pixels + p;
        expect_number(static_cast<double>(one[k]), y.at(at), y.error_at(at) * 4 + (winograd ? tile : 1e-30),
                      str_cat(name(isa), winograd ? " winograd " : " direct ", at, "\n", g.str()));
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

}  // namespace

TEST(Conv, GridOfShapes) {
  for (const int kernel : {1, 3, 5, 7})
    for (const int stride : {1, 2})
      for (const int padding : {0, 1, 2, 3})
        for (const int dilation : {1, 2}) {
          if (kernel == 1 && stride == 1 && padding == 0 && dilation == 2) continue;
          const int size = (kernel - 1) * dilation + 4;
          every_way({{2, 3, size, size + 3},
                     {5, 3, kernel, kernel},
                     {.stride = {stride}, .padding = {padding}, .dilation = {dilation}}});
        }
}

TEST(Conv, GroupsRanksAndOddSizes) {
  every_way({{1, 6, 9, 11}, {9, 2, 3, 3}, {.padding = {1}, .groups = 3}});
  every_way({{2, 5, 12, 37}, {5, 1, 3, 3}, {.padding = {1}, .groups = 5}});                // depthwise
  every_way({{2, 4, 13, 9}, {8, 1, 5, 5}, {.stride = {2}, .padding = {2}, .groups = 4}});  // two filters per channel
  every_way({{3, 7, 41}, {17, 7, 5}, {.stride = {2}, .padding = {2}}});                    // 1-D
  every_way({{1, 3, 5, 6, 7}, {4, 3, 3, 2, 3}, {.stride = {1, 2, 1}, .padding = {1, 0, 2}}});  // 3-D
  every_way({{1, 33, 7, 7}, {65, 33, 3, 3}, {.stride = {1, 2}, .padding = {1}}});
  every_way({{1, 40, 6, 70}, {29, 40, 3, 1}, {.padding = {1, 0}}});
  every_way({{2, 70, 9, 9}, {30, 70, 1, 1}, {.stride = {2}}});
  every_way({{2, 1, 20, 20}, {1, 1, 3, 3}, {.padding = {1}}});
  every_way({{1, 3, 3, 3}, {2, 3, 3, 3}, {.padding = {3}}});  // windows that lie outside entirely
  every_way({{2, 1, 1, 1}, {1, 1, 3, 3}, {.padding = {1}}});  // the batch replaces the pixels as columns
}

TEST(Conv, Winograd) {
  for (const int channels : {1, 16, 33})
    for (const int size : {1, 4, 7, 13})
      for (const int padding : {0, 1, 2}) {
        if (size + 2 * padding < 3) continue;
        every_way({{3, channels, size, size + 2}, {channels == 16 ? 31 : 14, channels, 3, 3}, {.padding = {padding}}});
      }
  every_way({{4, 20, 58, 57}, {16, 20, 3, 3}, {.padding = {1}}});  // several blocks of tiles
}
TEST(Conv, WinogradInGroups) { every_way({{2, 32, 9, 10}, {48, 16, 3, 3}, {.padding = {1}, .groups = 2}}); }

TEST(Conv, ChannelsLast) {
  for (const int kernel : {1, 3, 5})
    for (const int stride : {1, 2})
      for (const int padding : {0, 1, 2})
        for (const int dilation : {1, 2}) {
          if (kernel == 1 && dilation == 2) continue;
          const int size = (kernel - 1) * dilation + 4;
          channels_last_way({{2, 5, size, size + 3},
                             {19, 5, kernel, kernel},
                             {.stride = {stride}, .padding = {padding}, .dilation = {dilation}}},
                            true, nullptr, true);
        }
  channels_last_way({{2, 3, 15, 18}, {70, 3, 7, 7}, {.stride = {2}, .padding = {3}}},
                    false);                                     // a colour image
  channels_last_way({{1, 300, 7, 7}, {130, 300, 1, 1}}, true);  // several blocks of taps
  channels_last_way({{3, 140, 7, 8}, {125, 140, 3, 3}, {.stride = {2, 1}, .padding = {1, 2}}}, true);
  channels_last_way({{7, 40, 29, 31}, {33, 40, 3, 3}, {.stride = {2}, .padding = {1}}}, true);  // several tasks
  channels_last_way({{2, 4, 9, 9}, {8, 4, 3, 3}}, false);  // not padded: rows of windows are contiguous
  channels_last_way({{2, 4, 9, 9}, {8, 2, 3, 3}, {.padding = {1}, .groups = 2}}, true, nullptr, false);
}

TEST(Conv, ChannelsLastWinograd) {
  for (const int channels : {1, 16, 33})
    for (const int size : {4, 7, 13})
      for (const int padding : {1, 2})
        channels_last_way(
            {{3, channels, size, size + 2}, {channels == 16 ? 64 : 14, channels, 3, 3}, {.padding = {padding}}}, true);
  channels_last_way({{4, 2, 58, 57}, {3, 2, 3, 3}, {.padding = {1}}}, true);      // several blocks of tiles
  channels_last_way({{1, 150, 8, 9}, {120, 150, 3, 3}, {.padding = {1}}}, true);  // several blocks of channels
}

// Convolutions change to channels last, with all operations between them, except one that Winograd computes faster.
TEST(Conv, LayoutOfANet) {
  const auto net = [](int width, int symbols) {
    Graph g;
    int parameters = 0;
    const auto parameter = [&](const Shape& s) { return g.parameter(str_cat("p", parameters++), s, DType::F32); };
    const auto block = [&](const Tensor& x, int in, int out, int kernel, int stride) {
      const Tensor y = conv(x, parameter({out, in, kernel, kernel}), {.stride = {stride}, .padding = {kernel / 2}});
      const Tensor v = parameter({out});
      return batch_norm(y, parameter({out}), v * v, parameter({out}), parameter({out}));
    };
    const Dim batch = symbols ? Dim::symbol("b", 1, 3) : Dim(2);
    Tensor x = g.input("x", {batch, 3, 97, 90});
    x = max_pool(relu(block(x, 3, width, 7, 2)), {3}, {2}, {1});
    Tensor y = relu(block(x, width, width, 1, 1));
    y = relu(block(relu(block(y, width, width, 3, 1)), width, width, 3, 2));
    y = block(y, width, 2 * width, 1, 1);
    x = relu(y + block(x, width, 2 * width, 1, 2));
    g.output("y", x);  // the result is needed with channels first
    g.output("m", mean(x, {2, 3}));
    return g;
  };
  const Graph g = net(18, 0), symbolic = net(18, 1);
  EXPECT_EQ(fired(g, "channels last"), 6);
  EXPECT_EQ(fired(symbolic, "channels last"), 6);
  EXPECT_EQ(fired(g, "conv_winograd"), 1);
  EXPECT_EQ(fired(g, "operand copied for a contraction"), 0);
  EXPECT_EQ(fired(net(90, 0), "channels last", {.threads = 1, .precision = Precision::Medium}),
            detect_isa() == Isa::Neon && bf16_is_fast(detect_isa()) ? 0 : 6);  // Arm's bf16 products keep pixels last
  const std::string made = transform(g, generic() | cpu({.threads = 1})).graph.str();
  EXPECT_NE(made.find("[2, 13, 36]"), std::string::npos) << made;  // a mean's sums over x, vectorized over channels
  agree(g, random_values(g, 12));
  Inputs odd = random_values(g, 13);
  odd.at("x").f[100] = kNaN, odd.at("x").f[2000] = kInf;
  agree(g, odd, {}, false);
  for (const int b : {1, 3}) agree(symbolic, random_values(symbolic, 14, {{"b", b}}), {{"b", b}}, false);
  Graph plain;
  Tensor x = plain.input("x", {1, 16, 20, 20});
  for (const char* name : {"a", "b"})
    x = relu(conv(x, plain.parameter(name, {16, 16, 3, 3}, DType::F32), ConvOptions{.padding = {1}}));
  plain.output("y", x);
  EXPECT_EQ(fired(plain, "channels last"), 0);
}

// Filters in bf16 and f16 stay so in memory, are packed when they are loaded, and give the bits of the same numbers in
// f32.
TEST(Conv, ChannelsLastHalfFilters) {
  const auto net = [](DType t) {
    Graph g;
    int parameters = 0;
    const auto block = [&](const Tensor& x, int in, int out, int kernel, int stride) {
      const Tensor w = g.parameter(str_cat("p", parameters++), {out, in, kernel, kernel}, t);
      return relu(conv(x, to(w, DType::F32), {.stride = {stride}, .padding = {kernel / 2}}));
    };
    Tensor x = block(g.input("x", {2, 3, 61, 58}), 3, 40, 7, 2);
    x = block(block(x, 40, 40, 3, 1), 40, 150, 1, 1);  // by Winograd's algorithm; the end of a panel
    x = block(x, 150, 200, 3, 2);                      // several blocks of taps; more than 1 MB in f32
    g.output("y", x + block(block(x, 200, 600, 1, 1), 600, 200, 1, 1));
    return g;
  };
  const Graph wide = net(DType::F32);
  Target target = this_target();
  target.amx = false;  // tile registers multiply f32 in other parts than halves
  for (const auto& [type, p] : {std::pair{DType::BF16, Precision::Highest},
                                {DType::BF16, Precision::Medium},
                                {DType::F16, Precision::Highest},
                                {DType::F16, Precision::Medium}}) {
    if (p == Precision::Medium && bf16_may_be_fast(target)) continue;
    const Graph narrow = net(type);
    Inputs in = random_values(narrow, 15);
    for (auto& [name, v] : in)
      for (double& x : v.f)
        x = static_cast<double>(f16_to_f32(f32_to_f16(bf16_to_f32(f32_to_bf16(static_cast<float>(x))))));
    Inputs same = in;
    for (auto& [name, v] : same) v.dtype = DType::F32;
    const CpuOptions o{.threads = 2, .precision = p, .target = target};
    EXPECT_EQ(fired(narrow, "channels last", o), 6);
    EXPECT_EQ(fired(narrow, "weight packed", o), 6);
    EXPECT_GE(fired(narrow, "conv_winograd", o), 1);
    const Program a = compile(narrow, generic() | cpu(o)), b = compile(wide, generic() | cpu(o));
    EXPECT_EQ(a.kernels(), b.kernels());
    EXPECT_LE(a.plan().prepared_bytes, b.plan().prepared_bytes / 2 + 512);
    for (const double odd : {0.0, kInf}) {
      in.at("p3").f[17] = same.at("p3").f[17] = odd;
      const auto run = [&](const Graph& g, const Inputs& values) {
        return test::run_guarded(transform(g, generic() | cpu(o)).graph, values, {}, test::Against::Back);
      };
      EXPECT_TRUE(same_bits(run(narrow, in), run(wide, same)));
    }
  }
}

TEST(Conv, NumbersThatAreNone) {
  for (const double odd : {kNaN, kInf, -kInf, 3e38})
    for (const char* where : {"x", "w"}) {
      const Shapes s{{2, 17, 9, 10}, {30, 17, 3, 3}, {.padding = {1}}};
      Inputs in = random_values(make(s), 3);
      in.at(where).f[137] = odd;
      channels_last_way(s, true, &in);
    }
  for (const double odd : {kNaN, kInf, -kInf, 3e38})
    for (const char* where : {"x", "w"}) {
      const Shapes s{{2, 17, 9, 10}, {30, 17, 3, 3}, {.padding = {1}}};
      Inputs in = random_values(make(s), 3);
      in.at(where).f[137] = odd;
      every_way(s, &in);
    }
}

TEST(Conv, NothingToDo) {
  const auto empty = [](const Shapes& s) {
    const Graph g = make(s);
    agree(g, random_values(g, 1), {}, false);
  };
  empty({{0, 3, 5, 5}, {4, 3, 3, 3}, {.padding = {1}}});
  empty({{2, 3, 5, 5}, {0, 3, 3, 3}, {.padding = {1}}});
  empty({{2, 0, 5, 5}, {4, 0, 3, 3}, {.padding = {1}}});
}

TEST(Conv, IsRecognised) {
  const auto kinds = [](const Shapes& s) {
    const Graph g = make(s);
    return std::pair{fired(g, "conv"), fired(g, "conv_winograd")};
  };
  using P = std::pair<int, int>;
  EXPECT_EQ(kinds({{1, 3, 9, 9}, {8, 3, 3, 3}, {.padding = {1}}}), P(1, 0));
  EXPECT_EQ(kinds({{1, 8, 9, 9}, {8, 8, 1, 1}}), P(1, 0));  // columns are two axes
  EXPECT_EQ(kinds({{1, 8, 9}, {8, 8, 1}}), P(0, 0));        // a matrix product
  EXPECT_EQ(kinds({{1, 8, 9, 9}, {8, 1, 3, 3}, {.padding = {1}, .groups = 8}}), P(1, 0));
  EXPECT_EQ(kinds({{2, 64, 56, 56}, {64, 64, 3, 3}, {.padding = {1}}}), P(0, 1));
  EXPECT_EQ(kinds({{2, 64, 56, 56}, {64, 64, 3, 3}, {.stride = {2}, .padding = {1}}}), P(1, 0));
  const Graph g = make({{2, 64, 56, 56}, {64, 64, 3, 3}, {.padding = {1}}});
  EXPECT_EQ(fired(g, "conv", {.threads = 1, .winograd = false}), 1);
  for (const Shapes& s : {Shapes{{2, 3, 9, 9}, {8, 3, 3, 3}, {.padding = {1}}}, Shapes{{1, 5, 9}, {8, 5, 3}}})
    EXPECT_EQ(fired(make(s), "operand copied for a contraction"), 0);
}

// Parameters are packed when they are loaded, in whole panels, the last of which is padded. A normalization is folded
// to a scale and a shift.
TEST(Conv, ParametersArePrepared) {
  for (const bool winograd : {false, true})
    for (const int groups : {1, 2}) {
      Graph g;
      const int channels = 24, rows = 50, n = winograd ? 30 : 3;
      const auto parameter = [&](const std::string& name, const Shape& s) { return g.parameter(name, s, DType::F32); };
      const Tensor x = g.input("x", {2, channels * groups, n, n});
      const Tensor w = parameter("w", {rows * groups, channels, 3, 3}), v = parameter("v", {rows * groups});
      const Tensor y = conv(x, w, ConvOptions{.padding = {1}, .groups = groups});
      g.output("y", relu(batch_norm(y, parameter("m", {rows * groups}), v * v, parameter("a", {rows * groups}),
                                    parameter("b", {rows * groups}))));
      EXPECT_EQ(fired(g, "weight packed"), 1);
      EXPECT_EQ(fired(g, "conv_winograd"), winograd ? 1 : 0);
      agree(g, random_values(g, 8));
      const Program p = compile(g, generic() | cpu({.threads = 1}));
      EXPECT_EQ(p.kernels(), 1u);
      EXPECT_GT(p.plan().prepared_bytes, std::size_t{4} * rows * groups * channels * 9);
    }
}

// Bias, a folded normalization, a residual and an activation are one kernel with the convolution.
TEST(Conv, Epilogue) {
  for (const bool winograd : {false, true}) {
    Graph g;
    const int n = winograd ? 30 : 9, channels = winograd ? 64 : 6;
    const Tensor x = g.input("x", {2, channels, n, n}), r = g.input("r", {2, channels, n, n});
    Tensor p[5];
    for (int i = 0; i < 5; ++i) p[i] = g.input(str_cat("p", i), {channels});
    const ConvOptions o{.padding = {1}};
    const Tensor y = conv(x, g.input("w", {channels, channels, 3, 3}), p[4], o);
    g.output("y", relu(batch_norm(y, p[0], p[1] * p[1], p[2], p[3]) + r));
    EXPECT_EQ(compile(g, generic() | cpu({.threads = 1})).kernels(), 1u);
    EXPECT_EQ(fired(g, "epilogue"), 1);
    EXPECT_EQ(fired(g, "conv_winograd"), winograd ? 1 : 0);
    agree(g, random_values(g, 5));
  }
}

// Epilogue blocks of any shape: one row or one column, rows of a symbolic length, more columns than one block has, and
// operands that differ by row, by column and by image.
TEST(Conv, EpilogueOfAnyRows) {
  const Dim b = Dim::symbol("b", 1, 3), n = Dim::symbol("n", 3, 9);
  for (const int rows : {1, 2, 7})
    for (const int columns : {1, 5, 300}) {
      Graph g;
      const Tensor w = g.parameter("w", {columns, 9}, DType::F32);
      const Tensor y = linear(g.input("x", {rows, 9}), w, g.input("bias", {columns}));
      g.output("y", gelu(y * g.input("each", {rows, 1}).expand({rows, columns}) + g.input("r", {rows, columns})));
      EXPECT_EQ(fired(g, "epilogue"), rows * columns > 1 ? 1 : 0) << rows << " rows of " << columns;
      agree(g, random_values(g, 4));
    }
  for (const bool symbolic : {false, true}) {
    Graph g;
    const Dim height = symbolic ? n : Dim(6);
    const Tensor w = g.parameter("w", {20, 6, 3, 3}, DType::F32);
    const Tensor y = conv(g.input("x", {b, 6, height, 8}), w, ConvOptions{.padding = {1}});
    g.output("y", relu(symbolic ? y : y + g.input("v", {b, 20, 1, 1}).expand(y.shape()) + g.input("r", {6, 8})));
    EXPECT_TRUE(symbolic || fired(g, "epilogue") == 1);
    for (const int at : {1, 3}) {
      const Bindings env{{"b", at}, {"n", 3 * at}};
      agree(g, random_values(g, 5, env), env);
    }
  }
}

TEST(Conv, EpilogueOnlyWhereItIsTheOnlyReader) {
  Graph g;
  const Tensor y = conv(g.input("x", {2, 3, 8, 8}), g.input("w", {4, 3, 3, 3}), ConvOptions{.padding = {1}});
  g.output("y", y);
  g.output("z", relu(y));
  EXPECT_EQ(fired(g, "epilogue"), 0);
  agree(g, random_values(g, 5));
  Graph h;  // the reader has another order
  h.output("t", relu(conv(h.input("x", {2, 3, 8, 8}), h.input("w", {4, 3, 3, 3})).transpose(2, 3)));
  EXPECT_EQ(fired(h, "epilogue"), 0);
  agree(h, random_values(h, 6));
}

TEST(Conv, SymbolicBatchAndImage) {
  Graph g;
  const Dim b = Dim::symbol("b", 1, 5), n = Dim::symbol("n", 4, 40);
  const Tensor x = g.input("x", {b, 16, n, n}), w = g.input("w", {24, 16, 3, 3});
  g.output("y", relu(conv(x, w, ConvOptions{.padding = {1}})));
  g.output("s", conv(x, w, ConvOptions{.stride = {2}, .padding = {1}}));
  EXPECT_EQ(fired(g, "conv") + fired(g, "conv_winograd"), 2);
  for (const auto& [bv, nv] : {std::pair{1, 4}, std::pair{5, 7}, std::pair{2, 40}}) {
    const Bindings env{{"b", bv}, {"n", nv}};
    agree(g, random_values(g, 2, env), env);
  }
}

TEST(Conv, TransposedAndChained) {
  Graph g;
  const Tensor x = g.input("x", {2, 6, 7, 9});
  g.output("t", conv_transpose(x, g.input("w", {6, 4, 3, 3}), ConvOptions{.stride = {2}, .padding = {1}}));
  const Tensor y = relu(conv(x, g.input("a", {8, 6, 3, 3}), ConvOptions{.padding = {1}}));
  g.output("c", conv(max_pool(y, {2, 2}), g.input("b", {5, 8, 1, 1})));
  agree(g, random_values(g, 9));
}
