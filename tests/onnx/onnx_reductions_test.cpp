// ONNX's reductions, normalisations, losses, products and steps of optimisers, in the operator sets where their meaning
// changed. The numbers are those of the specification's examples, or worked out by hand.
#include <cmath>
#include <limits>

#include "run_node.h"

using namespace lc;
using namespace lc::test;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const OperandSpec kRow = f32({2, 3}, {1, 2, 3, 4, 5, 6});

TEST(OnnxReductions, AxesAreAnAttributeAndThenAnOperand) {
  expect_node({"ReduceSum", 11, {{"axes", std::vector<std::int64_t>{-1}}, {"keepdims", 0}}}, {kRow}, {6, 15}, {2});
  expect_node({"ReduceSum", 13, {{"keepdims", 0}}}, {kRow, ints({-1})}, {6, 15}, {2});
  expect_node({"ReduceMean", 13, {{"axes", std::vector<std::int64_t>{0}}}}, {kRow}, {2.5, 3.5, 4.5}, {1, 3});
  expect_node({"ReduceMean", 18}, {kRow, ints({0})}, {2.5, 3.5, 4.5}, {1, 3});
  expect_node({"ReduceMax", 20}, {kRow}, {6}, {1, 1});
}

// Without axes, noop_with_empty_axes reduces nothing, but what is not the reduction itself is still done.
TEST(OnnxReductions, NoAxesMayMeanNone) {
  expect_node({"ReduceSum", 13, {{"noop_with_empty_axes", 1}}}, {kRow}, {1, 2, 3, 4, 5, 6}, {2, 3});
  expect_node({"ReduceSumSquare", 18, {{"noop_with_empty_axes", 1}}}, {kRow, ints({})}, {1, 4, 9, 16, 25, 36}, {2, 3});
  expect_node({"ReduceSumSquare", 18}, {kRow, ints({})}, {91}, {1, 1});
}

TEST(OnnxReductions, NoElements) {
  const auto reduced = [](const char* op, DType t) {
    const Result r = run_node({op, 20, {{"keepdims", 0}}}, {typed(t, {2, 0}, {}), ints({1})})[0];
    EXPECT_EQ(r.dtype, t) << op;
    return r.numbers;
  };
  using V = std::vector<double>;
  EXPECT_EQ(reduced("ReduceSum", DType::F32), (V{0, 0}));
  EXPECT_EQ(reduced("ReduceProd", DType::F32), (V{1, 1}));
  EXPECT_EQ(reduced("ReduceMax", DType::F32), (V{-kInf, -kInf}));
  EXPECT_EQ(reduced("ReduceMin", DType::F32), (V{kInf, kInf}));
  EXPECT_EQ(reduced("ReduceMin", DType::I8), (V{127, 127}));
  EXPECT_EQ(reduced("ReduceMax", DType::Bool), (V{0, 0}));
  EXPECT_EQ(reduced("ReduceLogSumExp", DType::F32), (V{-kInf, -kInf}));
}

TEST(OnnxReductions, IntegersKeepTheirType) {
  const OperandSpec x = typed(DType::I32, {2, 2}, {3, -4, 7, 0});
  const std::pair<const char*, std::vector<double>> cases[] = {{"ReduceSum", {-1, 7}},
                                                               {"ReduceL1", {7, 7}},
                                                               {"ReduceL2", {5, 7}},
                                                               {"ReduceMean", {0, 3}},
                                                               {"ReduceProd", {-12, 0}}};
  for (const auto& [op, want] : cases) {
    const Result r = run_node({op, 18, {{"keepdims", 0}}}, {x, ints({1})})[0];
    EXPECT_EQ(r.dtype, DType::I32) << op;
    EXPECT_EQ(r.numbers, want) << op;
  }
}

