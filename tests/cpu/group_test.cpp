// Products that share their rows run as one kernel and give the bits of separate products, for every kind of weight and
// number of threads.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>

#include <gtest/gtest.h>

#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/formats/block_formats.h"
#include "lightcone/nn/parameter.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/profile/timeline.h"
#include "lightcone/runtime/program.h"
#include "random_inputs.h"

using namespace lc;
using lc::test::normals;

namespace {

constexpr const char* kGroups = "products of the same rows";
constexpr const char* kRows = "rows made in the product";
constexpr std::int64_t kDepth = 256;

struct Weights {
  DType dtype;
  std::optional<QuantFormat> quant;
  Precision precision;
};

// Returns the bytes of a parameter: random numbers, or quantized blocks with small scales (f16, at any position).
std::vector<std::byte> content(const Node& n, bool blocks, unsigned seed) {
  std::size_t count = 1;
  for (const Dim& d : n.shape) count *= static_cast<std::size_t>(*d.constant());
  std::vector<std::byte> bytes(count * size_of(n.dtype));
  const std::vector<float> v = normals(count, seed);
  for (std::size_t k = 0; k < count; ++k) {
    if (blocks) bytes[k] = static_cast<std::byte>((k * 37 + seed) % 41);  // any two of these bytes are a finite half
    else store_f64(bytes.data(), n.dtype, k, static_cast<double>(v[k]));
  }
  return bytes;
}

using Build = std::function<std::map<std::string, Tensor>(Graph&, const Weights&)>;

struct Ran {
  std::map<std::string, std::vector<float>> outputs;
  int groups = 0, rows = 0;
  std::size_t kernels = 0;
};

// Runs the graph with the output `only`, or with all outputs if it is empty.
Ran run(const Build& build, const Weights& kind, std::int64_t seq, int threads, const std::string& only = "") {
  Graph g;
  for (const auto& [name, t] : build(g, kind))
    if (only.empty() || name == only) g.output(name, t);
  Program p = compile(g, generic() | cpu({.threads = threads, .precision = kind.precision}));
  for (NodeId id = 0; id < g.size(); ++id)
    if (g[id].op == Op::Input && g[id].parameter) {
      const auto bytes = std::make_shared<const std::vector<std::byte>>(
          content(g[id], g[id].dtype == DType::U8, static_cast<unsigned>(g[id].name.back())));
      p.load(g[id].name, bytes->data(), bytes->size(), bytes);
    }
  Context c(p);
  if (p.has_symbol("seq")) c.bind("seq", seq);
  for (const char* name : {"x", "r"}) {
    const auto inputs = p.inputs();
    if (std::find(inputs.begin(), inputs.end(), name) == inputs.end()) continue;
    c.set(name, normals(static_cast<std::size_t>(seq * (name[0] == 'x' ? kDepth : 80)), 5));
  }
  c.run();
  Ran r;
  for (const std::string& name : p.outputs()) r.outputs[name] = c.get(name);
  r.groups = fired(p.log(), kGroups);
  r.rows = fired(p.log(), kRows);
  r.kernels = p.kernels();
  return r;
}

Dim seq() { return Dim::symbol("seq", 1, 48); }
nn::Parameter weight(Graph& g, const char* name, std::int64_t n, const Weights& k) {
  return nn::parameter(g, name, {n, kDepth}, k.dtype, k.quant);
}

void same_bits(const std::vector<float>& have, const std::vector<float>& want, const std::string& what) {
  ASSERT_EQ(have.size(), want.size());
  double size = 0;
  for (const float v : want) size += std::abs(static_cast<double>(v));
  EXPECT_TRUE(std::isfinite(size) && size > 0) << what;
  EXPECT_EQ(std::memcmp(have.data(), want.data(), have.size() * 4), 0) << what;
}

// Calls `see` for all kinds of weights, numbers of rows and threads.
void each(const std::function<void(const Weights&, std::int64_t m, int threads, const std::string& what)>& see) {
  for (const Weights& kind : {Weights{DType::F32, {}, Precision::Highest}, Weights{DType::F32, {}, Precision::Medium},
                              Weights{DType::BF16, {}, Precision::Highest}, Weights{DType::BF16, {}, Precision::Medium},
                              Weights{DType::U8, QuantFormat::Q8_0, Precision::Medium},
                              Weights{DType::U8, QuantFormat::Q4_K, Precision::Medium},
                              Weights{DType::U8, QuantFormat::Q6_K, Precision::Highest}})
    for (const std::int64_t m : {1, 3, 4, 5, 40})
      for (const int threads : {1, 2})
        see(kind, m, threads, str_cat("m ", m, ", threads ", threads, ", ", lc::name(kind.dtype)));
}

// Checks that all products of one kernel have the bits that each has as a kernel of its own.
void same_as_alone(const Build& build, int groups) {
  each([&](const Weights& kind, std::int64_t m, int threads, const std::string& what) {
    const Ran all = run(build, kind, m, threads);
    EXPECT_EQ(all.groups, groups);
    for (const auto& [name, y] : all.outputs)
      same_bits(y, run(build, kind, m, 1, name).outputs.at(name), name + ", " + what);
  });
}

}  // namespace

