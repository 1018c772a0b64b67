// Products and convolutions agree with the f64 reference on every GPU device, at the edges of tiles, in every order of
// axes and for every kind of weight.
//
// The simulated CUDA runs threads in both orders, which may not change a bit.
#include <dlfcn.h>

#include <cstring>
#include <functional>
#include <random>

#include "gpu_devices.h"
#include "lightcone/composites/composites.h"
#include "lightcone/ops/conv.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"
#include "lightcone/verify/random_graph.h"
#include "lightcone/verify/verify.h"
#include "paths.h"

using namespace lc;

namespace {

constexpr double kBf16 = 0x1p-8, kTf32 = 0x1p-10;  // relative rounding of operands

void set_order(long value) {
  static void* const driver = dlopen(paths::kFakeCuda, RTLD_NOW | RTLD_NOLOAD);
  if (driver) reinterpret_cast<void (*)(const char*, long)>(dlsym(driver, "fake_cuda_set"))("order", value);
}

class Products : public test::OnGpu {
 protected:
  // Verifies the graph on random and on extreme values; the bits must not depend on the order of threads.
  void agrees(const std::string& what, const Graph& g, Precision precision = Precision::Highest, double rounded = 0) {
    SCOPED_TRACE(what);
    const Compiler c = generic() | compiler({.precision = precision});
    const VerifyReport r = verify(g, c, {.trials = 2, .shrink = false, .products = rounded});
    EXPECT_TRUE(r.ok()) << r.str();
    if (GetParam().name != "cuda" || std::getenv("LIGHTCONE_CUDA_DRIVER")) return;
    const Bindings env = random_bindings(g, 1);
    const auto inputs = fitting_inputs(g, env, 1, false);
    const Graph made = transform(g, c).graph;
    const Results forward = run_values(made, inputs, env);
    set_order(1);
    const Results reversed = run_values(made, inputs, env);
    set_order(0);
    for (const auto& [name, v] : forward.outputs) {
      const Value& w = reversed.outputs.at(name);
      std::vector<std::byte> x(v.size() * size_of(v.dtype)), y(x.size());
      write_value(v, x.data()), write_value(w, y.data());
      EXPECT_TRUE(x == y) << "threads in reverse order give other bits";
    }
  }
  // Counts the kernels with this origin, such as "gpu: matmul".
  int kernels(const Graph& g, const std::string& kind) {
    const Graph made = transform(g, generic() | compiler()).graph;
    int n = 0;
    for (NodeId id = 0; id < made.size(); ++id) n += made[id].kernel && made[id].kernel->origin.pass == kind;
    return n;
  }
};
LIGHTCONE_ON_GPUS(Products);

Tensor turned(const Tensor& t) {
  std::vector<int> order;
  for (int i = 0; i < static_cast<int>(t.shape().size()); ++i) order.push_back(i);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return t.permute(order);
}

// [batch, m, k] x [batch, k, n] with each operand in both layouts (row-major and transposed): four results. `more` adds
// an epilogue to each.
Graph products_of(int batch, int m, int n, int k, DType t = DType::F32, bool more = false) {
  Graph g;
  const Tensor x[] = {g.input("x", {batch, m, k}, t), turned(g.input("x turned", {batch, k, m}, t))};
  const Tensor w[] = {g.input("w", {batch, k, n}, t), turned(g.input("w turned", {batch, n, k}, t))};
  for (int a : {0, 1})
    for (int b : {0, 1}) {
      const Tensor y = matmul(x[a], w[b]);
      g.output(str_cat("y", a, b), more ? y + g.input(str_cat("b", a, b), {n}, t) : y);
    }
  return g;
}

Tensor weight(Graph& g, const QuantInfo& q, int n, int k) {
  return g.parameter(str_cat("w ", q.name), {n, k / q.elements * q.bytes}, DType::U8);
}

}  // namespace

TEST_P(Products, OfAnySizesInAnyOrder) {
  struct Sizes {
    int batch, m, n, k;
  };
  for (const auto [batch, m, n, k] :
       {Sizes{1, 64, 64, 32}, Sizes{1, 65, 67, 33}, Sizes{2, 72, 80, 40}, Sizes{130, 20, 24, 12}, Sizes{1, 9, 30, 1100},
        Sizes{1, 1, 70, 1000}, Sizes{1, 5, 72, 520}, Sizes{3, 8, 33, 33}, Sizes{3, 40, 1, 64}, Sizes{1, 0, 20, 30},
        Sizes{1, 20, 0, 30}, Sizes{0, 5, 6, 7}, Sizes{1, 20, 30, 0}, Sizes{1, 0, 20, 0}})
    agrees(str_cat("[", batch, ", ", m, ", ", k, "] x [", k, ", ", n, "]"), products_of(batch, m, n, k));
}