TEST(OnnxReductions, PlacesAndRunningSums) {
  const OperandSpec x = f32({2, 3}, {2, 2, 1, 3, 10, 10});
  expect_node({"ArgMax", 11, {{"axis", 1}}}, {x}, {0, 1}, {2, 1});
  expect_node({"ArgMax", 12, {{"axis", -1}, {"select_last_index", 1}, {"keepdims", 0}}}, {x}, {1, 2}, {2});
  expect_node({"ArgMin", 13, {{"axis", 0}}}, {x}, {0, 0, 0}, {1, 3});
  const OperandSpec row = f32({3}, {1, 2, 3}), axis = constant(typed(DType::I32, {}, {0}));
  expect_node({"CumSum", 14}, {row, axis}, {1, 3, 6}, {3});
  expect_node({"CumSum", 14, {{"exclusive", 1}, {"reverse", 1}}}, {row, axis}, {5, 3, 0}, {3});
  expect_node({"CumProd", 26, {{"exclusive", 1}}}, {row, axis}, {1, 1, 2}, {3});
}

// Up to operator set 12 the axes from `axis` on are one.
TEST(OnnxReductions, SoftmaxFlattensInOldSets) {
  const OperandSpec x = f32({1, 2, 2}, {0, 0, 0, 0});
  expect_node({"Softmax", 11}, {x}, {.25, .25, .25, .25}, {1, 2, 2});
  expect_node({"Softmax", 13}, {x}, {.5, .5, .5, .5}, {1, 2, 2});
  expect_node({"LogSoftmax", 13, {{"axis", 0}}}, {x}, {0, 0, 0, 0}, {1, 2, 2});
  expect_node({"Hardmax", 11}, {f32({1, 2, 2}, {1, 3, 2, 3})}, {0, 1, 0, 0}, {1, 2, 2});
  expect_node({"Hardmax", 13}, {f32({1, 2, 2}, {1, 3, 2, 3})}, {0, 1, 0, 1}, {1, 2, 2});
}

TEST(OnnxNorms, BatchesAndTheirStatistics) {
  const std::vector<OperandSpec> x = {f32({2, 1, 2}, {1, 3, 5, 7}), f32({1}, {2}), f32({1}, {1}), f32({1}, {3}),
                                      f32({1}, {4})};
  expect_node({"BatchNormalization", 9, {{"epsilon", 0.0}}}, x, {-1, 1, 3, 5}, {2, 1, 2});
  NodeSpec trains{"BatchNormalization", 15, {{"epsilon", 0.0}, {"momentum", 0.75}, {"training_mode", 1}}, 3};
  const std::vector<Result> r = run_node(trains, x);
  const double s = 2 / std::sqrt(5.0);  // the batch has the mean 4 and the variance 5
  expect_near("y", r[0].numbers, {1 - 3 * s, 1 - s, 1 + s, 1 + 3 * s});
  expect_near("mean", r[1].numbers, {3 * .75 + 4 * .25});
  expect_near("variance", r[2].numbers, {4 * .75 + 5 * .25});
  // In operator set 6 a node trains unless it says that it is a test; per element of a sample if not spatial.
  expect_node({"BatchNormalization", 6, {{"epsilon", 0.0}, {"is_test", 1}}}, x, {-1, 1, 3, 5}, {2, 1, 2});
  const OperandSpec two = f32({1, 2}, {1, 2}), ones = f32({1, 2}, {1, 1}), none = f32({1, 2}, {0, 0});
  expect_node({"BatchNormalization", 7, {{"epsilon", 0.0}, {"spatial", 0}}},
              {f32({2, 1, 2}, {1, 3, 5, 7}), two, none, none, ones}, {1, 6, 5, 14}, {2, 1, 2});
}

