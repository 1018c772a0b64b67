// A program packs the weights of its products once, when they are loaded, and keeps them once. What follows a product
// runs behind it, and its operands are rounded no further than the precision that was asked for.
#include "lightcone/runtime/program.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "lightcone/backends/cpu/products/microkernel.h"
#include "lightcone/nn/parameter.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"
#include "on_device.h"

using namespace lc;

// Packed weights share one block, because a mapping for each would be too small for huge pages.
TEST(Program, PreparedValuesAndStatesAreOneBlock) {
  LIGHTCONE_CPU_ALONE();
  Graph g;
  const Tensor x = g.input("x", {4, 64});
  for (const char* name : {"v", "w"}) {
    const Tensor weight = g.parameter(name, {32, 64}, DType::F32);
    const Tensor y = matmul(x, weight.permute({1, 0})), s = g.input(str_cat("state of ", name), {4, 32});
    g.assign(s, prim::add(s, y));
  }
  const Program p = compile(g, generic() | test::device({.threads = 1}));
  std::vector<std::size_t> prepared, states;
  for (NodeId id = 0; id < p.graph().size(); ++id) {
    const Node& n = p.graph()[id];
    if (n.op == Op::Kernel && n.kernel->name().starts_with("pack")) prepared.push_back(p.plan().nodes[id].offset);
    if (n.op == Op::Input && n.name.starts_with("state")) states.push_back(p.plan().nodes[id].offset);
  }
  EXPECT_EQ(prepared, (std::vector<std::size_t>{0, 32 * 64 * 4}));
  EXPECT_EQ(states, (std::vector<std::size_t>{0, 4 * 32 * 4}));
  EXPECT_EQ(p.plan().prepared_bytes, 2u * 32 * 64 * 4);
  EXPECT_EQ(p.plan().state_bytes, 2u * 4 * 32 * 4);
}

// Products of the same rows, such as Q, K and V, are one kernel with one result, of which each is a part. It takes what
// the rows of a run need, not what they may need at most, and the parts lie where they are expected.
TEST(Program, ResultsOfAGroupTakeWhatTheirRowsNeed) {
  LIGHTCONE_CPU_ALONE();
  constexpr std::int64_t kMost = 4096, kWidth = 512;
  Graph g;
  const Tensor x = g.input("x", {Dim::symbol("n", 1, kMost), 64});
  std::vector<float> weights(kWidth * 64);
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i % 17) / 8 - 1;
  for (const char* name : {"q", "k", "v"})
    g.output(name, sin(matmul(x, g.parameter(str_cat("of ", name), {kWidth, 64}, DType::F32).permute({1, 0}))));
  Program p = compile(g, generic() | test::device({.threads = 1}));
  bool grouped = false;
  for (NodeId id = 0; id < p.graph().size(); ++id)
    grouped =
        grouped || (p.graph()[id].op == Op::Kernel && p.graph()[id].kernel->name().find("_x3") != std::string::npos);
  ASSERT_TRUE(grouped) << p.graph().str();
  constexpr std::size_t kRow = 3 * kWidth * 4;
  EXPECT_GE(p.plan({{"n", kMost}}).alive_bytes, kMost * kRow);
  const std::size_t few = p.plan({{"n", 1}}).alive_bytes;
  EXPECT_EQ(p.plan({{"n", 101}}).alive_bytes, few + 100 * kRow);

  for (const char* name : {"q", "k", "v"}) p.load(str_cat("of ", name), weights.data(), weights.size() * 4);
  Context c(p);
  for (const std::int64_t rows : {3, 1, 50}) {
    std::vector<float> values(static_cast<std::size_t>(rows) * 64);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 13) / 16;
    c.bind("n", rows).set("x", values).run();
    const std::vector<float> q = c.get("q");
    ASSERT_EQ(q.size(), static_cast<std::size_t>(rows * kWidth));
    EXPECT_EQ(q, c.get("k"));
    EXPECT_EQ(q, c.get("v"));
    double first = 0;
    for (std::size_t k = 0; k < 64; ++k) first += static_cast<double>(values[k]) * static_cast<double>(weights[k]);
    EXPECT_NEAR(q[0], std::sin(first), 1e-5);
  }
}