TEST(Group, QueryKeyAndValueAreOneKernel) {
  same_as_alone(
      [](Graph& g, const Weights& k) {
        const Tensor x = g.input("x", {seq(), kDepth});
        return std::map<std::string, Tensor>{
            {"q", nn::linear(x, weight(g, "wq", 80, k))},
            {"k", nn::linear(x, weight(g, "wk", 16, k)) + g.input("r", {seq(), 80}).slice(1, 0, 16)},
            {"v", nn::linear(x, weight(g, "wv", 32, k))}};
      },
      1);
}

// The epilogue of one product reads the other, so both are computed column block by column block, not one after the
// other.
TEST(Group, GateAndUpAreOneKernelWithTheirActivation) {
  const Build build = [](Graph& g, const Weights& k) {
    const Tensor x = g.input("x", {seq(), kDepth});
    const Tensor gate = nn::linear(x, weight(g, "wg", 80, k)), up = nn::linear(x, weight(g, "wu", 80, k));
    return std::map<std::string, Tensor>{{"y", silu(gate) * up}};
  };
  const Weights kind{DType::F32, {}, Precision::Highest};
  for (const std::int64_t m : {1, 4, 5, 40}) {
    const Ran both = run(build, kind, m, 2);
    EXPECT_EQ(both.groups, 1);
    EXPECT_EQ(both.kernels, 1u);
    const auto rows = normals(static_cast<std::size_t>(m * kDepth), 5);
    const auto gate = normals(80 * kDepth, 'g'), up = normals(80 * kDepth, 'u');
    for (std::size_t i = 0; i < static_cast<std::size_t>(m); ++i)
      for (std::size_t j = 0; j < 80; ++j) {
        double a = 0, b = 0;
        for (std::size_t k = 0; k < kDepth; ++k) {
          a += static_cast<double>(rows[i * kDepth + k]) * static_cast<double>(gate[j * kDepth + k]);
          b += static_cast<double>(rows[i * kDepth + k]) * static_cast<double>(up[j * kDepth + k]);
        }
        EXPECT_NEAR(both.outputs.at("y")[i * 80 + j], a / (1 + std::exp(-a)) * b, 1e-3 * (1 + std::abs(a * b)));
      }
  }
}