TEST(OnnxNorms, LayersAndGroups) {
  const OperandSpec x = f32({1, 4}, {1, 3, 5, 9}), one = f32({4}, {1, 1, 1, 1});
  const std::vector<Result> r = run_node({"LayerNormalization", 17, {{"epsilon", 0.25}}, 3}, {x, one});
  const double s = 1 / 3.0;  // mean 4.5, variance 8.75
  expect_near("y", r[0].numbers, {-3.5 * s, -1.5 * s, .5 * s, 4.5 * s});
  expect_near("mean", r[1].numbers, {4.5});
  expect_near("inverse", r[2].numbers, {s});
  EXPECT_EQ(r[1].shape, (std::vector<std::int64_t>{1, 1}));
  expect_node({"RMSNormalization", 23, {{"epsilon", 0.0}}}, {f32({1, 2}, {1, 7}), f32({2}, {5, 10})}, {1, 14}, {1, 2});
  // The scales of operator set 18 are those of two groups, later those of four channels.
  const OperandSpec y = f32({1, 4, 1}, {0, 2, 4, 8}), none2 = f32({2}, {0, 0}), none4 = f32({4}, {0, 0, 0, 0});
  const std::vector<AttributeSpec> groups = {{"num_groups", 2}, {"epsilon", 0.0}};
  expect_near("18", run_node({"GroupNormalization", 18, groups}, {y, f32({2}, {1, 3}), none2})[0].numbers,
              {-1, 1, -3, 3});
  expect_near("21", run_node({"GroupNormalization", 21, groups}, {y, f32({4}, {1, 2, 3, 4}), none4})[0].numbers,
              {-1, 2, -3, 4});
}

TEST(OnnxNorms, Others) {
  expect_node({"LpNormalization", 22, {{"p", 1}}}, {f32({2, 2}, {1, -3, 0, 0})}, {.25, -.75, 0, 0}, {2, 2});
  expect_node({"LRN", 13, {{"size", 3}, {"alpha", 3.0}, {"beta", 1.0}, {"bias", 1.0}}}, {f32({1, 3, 1}, {1, 2, 3})},
              {1. / 6, 2. / 15, 3. / 14}, {1, 3, 1});
  expect_node({"MeanVarianceNormalization", 13, {{"axes", std::vector<std::int64_t>{1}}}}, {f32({1, 2}, {1, 3})},
              {-1, 1}, {1, 2});
}

TEST(OnnxNorms, Losses) {
  const OperandSpec x = f32({2, 2}, {-1, -2, -3, -4}), t = typed(DType::I64, {2}, {1, 0}), w = f32({2}, {3, 1});
  expect_node({"NegativeLogLikelihoodLoss", 13}, {x, t}, {2.5}, {});
  expect_node({"NegativeLogLikelihoodLoss", 13}, {x, t, w}, {(2 + 3 * 3) / 4.}, {});
  expect_node({"NegativeLogLikelihoodLoss", 13, {{"reduction", "none"}, {"ignore_index", 0}}}, {x, t}, {2, 0}, {2});
  const double l = std::log(1 + std::exp(-1.));
  expect_node({"SoftmaxCrossEntropyLoss", 13, {{"reduction", "sum"}}}, {x, t}, {2 * l + 1}, {});
}

TEST(OnnxProducts, MatricesAndSums) {
  const OperandSpec a = f32({2, 2}, {1, 2, 3, 4}), b = f32({2, 3}, {1, 0, 1, 0, 1, 1}), bias = f32({3}, {1, 2, 3});
  expect_node({"MatMul", 13}, {a, b}, {1, 2, 3, 3, 4, 7}, {2, 3});
  expect_node({"MatMul", 13}, {f32({2}, {1, 2}), a}, {7, 10}, {2});
  expect_node({"Gemm", 13}, {a, b, bias}, {2, 4, 6, 4, 6, 10}, {2, 3});
  expect_node({"Gemm", 13, {{"transA", 1}, {"alpha", 2.0}, {"beta", 0.5}}}, {a, b, bias}, {2.5, 7, 9.5, 4.5, 9, 13.5},
              {2, 3});
  expect_node({"Gemm", 6, {{"broadcast", 1}}}, {a, b, bias}, {2, 4, 6, 4, 6, 10}, {2, 3});
  expect_node({"Einsum", 12, {{"equation", "...ij, ...jk -> ...ki"}}}, {a, b}, {1, 3, 2, 4, 3, 7}, {3, 2});
  const std::vector<double> det = run_node({"Det", 11}, {a})[0].numbers;
  expect_near("Det", det, {-2});
}