// A weight of bytes is packed when it is loaded, also where that takes more bytes than the weight, and the sums of its
// columns are computed then. A run does not read the weight itself.
TEST(Program, WeightsOfBytesArePackedWhenTheyAreLoaded) {
  LIGHTCONE_CPU_ALONE();
  constexpr std::int64_t kSize = 1536;
  Graph g;
  const Tensor x = prim::cast(g.input("x", {2, kSize}, DType::I8), DType::I32);
  const Tensor w = prim::cast(g.parameter("w", {kSize, kSize}, DType::I8), DType::I32);
  g.output("y", sub(matmul(x, w), mul(sum(w, 0), 2)));
  Program p = compile(g, generic() | test::device({.threads = 2}));
  const backends::cpu::Microkernel& unit =
      *backends::cpu::microkernel(backends::cpu::Arithmetic::Int8Exact, backends::cpu::this_target());
  EXPECT_GE(p.plan().prepared_bytes, static_cast<std::size_t>(kSize / 16 * unit.b_bytes(kSize))) << p.graph().str();
  std::vector<std::int8_t> weights(kSize * kSize), values(2 * kSize);
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<std::int8_t>(i * 2654435761u >> 13);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int8_t>(i * 40503u >> 5);
  p.load("w", weights.data(), weights.size());
  EXPECT_FALSE(p.resident("w"));
  Context c(p);
  c.set("x", ArrayView{DType::I8, {2, kSize}, std::as_bytes(std::span(values))}).run();
  const std::vector<std::int64_t> y = c.get_i64("y");
  for (const std::size_t at : {0, 1, 1535, 1536, 2000}) {
    const std::size_t row = at / kSize, column = at % kSize;
    std::int64_t want = 0;
    for (std::size_t k = 0; k < kSize; ++k) want += (values[row * kSize + k] - 2) * weights[k * kSize + column];
    EXPECT_EQ(y[at], want);
  }
}

// Weights are packed in groups of sixteen rows, unless padding a few rows would take far more memory.
TEST(Program, NarrowWeightsArePackedWhereThatWastesNoMemory) {
  LIGHTCONE_CPU_ALONE();
  for (const auto& [type, block, unit] : {std::tuple{DType::BF16, 2, 4}, std::tuple{DType::F16, 1, 2}})
    for (const auto& [n, k] : {std::pair{20, 37}, std::pair{3, 100000}}) {
      Graph g;
      const Tensor w = g.parameter("w", {n, k}, type);
      const Tensor x = g.input("x", {1, k});
      g.output("y", nn::linear(x, nn::Parameter{w}));
      Program p = compile(g, generic() | test::device({.threads = 1}));
      const std::size_t whole = static_cast<std::size_t>((n + 15) / 16 * 16 * unit * ((k + block - 1) / block));
      EXPECT_EQ(p.plan().prepared_bytes, n < 16 ? 0 : whole);
      const auto size = static_cast<std::size_t>(k);
      std::vector<std::byte> values(size * static_cast<std::size_t>(n) * 2);
      for (std::size_t i = 0; i < values.size() / 2; ++i)
        store_f64(values.data(), type, i, static_cast<double>(i % 7) - 3);
      p.load("w", values.data(), values.size());
      const std::vector<float> ones(size, 1.0f), y = Context(p).set(x, ones).run().get("y");
      for (std::size_t row = 0; row < y.size(); ++row) {
        double want = 0;
        for (std::size_t i = row * size; i < (row + 1) * size; ++i) want += static_cast<double>(i % 7) - 3;
        EXPECT_EQ(y[row], want) << row;
      }
    }
}