// If there is a single row, a value of the epilogue may be a result as well, in another shape.
TEST(Group, AnEpilogueWhoseOnlyRowIsAResult) {
  Graph g;
  const Weights k{DType::F32, {}, Precision::Highest};
  const Tensor x = g.input("x", {1, kDepth}), r = g.input("r", {16});
  const Tensor y = exp(nn::linear(x, weight(g, "wa", 16, k)) * 0.01) * nn::linear(x, weight(g, "wb", 16, k));
  g.output("y", y.reshape({16}));
  g.output("larger", prim::maximum(y.reshape({16}), r));
  Program p = compile(g, generic() | cpu({.threads = 2}));
  EXPECT_EQ(fired(p.log(), kGroups), 1);
  const auto rows = normals(kDepth, 5), a = normals(16 * kDepth, 1), b = normals(16 * kDepth, 2);
  p.load("wa", a.data(), a.size() * 4).load("wb", b.data(), b.size() * 4);
  Context c(p);
  c.set("x", rows).set("r", std::vector<float>(16)).run();
  for (std::size_t j = 0; j < 16; ++j) {
    double first = 0, second = 0;
    for (std::size_t i = 0; i < kDepth; ++i) {
      first += static_cast<double>(rows[i]) * static_cast<double>(a[j * kDepth + i]);
      second += static_cast<double>(rows[i]) * static_cast<double>(b[j * kDepth + i]);
    }
    const double want = std::exp(first * 0.01) * second;
    EXPECT_NEAR(c.get("y")[j], want, 1e-4 * (1 + std::abs(want)));
    EXPECT_EQ(c.get("larger")[j], std::max(c.get("y")[j], 0.0f));
  }
}

// A product that depends on another product's result is not grouped with it.
TEST(Group, WhatDependsOnAnotherStaysApart) {
  same_as_alone(
      [](Graph& g, const Weights& k) {
        const Tensor x = g.input("x", {seq(), kDepth}), first = nn::linear(x, weight(g, "w1", 80, k));
        const Tensor scale = 1.0 / (amax(abs(first), {1}, true) + 1.0);
        return std::map<std::string, Tensor>{
            {"first", first}, {"scale", scale}, {"second", nn::linear(x, weight(g, "w2", 48, k)) * scale}};
      },
      0);
}

// The rows are not a plain matrix, and the results are read through views, stored as state or read directly.
TEST(Group, PartsAreValuesLikeAnyOther) {
  Graph g;
  const Weights k{DType::F32, {}, Precision::Highest};
  const Tensor x = g.input("x", {2, seq(), 2 * kDepth}).slice(2, 0, kDepth).permute({1, 0, 2});
  // the epilogue of one product, with result rows that are two apart
  const Tensor a = relu(nn::linear(x, weight(g, "wa", 80, k))), b = nn::linear(x, weight(g, "wb", 48, k));
  g.output("a", a);
  g.output("b", b.permute({2, 0, 1}));
  const Tensor c = nn::linear(x, weight(g, "wc", 64, k));
  const Tensor state = g.input("s", {64});
  const Tensor total = prim::sum_reduce(prim::sum_reduce(c, 0), 0);
  g.output("total", total);
  g.assign(state, prim::add(state, total));
  Program p = compile(g, generic() | cpu({.threads = 2}));
  EXPECT_EQ(fired(p.log(), kGroups), 1);
  std::map<std::string, Value> values;
  for (const char* name : {"wa", "wb", "wc"}) {
    const std::int64_t n = name[1] == 'a' ? 80 : name[1] == 'b' ? 48 : 64;
    const auto v = normals(static_cast<std::size_t>(n * kDepth), static_cast<unsigned>(name[1]));
    p.load(name, v.data(), v.size() * 4);
    values[name] = make_value(DType::F32, {n, kDepth});
    values[name].f.assign(v.begin(), v.end());
  }
  Context context(p);
  for (const std::int64_t m : {48, 1, 7}) {
    const auto v = normals(static_cast<std::size_t>(4 * m * kDepth), static_cast<unsigned>(m));
    values["x"] = make_value(DType::F32, {2, m, 2 * kDepth});
    values["x"].f.assign(v.begin(), v.end());
    values["s"] = make_value(DType::F32, {64});
    values["s"].f = context.get_f64("s");
    context.bind("seq", m).set("x", v).run();
    const Results want = interpret(g, values, {{"seq", m}}, Rounding::Wide, true);
    for (const auto& [name, w] : want.outputs) {
      const auto have = context.get_f64(name);
      ASSERT_EQ(have.size(), w.size());
      for (std::size_t i = 0; i < w.size(); ++i) EXPECT_NEAR(have[i], w.f[i], 4 * w.error_at(i)) << name << " " << i;
    }
  }
  // their memory is counted once, and they have no steps of their own
  const MemoryTimeline t = memory_timeline(p.graph(), p.plan());
  EXPECT_LE(*std::max_element(t.in_use.begin(), t.in_use.end()), p.plan().arena_bytes);
  EXPECT_EQ(t.steps.size(), p.kernels() + 3);  // plus the packing of three weights
}