TEST_P(Products, OfRandomShapes) {
  std::mt19937 random(11);
  const auto size = [&](int most) { return 1 + static_cast<int>(random() % static_cast<unsigned>(most)); };
  for (int i = 0; i < 6; ++i) {
    Graph g;
    const int heads = size(3);
    const Tensor x = g.input("x", {size(3), 1, size(70), 4 * size(20)});
    const Tensor w = g.input("w", {heads, x.shape()[3], size(140)});
    g.output("y", matmul(x, w.reshape({1, heads, w.shape()[1], w.shape()[2]})));
    agrees(str_cat(str(x.shape()), " x ", str(w.shape())), g);
  }
}

TEST_P(Products, OfSymbolicSizesChooseAtEachRun) {
  Graph g;
  const Dim s = Dim::symbol("s", 1, 200);
  const Tensor x = g.input("x", {s, 64}), w = g.input("w", {64, 80}), b = g.input("b", {80});
  g.output("y", gelu(matmul(x, w) + b));
  EXPECT_EQ(kernels(g, "gpu: matmul"), 1);
  EXPECT_EQ(kernels(g, "gpu: loop"), 0) << "what follows is part of the product";
  for (const std::int64_t n : {1, 2, 130}) {
    const VerifyReport r = verify(g, generic() | compiler(), {.trials = 2, .sizes = {{"s", n}}, .shrink = false});
    EXPECT_TRUE(r.ok()) << n << " rows: " << r.str();
  }
}

// A long sum with few results is split. The plan includes the partial sums: exactly if sizes are known, and for their
// upper bounds if they are symbolic.
TEST_P(Products, PlanThePartsOfSplitSums) {
  for (const bool symbolic : {false, true}) {
    Graph g;
    const Dim rows = symbolic ? Dim::symbol("s", 1, 40) : Dim(20);
    g.output("y", matmul(g.input("x", {rows, 4096}), g.input("w", {4096, 24})));
    const Program p = compile(g, generic() | compiler());
    const std::size_t results = (symbolic ? 40 : 20) * 24 * sizeof(float);
    EXPECT_GE(p.plan().arena_bytes, 2 * results);  // the sum is split
    EXPECT_LE(p.plan().arena_bytes, symbolic ? 129 * results + 4096 : 17 * results + 4096);
    for (const std::int64_t n : symbolic ? std::vector<std::int64_t>{1, 9, 40} : std::vector<std::int64_t>{20}) {
      const Bindings sizes = symbolic ? Bindings{{"s", n}} : Bindings{};
      const VerifyReport r = verify(g, generic() | compiler(), {.trials = 2, .sizes = sizes, .shrink = false});
      EXPECT_TRUE(r.ok()) << n << " rows: " << r.str();
    }
  }
}

TEST_P(Products, AreFollowedByWhatReadsThem) {
  for (const int m : {1, 70}) {
    Graph g;
    const Tensor x = g.input("x", {m, 40}), w = g.input("w", {40, 66}), b = g.input("b", {66}),
                 r = g.input("r", {m, 66});
    g.output("y", gelu(matmul(x, w) + b) * 0.5 + r);
    EXPECT_EQ(kernels(g, "gpu: loop"), 0);
    agrees(str_cat("behind ", m, " rows"), g);
  }
  Graph g;  // split sums, which another kernel adds
  const Tensor x = g.input("x", {3, 2048}), w = g.input("w", {2048, 40}), b = g.input("b", {40});
  g.output("y", relu(matmul(x, w)) + b);
  agrees("behind parts of a sum", g);
}