// An f32 weight is packed from either layout, and not packed if products read it in both.
TEST(Program, WeightsOfEitherOrderArePacked) {
  LIGHTCONE_CPU_ALONE();
  std::vector<float> values(20 * 37), x_values(9 * 37);
  for (std::size_t k = 0; k < values.size(); ++k) values[k] = static_cast<float>(k % 13) - 6;
  for (std::size_t k = 0; k < x_values.size(); ++k) x_values[k] = static_cast<float>(k % 7) - 3;
  for (const bool rows : {false, true})
    for (const bool both : {false, true}) {
      Graph g;
      const Tensor w = g.parameter("w", rows ? Shape{20, 37} : Shape{37, 20}, DType::F32);
      const Tensor x = g.input("x", {9, 37}), wide = rows ? w.permute({1, 0}) : w;
      const Tensor y = matmul(x, wide);
      g.output("y", y);
      if (both) g.output("z", matmul(y, wide.permute({1, 0})));
      Program p = compile(g, generic() | test::device({.threads = 1}));
      EXPECT_EQ(p.plan().prepared_bytes, both ? 0u : 2u * 16 * 37 * 4);
      p.load("w", values.data(), values.size() * 4);
      const std::vector<float> have = Context(p).set(x, x_values).run().get("y");
      for (std::size_t i = 0; i < 9; ++i)
        for (std::size_t j = 0; j < 20; ++j) {
          float want = 0;
          for (std::size_t k = 0; k < 37; ++k) want += x_values[i * 37 + k] * values[rows ? j * 37 + k : k * 20 + j];
          EXPECT_EQ(have[i * 20 + j], want) << i << " " << j;
        }
    }
}

// Bias, activation and residual of a product are its epilogue, not a kernel of their own.
TEST(Program, ElementwiseConsumersRunBehindProducts) {
  for (const std::int64_t rows : {1, 40}) {
    Graph g;
    const Tensor x = g.input("x", {rows, 24}), w = g.input("w", {24, 30}), bias = g.input("b", {30});
    const Tensor residual = g.input("r", {rows, 30});
    g.output("y", relu(matmul(x, w) + bias) + residual);
    const Program p = compile(g, generic() | test::device({.threads = 1}));
    EXPECT_EQ(fired(p.log(), "epilogue"), 1);
    EXPECT_EQ(p.kernels(), 1);
    Context c(p);
    std::vector<float> a(static_cast<std::size_t>(rows) * 24, 1.0f), r(static_cast<std::size_t>(rows) * 30, 0.5f);
    std::vector<float> weight(24 * 30), b(30);
    for (std::size_t j = 0; j < 30; ++j) {
      b[j] = static_cast<float>(j) - 15;
      for (std::size_t k = 0; k < 24; ++k) weight[k * 30 + j] = k == j ? 2.0f : 0.0f;
    }
    weight[3] = std::nanf("");
    const std::vector<float> y = c.set("x", a).set("w", weight).set("b", b).set("r", r).run().get("y");
    for (std::size_t i = 0; i < y.size(); ++i) {
      const std::size_t j = i % 30;
      if (j == 3) EXPECT_TRUE(std::isnan(y[i])) << i;
      else EXPECT_EQ(y[i], std::max(0.0f, (j < 24 ? 2.0f : 0.0f) + b[j]) + 0.5f) << i;
    }
  }
}