// The memory of a group is released after the last of its parts has been read.
TEST(Group, DeepModelsNeedNoMoreMemory) {
  const auto arena = [](int layers) {
    Graph g;
    const Weights k{DType::F32, {}, Precision::Highest};
    Tensor x = g.input("x", {seq(), kDepth});
    for (int layer = 0; layer < layers; ++layer) {
      const std::string name = str_cat("layer", layer);
      const Tensor a = nn::linear(x, weight(g, (name + "a").c_str(), kDepth, k)),
                   b = nn::linear(x, weight(g, (name + "b").c_str(), kDepth, k));
      x = softmax(a, 1) + flip(softmax(b, 1), {1});
    }
    g.output("y", x);
    const Program p = compile(g, generic() | cpu({.threads = 1}));
    EXPECT_EQ(fired(p.log(), kGroups), layers);
    return p.plan().arena_bytes;
  };
  EXPECT_EQ(arena(3), arena(8));
}

// A norm before a product has the same bits whether its rows are computed in the product's prologue, strip by strip, or
// are materialized because something else reads them.
TEST(Rows, OfANormAreMadeInTheProduct) {
  const auto norm_then = [](int products) {
    return [products](Graph& g, const Weights& k) {
      const Tensor x = g.input("x", {seq(), kDepth});
      const Tensor norm = rms_norm(x, {kDepth}, nn::parameter(g, "n", {kDepth}, DType::F32).value(), 1e-5);
      Tensor y = nn::linear(norm, weight(g, "w1", 512, k)) + g.input("r", {seq(), 80}).slice(1, 0, 1);
      if (products > 1) y = silu(nn::linear(norm, weight(g, "w2", 512, k))) * y;
      return std::map<std::string, Tensor>{{"y", y}, {"norm", norm}};
    };
  };
  for (const int products : {1, 2})
    each([&](const Weights& kind, std::int64_t m, int threads, const std::string& what) {
      const Ran made = run(norm_then(products), kind, m, threads, "y"), lies = run(norm_then(products), kind, m, 1);
      EXPECT_EQ(made.rows, 1);
      EXPECT_EQ(lies.rows, 0);
      EXPECT_EQ(made.kernels, 1u);
      same_bits(made.outputs.at("y"), lies.outputs.at("y"), what);
    });
}

// Rows of several axes, and elementwise operations on a view.
TEST(Rows, OfAnyLoopThatMakesThemInOrder) {
  const Build build = [](Graph& g, const Weights& k) {
    const Tensor x = g.input("x", {seq(), 2, kDepth / 2}).permute({1, 0, 2});
    const Tensor rows = gelu(x) * 2.0 + 1.0;
    return std::map<std::string, Tensor>{{"y", nn::linear(rows, nn::parameter(g, "w", {640, kDepth / 2}, k.dtype))},
                                         {"rows", rows}};
  };
  const Weights kind{DType::F32, {}, Precision::Highest};
  for (const std::int64_t m : {1, 2, 7, 48}) {
    const Ran made = run(build, kind, m, 2, "y"), lies = run(build, kind, m, 1);
    EXPECT_EQ(lies.rows, 0);
    same_bits(made.outputs.at("y"), lies.outputs.at("y"), str_cat("m ", m));
  }
}