TEST(OnnxTraining, Steps) {
  const OperandSpec rate = f32({}, {.5}), first = typed(DType::I64, {}, {0}), later = typed(DType::I64, {}, {1});
  const std::string domain = "ai.onnx.preview.training";
  const OperandSpec x = f32({1}, {4}), g = f32({1}, {3});
  const NodeSpec adagrad{"Adagrad", 1, {{"epsilon", 0.0}, {"decay_factor", 1.0}}, 2, domain};
  const std::vector<Result> a = run_node(adagrad, {rate, later, x, g, f32({1}, {16})});  // 0.25 * 3 / 5
  expect_near("Adagrad", a[0].numbers, {3.85});
  expect_near("squares", a[1].numbers, {25});
  const NodeSpec momentum{
      "Momentum", 1, {{"alpha", .5}, {"beta", .1}, {"norm_coefficient", 0.0}, {"mode", "nesterov"}}, 2, domain};
  const std::vector<Result> m = run_node(momentum, {rate, first, x, g, f32({1}, {2})});  // v = 1 + 3, at first
  expect_near("Momentum", m[0].numbers, {4 - .5 * (3 + .5 * 4)});
  expect_near("v", m[1].numbers, {4});
  const NodeSpec adam{"Adam", 1, {{"alpha", .5}, {"beta", .75}, {"epsilon", 0.0}}, 3, domain};
  const std::vector<Result> d = run_node(adam, {rate, later, x, g, f32({1}, {0}), f32({1}, {0})});
  expect_near("Adam", d[0].numbers, {3.5});  // the first step has the length of the rate
}

// Known powers are products: std::pow() is called for each number otherwise.
TEST(OnnxPowers, KnownOnes) {
  const OperandSpec x = f32({2, 2}, {-1.5, 2, 0, -3});
  for (const OperandSpec& two : {f32({}, {2}), f32({1, 1, 1}, {2}), typed(DType::I64, {1}, {2})}) {
    const std::vector<std::int64_t> shape = two.shape.size() == 3 ? std::vector<std::int64_t>{1, 2, 2} : x.shape;
    expect_node({"Pow", 13}, {x, constant(two)}, {2.25, 4, 0, 9}, shape);
  }
  expect_node({"Pow", 13}, {x, constant(f32({1}, {3}))}, {-3.375, 8, 0, -27}, {2, 2});
  expect_node({"Pow", 13}, {typed(DType::I32, {2}, {-3, 5}), constant(f32({}, {3}))}, {-27, 125}, {2});
  const std::string file = model_of({"Pow", 13}, {x, constant(f32({1}, {3}))});
  const OnnxProgram m = read_onnx(std::as_bytes(std::span(file)), {});
  for (NodeId id = 0; id < m.graph.size(); ++id) EXPECT_NE(m.graph[id].op, Op::Pow);
}

// A signal without an axis of real and imaginary parts, as onnxruntime reads it.
TEST(OnnxSignal, StftOfRows) {
  const std::vector<double> signal{1, 2, 3, 4, 5, 6};
  const std::vector<Result> rows = run_node({"STFT", 17}, {f32({1, 6}, signal), ints({2}), no_operand(), ints({4})});
  const std::vector<Result> parts =
      run_node({"STFT", 17}, {f32({1, 6, 1}, signal), ints({2}), no_operand(), ints({4})});
  EXPECT_EQ(rows[0].shape, (std::vector<std::int64_t>{1, 2, 3, 2}));
  expect_near("STFT", rows[0].numbers, parts[0].numbers);
}

}  // namespace