// Medium precision rounds operands to bf16 or 8 bits, and no further; highest is exact to f32.
TEST(Program, PrecisionIsWhatWasAskedFor) {
  constexpr std::int64_t kRows = 40, kColumns = 48, kDepth = 512;
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  std::vector<float> w(kColumns * kDepth), x(kRows * kDepth);
  for (float& v : w) v = normal(random);
  for (float& v : x) v = normal(random);
  std::vector<double> error;
  for (const Precision precision : {Precision::Highest, Precision::High, Precision::Medium}) {
    Graph g;
    const Tensor weight = g.parameter("w", {kColumns, kDepth}, DType::F32);
    g.output("y", matmul(g.input("x", {kRows, kDepth}), weight.permute({1, 0})));
    Program p = compile(g, generic() | test::device({.threads = 2, .precision = precision}));
    p.load("w", w.data(), w.size() * 4);
    const std::vector<float> y = Context(p).set("x", x).run().get("y");
    double worst = 0;
    for (std::size_t i = 0; i < kRows; ++i)
      for (std::size_t j = 0; j < kColumns; ++j) {
        double want = 0, size = 0;
        for (std::size_t k = 0; k < kDepth; ++k) {
          const double term = static_cast<double>(x[i * kDepth + k]) * static_cast<double>(w[j * kDepth + k]);
          want += term, size += std::abs(term);
        }
        ASSERT_TRUE(std::isfinite(y[i * kColumns + j]));
        worst = std::max(worst, std::abs(static_cast<double>(y[i * kColumns + j]) - want) / size);
      }
    error.push_back(worst);
  }
  EXPECT_LT(error[0], 1e-6);
  EXPECT_LT(error[1], test::device_name() == "cpu" ? 3e-5 : 0x1p-11);  // other devices use TF32
  EXPECT_LT(error[2], 0x1p-8);
  if (test::device_name() != "cpu" || backends::cpu::bf16_is_fast(backends::cpu::detect_isa())) {
    EXPECT_GT(error[2], 20 * error[0]) << "medium was not used";
  }
}

// A quantized weight is packed at load time, and not kept twice.
TEST(Program, WhatDependsOnParametersAloneIsComputedWhenTheyAreLoaded) {
  LIGHTCONE_CPU_ALONE();
  Graph g;
  const nn::Parameter w = nn::parameter(g, "w", {20, 256}, DType::F32, QuantFormat::Q4_K);
  const Tensor x = g.input("x", {1, 256});
  g.output("y", nn::linear(x, w));
  const Tensor s = g.parameter("s", {4}, DType::F32);
  g.assign(s, prim::add(s, full_like(s, 1)));  // a state is no constant parameter
  Program p = compile(g, generic() | test::device({.threads = 1}));
  EXPECT_EQ(fired(p.log(), "weight packed"), 1);
  EXPECT_FALSE(p.resident("w"));
  EXPECT_TRUE(p.resident("x"));
  EXPECT_TRUE(p.resident("s"));
  EXPECT_EQ(p.plan().prepared_bytes, 2u * 16 * 144);  // two groups of sixteen rows, no larger than in the file
  EXPECT_EQ(p.plan().input_bytes, 1024u);
  const std::vector<float> ones(256, 1.0f);
  EXPECT_THROW(Context(p).set(x, ones).run(), Error);
  const std::vector<float> zeros(4);
  p.load("s", zeros.data(), 16);
  for (const double scale : {1.0, 0.25}) {
    std::vector<std::byte> blocks(20 * 144);
    Value value = make_value(DType::U8, {20, 144});
    for (std::size_t k = 0; k < blocks.size(); ++k) blocks[k] = static_cast<std::byte>(k * 37 % 251);
    for (std::size_t row = 0; row < 20; ++row) {
      store_f64(blocks.data() + row * 144, DType::F16, 0, scale * 0.01);
      store_f64(blocks.data() + row * 144, DType::F16, 1, scale * 0.02);
    }
    for (std::size_t k = 0; k < blocks.size(); ++k) value.i[k] = static_cast<std::int64_t>(blocks[k]);
    p.load("w", blocks.data(), blocks.size());
    std::fill(blocks.begin(), blocks.end(), std::byte{0xff});  // the given memory is no longer read
    Context c(p);
    EXPECT_THROW(c.set_bytes("w", blocks.data(), blocks.size()), Error);
    const std::vector<float> y = c.set(x, ones).run().get("y");
    Value in = make_value(DType::F32, {1, 256}), state = make_value(DType::F32, {4});
    std::fill(in.f.begin(), in.f.end(), 1.0);
    const Results want = interpret(g, {{"w", value}, {"x", in}, {"s", state}});
    for (std::size_t k = 0; k < y.size(); ++k) EXPECT_NEAR(y[k], want.outputs.at("y").f[k], 1e-3 * scale) << k;
  }
}