TEST_P(Products, OfWeightsAsTheyAreStored) {
  for (const int m : {1, 3, 12}) {
    Graph g;
    const Tensor x = g.input("x", {m, 256});
    for (const QuantInfo& q : kQuantFormats)
      if (m == 3 || q.format == QuantFormat::Q8_0 || q.format == QuantFormat::Q6_K)
        g.output(std::string(q.name), matmul(x, turned(prim::dequantize(weight(g, q, 40, 256), q.format))));
    EXPECT_EQ(kernels(g, "gpu: loop"), 0);
    agrees(str_cat(m, " rows"), g);
  }
  Graph g;  // something else reads the blocks, so they are not repacked
  const Tensor x = g.input("x", {2, 256});
  for (const QuantInfo& q : {info(QuantFormat::Q4_1), info(QuantFormat::Q5_K)}) {
    const Tensor w = prim::dequantize(weight(g, q, 10, 256), q.format);
    g.output(std::string(q.name), matmul(x, turned(w)));
    g.output(str_cat(q.name, " doubled"), w * 2.0);
  }
  agrees("blocks that others read", g);
}

TEST_P(Products, OfHalves) {
  for (const DType t : {DType::F16, DType::BF16})
    for (const auto& [m, k] : {std::pair{2, 64}, std::pair{72, t == DType::F16 ? 33 : 64}}) {
      const Graph g = products_of(1, m, 80, k, t);
      EXPECT_EQ(kernels(g, "gpu: loop"), 0) << "halves are read and written as they are";
      agrees(str_cat(m, " rows of ", name(t), ", depth ", k), g);
    }
  agrees("an odd number of columns", products_of(1, 72, 79, 64, DType::BF16, true));  // stores are not in pairs
}

// 8-bit floats are read as stored, in combination with any other type, and are as exact as halves. At lower precision
// they use 8-bit tensor cores.
TEST_P(Products, OfFloatsOfEightBits) {
  constexpr std::pair<DType, DType> kNarrow[] = {{DType::F8E4M3FN, DType::F8E4M3FN},
                                                 {DType::F8E4M3FN, DType::F8E5M2},
                                                 {DType::F8E5M2, DType::F8E4M3FN},
                                                 {DType::F8E5M2, DType::F8E5M2}},
                                    kMixed[] = {{DType::BF16, DType::F8E4M3FN},
                                                {DType::F8E5M2, DType::F16},
                                                {DType::F32, DType::F8E4M3FN}};
  const auto products = [](int m, int k, std::span<const std::pair<DType, DType>> types) {
    Graph g;
    for (const auto& [a, b] : types) {
      const std::string both = str_cat(name(a), " by ", name(b));
      const auto input = [&](const char* what, Shape s, DType t) {
        return to(g.input(str_cat(what, ": ", both), std::move(s), t), DType::F32);
      };
      const Tensor x = input("x", {m, k}, a);
      g.output(both, matmul(x, turned(input("w", {80, k}, b))));
      g.output(both + " turned", to(matmul(x, input("v", {k, 80}, b)), a));
    }
    return g;
  };
  for (const auto& [m, k] : {std::pair{2, 64}, std::pair{72, 64}, std::pair{72, 33}}) {
    const Graph narrow = products(m, k, kNarrow), mixed = products(m, k, kMixed);
    const std::string what = str_cat(m, " rows, depth ", k);
    EXPECT_EQ(kernels(narrow, "gpu: loop") + kernels(mixed, "gpu: loop"), 0) << what << ": they are read as they are";
    agrees(what, narrow);
    agrees(what, mixed);
    agrees(what, narrow, Precision::Medium, kBf16);
  }
}

TEST_P(Products, OfBytesAreExact) {
  for (const int m : {4, 70})
    for (const int k : {64, 33}) {
      Graph g;
      const Tensor x = g.input("x", {m, k}, DType::I8), w = g.input("w", {k, 40}, DType::I8),
                   v = turned(g.input("v", {40, k}, DType::I8));
      for (const DType to : {DType::I32, DType::F32})
        for (const bool turn : {false, true})
          g.output(str_cat(name(to), turn ? " turned" : ""), matmul(prim::cast(x, to), prim::cast(turn ? v : w, to)));
      agrees(str_cat(m, " rows, depth ", k), g);
    }
}

// Operands are rounded if the user allows it. Without tensor cores the products stay exact.
TEST_P(Products, AsExactAsIsAskedFor) {
  for (const Precision p : {Precision::Medium, Precision::High})
    for (const int k : {64, 33, 200})
      agrees(str_cat("depth ", k), products_of(1, 72, 76, k, DType::F32, true), p,
             p == Precision::Medium ? kBf16 : kTf32);
  Graph g;  // large tiles
  g.output("y", matmul(g.input("x", {130, 40, 64}), g.input("w", {130, 64, 40})));
  agrees("many tiles", g, Precision::Medium, kBf16);
  Graph blocks;
  const Tensor x = blocks.input("x", {12, 256});
  for (const QuantInfo& q : {info(QuantFormat::Q4_0), info(QuantFormat::Q4_K)})
    blocks.output(std::string(q.name), matmul(x, turned(prim::dequantize(weight(blocks, q, 40, 256), q.format))));
  agrees("block formats", blocks, Precision::Medium, kBf16);
}