// Rows are materialized if a prologue would run on one worker (a short product), or would be recomputed in every run.
TEST(Rows, LieInMemoryWhereMakingThemCosts) {
  const auto rows_made = [](const std::function<Tensor(Graph&)>& a, std::int64_t n) {
    Graph g;
    g.output("y", nn::linear(a(g), nn::parameter(g, "w", {n, kDepth}, DType::F32)));
    const Program p = compile(g, generic() | cpu({.threads = 2}));
    return fired(p.log(), kRows);
  };
  const auto cheap = [](Graph& g) { return relu(g.input("x", {40, kDepth}) + 1.0); };
  EXPECT_EQ(rows_made(cheap, 512), 1);
  EXPECT_EQ(rows_made(cheap, 16), 0);
  const auto wide = [](Graph& g, bool across) {
    return relu(across ? g.input("x", {kDepth, 4096}).permute({1, 0}) : g.input("x", {4096, kDepth}));
  };
  EXPECT_EQ(rows_made([&](Graph& g) { return wide(g, false); }, 512), 1);
  EXPECT_EQ(rows_made([&](Graph& g) { return wide(g, true); }, 512), 0);  // tiles read such rows faster from memory
  EXPECT_EQ(rows_made([](Graph& g) { return mean(relu(g.input("x", {40, kDepth, 49})), {2}); }, 512), 0);
  EXPECT_EQ(rows_made(
                [](Graph& g) {
                  return relu(nn::parameter(g, "p", {40, kDepth}, DType::F32).value() + 1.0);
                },
                512),
            0);
  EXPECT_EQ(rows_made([](Graph& g) { return relu(g.input("x", {std::int64_t{1} << 20, kDepth})); }, 512), 0);
}

// An empty product computes no rows, and divides by no row count.
TEST(Rows, ThereMayBeNone) {
  Graph g;
  const Tensor x = g.input("x", {0, 2, kDepth});
  g.output("y", nn::linear(relu(x + 1.0), nn::parameter(g, "w", {512, kDepth}, DType::F32)));
  Program p = compile(g, generic() | cpu({.threads = 2}));
  const auto w = normals(512 * kDepth, 1);
  p.load("w", w.data(), w.size() * 4);
  Context c(p);
  c.set("x", std::vector<float>()).run();
  EXPECT_TRUE(c.get("y").empty());
  EXPECT_EQ(c.shape("y"), (std::vector<std::int64_t>{0, 2, 512}));
}

// Constant rows are multiplied once, at load time, each product by itself. A parameter that a run assigns is not
// constant, and its rows are ordinary operands.
TEST(Group, AnAssignedParameterIsNoConstant) {
  for (const bool assigned : {false, true}) {
    Graph g;
    const auto parameter = [&](const char* name, std::int64_t rows) {
      return g.parameter(name, {rows, kDepth}, DType::F32);
    };
    const Tensor rows = parameter("rows", 8);
    g.output("p", linear(rows, parameter("v", 64)));
    g.output("q", linear(rows, parameter("w", 64)));
    if (assigned) g.assign(rows, rows * 2.0);
    Program p = compile(g, generic() | cpu({.threads = 2}));
    for (const char* name : {"v", "w"}) {
      const auto bytes = std::make_shared<const std::vector<float>>(64 * kDepth, 0.5f);
      p.load(name, bytes->data(), bytes->size() * sizeof(float), bytes);
    }
    const auto ones = std::make_shared<const std::vector<float>>(8 * kDepth, 1.0f);
    p.load("rows", ones->data(), ones->size() * sizeof(float), ones);
    EXPECT_EQ(fired(p.log(), kGroups), assigned ? 1 : 0);
    Context c(p);
    for (int k = 0; k < 3; ++k) {
      c.run();
      EXPECT_EQ(c.get("q"), std::vector<float>(512, assigned ? 128.0f * static_cast<float>(1 << k) : 128.0f)) << k;
      EXPECT_EQ(c.get("p"), c.get("q"));
    }
  }
}