TEST_P(Products, AsConvolutions) {
  const auto image = [](Graph& g, const Shape& s) { return g.input("x", s); };
  struct Case {
    const char* what;
    std::function<Tensor(Graph&)> make;
  };
  const Case cases[] = {
      {"plain",
       [&](Graph& g) {
         return conv2d(image(g, {1, 8, 8, 8}), g.input("w", {72, 8, 3, 3}), {}, 1, 1);
       }},
      {"groups and strides",
       [&](Graph& g) {
         return relu(conv2d(image(g, {2, 6, 11, 13}), g.input("w", {8, 3, 3, 3}), g.input("b", {8}), 2, 1, 1, 2));
       }},
      {"dilated",
       [&](Graph& g) {
         return conv2d(image(g, {2, 5, 17, 13}), g.input("w", {9, 5, 3, 2}), g.input("b", {9}), {1, 2}, {2, 1}, {2, 1});
       }},
      {"one axis",
       [&](Graph& g) {
         return conv1d(image(g, {2, 4, 20}), g.input("w", {6, 4, 5}), {}, 2, 2);
       }},
      {"three axes",
       [&](Graph& g) {
         return conv3d(image(g, {1, 2, 5, 6, 7}), g.input("w", {3, 2, 3, 3, 3}), {}, 1, 1);
       }},
      {"a group a channel",
       [&](Graph& g) {
         return conv2d(image(g, {2, 8, 9, 9}), g.input("w", {8, 1, 3, 3}), {}, 1, 1, 1, 8);
       }},
      {"channels last",
       [&](Graph& g) {
         const Tensor x = image(g, {2, 9, 9, 8}).permute({0, 3, 1, 2}),
                      w = g.input("w", {3, 3, 8, 12}).permute({3, 2, 0, 1});
         return conv2d(x, w, {}, 1, 1).permute({0, 2, 3, 1});
       }},
  };
  for (const Case& c : cases) {
    Graph g;
    g.output("y", c.make(g));
    EXPECT_GE(kernels(g, "gpu: conv") + kernels(g, "gpu: matmul"), 1) << c.what;
    agrees(c.what, g);
  }
  Graph g;
  g.output("y", cases[2].make(g));
  agrees("by tensor cores", g, Precision::Medium, kBf16);
}

// Depthwise convolutions with channels first and last; vectors that end at row ends, and vectors that do not.
TEST_P(Products, AsConvolutionsOfEachChannel) {
  struct Case {
    int batch, channels, height, width, down, across, stride, padding, dilation;
    DType type = DType::F32;
  };
  const Case cases[] = {{2, 8, 9, 12, 3, 3, 1, 1, 1},
                        {1, 5, 11, 7, 3, 3, 1, 1, 1},
                        {2, 6, 10, 16, 3, 3, 2, 1, 1},
                        {1, 12, 13, 15, 5, 5, 2, 2, 1},
                        {1, 4, 14, 14, 3, 3, 1, 2, 2},
                        {1, 3, 9, 10, 2, 3, 1, 0, 1},
                        {1, 8, 12, 12, 7, 7, 1, 3, 1},
                        {3, 7, 8, 6, 1, 5, 1, 2, 1},
                        {1, 8, 6, 8, 3, 3, 3, 1, 1},
                        {1, 8, 9, 12, 3, 3, 1, 1, 1, DType::F16},
                        {2, 4, 7, 8, 3, 3, 2, 1, 1, DType::BF16}};
  for (const Case& c : cases)
    for (const bool last : {false, true}) {
      SCOPED_TRACE(str_cat(c.height, " x ", c.width, " by ", c.down, " x ", c.across, last ? ", channels last" : ""));
      Graph g;
      const Shape first{c.batch, c.channels, c.height, c.width}, behind{c.batch, c.height, c.width, c.channels};
      const Tensor given = g.input("x", last ? behind : first, c.type), x = last ? given.permute({0, 3, 1, 2}) : given;
      const Tensor w = g.input("w", {c.channels, 1, c.down, c.across}, c.type), b = g.input("b", {c.channels}, c.type);
      const Tensor y = relu(conv2d(x, w, b, c.stride, c.padding, c.dilation, c.channels));
      g.output("y", last ? y.permute({0, 2, 3, 1}) : y);
      EXPECT_EQ(kernels(g, "gpu: conv"), 1);
      agrees("of each channel", g);
    }
}

// There are so many results that a thread computes several rows, the last of which are incomplete.
TEST_P(Products, AsLargeConvolutionsOfEachChannel) {
  for (const bool last : {false, true}) {
    Graph g;
    const Dim n = Dim::symbol("n", 1, 8);
    const Tensor given = g.input("x", last ? Shape{n, 94, 91, 32} : Shape{n, 32, 94, 91});
    const Tensor x = last ? given.permute({0, 3, 1, 2}) : given;
    const Tensor w = last ? g.input("w", {3, 3, 32, 1}).permute({2, 3, 0, 1}) : g.input("w", {32, 1, 3, 3});
    const Tensor y = conv2d(x, w, {}, 1, 1, 1, 32);
    g.output("y", last ? y.permute({0, 2, 3, 1}) : y);
    EXPECT_EQ(kernels(g, "gpu: conv"), 1);
    for (const std::int64_t images : {1, 2}) {
      const Bindings sizes{{"n", images}};
      const VerifyReport r = verify(g, generic() | compiler(), {.trials = 1, .sizes = sizes, .shrink = false});
      EXPECT_TRUE(r.ok()) << images << " images: " << r.str();
    }
  }
}

// The same with a result that has channels last, too. No GPU pass creates this, so the graph is built by hand.
TEST_P(Products, AsConvolutionsOfEachChannelThatLiesLast) {
  struct Case {
    int channels, height, width, taps, stride, padding, dilation;
  };
  for (const Case& c :
       {Case{8, 9, 12, 3, 1, 1, 1}, {6, 7, 11, 3, 2, 1, 1}, {5, 8, 8, 5, 1, 2, 1}, {12, 9, 9, 3, 1, 0, 2}})
    for (const bool filter_last : {false, true}) {
      SCOPED_TRACE(str_cat(c.channels, " channels of ", c.height, " x ", c.width));
      Graph g;
      const Tensor x = g.input("x", {2, c.height, c.width, c.channels});
      const Tensor w = filter_last ? g.input("w", {c.taps, c.taps, c.channels}).permute({2, 0, 1})
                                   : g.input("w", {c.channels, c.taps, c.taps});
      Tensor t = x.pad(1, c.padding, c.padding).pad(2, c.padding, c.padding);
      t = t.unfold(1, c.taps, c.stride, c.dilation).unfold(2, c.taps, c.stride, c.dilation);
      const Shape full = t.shape();
      Shape rows(full.begin(), full.end() - 2);
      rows.push_back(c.taps * c.taps);
      const Tensor filters = w.reshape({1, 1, 1, c.channels, c.taps, c.taps}).expand(full).reshape(rows);
      const Tensor y = prim::sum_reduce(prim::mul(t.reshape(rows), filters), 4);
      g.output("y", relu(y.reshape({2, full[1], full[2], c.channels}) + g.input("b", {c.channels})));
      EXPECT_EQ(kernels(g, "gpu: conv"), 1);
      agrees("of each channel", g);
    }
}

// One axis and three, and a filter with channels last.
TEST_P(Products, AsConvolutionsOfEachChannelAlongOtherAxes) {
  Graph one;
  one.output("y", conv1d(one.input("x", {2, 8, 37}), one.input("w", {8, 1, 5}), one.input("b", {8}), 1, 2, 1, 8));
  agrees("one axis", one);
  Graph three;
  three.output("y", conv3d(three.input("x", {1, 4, 5, 6, 8}), three.input("w", {4, 1, 3, 3, 3}), {}, 1, 1, 1, 4));
  agrees("three axes", three);
  Graph filters;
  const Tensor x = filters.input("x", {1, 9, 10, 8}).permute({0, 3, 1, 2});
  const Tensor w = filters.input("w", {3, 3, 8, 1}).permute({2, 3, 0, 1});
  filters.output("y", gelu(conv2d(x, w, filters.input("b", {8}), 1, 1, 1, 8)).permute({0, 2, 3, 1}));
  agrees("a filter with channels last", filters);
}
