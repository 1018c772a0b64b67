// Quantised tensors, attention, sequences and trees of ONNX models give the numbers that the specification and
// onnxruntime state; what cannot be read says why.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/onnx/onnx.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"
#include "processor_time.h"
#include "write_model.h"

namespace lc::test {
namespace {

using onnx::ElementType;
using Numbers = std::vector<double>;

struct Given {
  std::string name;
  DType dtype;
  std::vector<std::int64_t> shape;
  Numbers values;
};

// The outputs of a model, each as f64.
std::map<std::string, Numbers> answers(const ModelWriter& w, const std::vector<Given>& in) {
  const std::string bytes = w.bytes();
  const OnnxProgram m = read_onnx(std::as_bytes(std::span(bytes)));
  Program p = compile(m.graph, generic() | cpu({.threads = 1, .compiler = false}));
  m.load_weights(p);
  Context c(p);
  for (const Given& g : in) {
    std::vector<std::byte> data(g.values.size() * size_of(g.dtype));
    for (std::size_t k = 0; k < g.values.size(); ++k) {
      if (is_float(g.dtype)) store_f64(data.data(), g.dtype, k, g.values[k]);
      else store_i64(data.data(), g.dtype, k, static_cast<std::int64_t>(g.values[k]));
    }
    c.set(g.name, ArrayView{g.dtype, g.shape, data});
  }
  c.run();
  std::map<std::string, Numbers> r;
  for (const OnnxProgram::Port& o : m.outputs) {
    const auto got = c.bytes(o.name);
    Numbers& v = r[o.name];
    for (std::size_t k = 0; k < got.size() / size_of(o.dtype); ++k)
      v.push_back(is_float(o.dtype) ? load_f64(got.data(), o.dtype, k)
                                    : static_cast<double>(load_i64(got.data(), o.dtype, k)));
  }
  return r;
}
std::string refusal(const ModelWriter& w) {
  const std::string bytes = w.bytes();
  try {
    read_onnx(std::as_bytes(std::span(bytes)));
  } catch (const Error& e) {
    return e.what();
  }
  return {};
}
void expect_near(const Numbers& got, const Numbers& wanted, double tolerance = 1e-5) {
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t k = 0; k < got.size(); ++k) EXPECT_NEAR(got[k], wanted[k], tolerance) << "element " << k;
}

// ONNX's case test_quantizelinear, with ties before it: 0.5, 1.5 and 2.5 steps round to even numbers.
TEST(OnnxQuantized, RoundsTiesToEvenAndSaturates) {
  ModelWriter w;
  w.opset(21).input("x", ElementType::Float, {9}).constant<float>("scale", {2}, {});
  w.constant<std::uint8_t>("zero", {128}, {}).node("QuantizeLinear", {"x", "scale", "zero"}, {"y"}).output("y");
  EXPECT_EQ(answers(w, {{"x", DType::F32, {9}, {1, 3, 5, 0, 2, 3, 1000, -254, -1000}}})["y"],
            (Numbers{128, 130, 130, 128, 129, 130, 255, 1, 0}));
}

// Ties of every step of a byte, through compiled loops, whose vectors have the same formula as single numbers.
TEST(OnnxQuantized, LoopsRoundAsNumbersDoAndHaveVectors) {
  constexpr std::int64_t kCount = 1 << 16;
  const auto program = [](const char* op) {
    ModelWriter w;
    w.opset(21).input("x", ElementType::Float, {kCount}).constant<float>("scale", {0.25F}, {});
    w.constant<std::uint8_t>("zero", {100}, {});
    if (std::string_view(op) == "QuantizeLinear") w.node(op, {"x", "scale", "zero"}, {"y"});
    else w.node(op, {"x", "scale"}, {"y"});
    const std::string bytes = w.output("y").bytes();
    const OnnxProgram m = read_onnx(std::as_bytes(std::span(bytes)));
    Program p = compile(m.graph, generic() | cpu({.threads = 1}));
    m.load_weights(p);
    return p;
  };
  std::vector<float> x(kCount);
  for (std::size_t k = 0; k < x.size(); ++k) x[k] = (static_cast<float>(k) - 20000) / 256;
  const Program quantize = program("QuantizeLinear"), product = program("Mul");
  Context q(quantize), m(product);
  q.set("x", x).run(), m.set("x", x).run();
  for (std::size_t k = 0; k < x.size(); ++k) {
    const double wanted = std::clamp(std::nearbyint(static_cast<double>(x[k]) * 4) + 100, 0.0, 255.0);
    ASSERT_EQ(std::to_integer<int>(q.bytes("y")[k]), wanted) << x[k];
  }
  double of_q = 1, of_m = 1;
  for (int k = 0; k < 10; ++k)
    of_q = std::min(of_q, seconds([&] { q.run(); })), of_m = std::min(of_m, seconds([&] { m.run(); }));
  EXPECT_LE(of_q, 40 * of_m);  // jumps took 70 to 150 times onnxruntime's time
}

// What is quantised in front of windows that overlap is quantised once.
TEST(OnnxQuantized, NumbersAreQuantisedOnceBeforeWindows) {
  ModelWriter w;
  w.opset(17).input("x", ElementType::Float, {1, 8, 16, 16});
  w.constant<std::int8_t>("w", std::vector<std::int8_t>(8 * 8 * 9, 3), {8, 8, 3, 3})
      .constant<std::int8_t>("zw", {0}, {});
  w.node("DynamicQuantizeLinear", {"x"}, {"q", "s", "z"}).node("ConvInteger", {"q", "w", "z", "zw"}, {"y"});
  const std::string bytes = w.output("y").bytes();
  const OnnxProgram m = read_onnx(std::as_bytes(std::span(bytes)));
  const Program p = compile(m.graph, generic() | cpu({.threads = 1}));
  int divisions = 0;
  for (NodeId id = 0; id < p.graph().size(); ++id) {
    const Node& n = p.graph()[id];
    const bool divides = n.kernel && n.kernel->source().find("lc_div_f(") != std::string::npos;
    if (divides && product(n.shape) == Dim(8 * 16 * 16)) ++divisions;
    EXPECT_FALSE(divides && product(n.shape).bounds().hi > 8 * 16 * 16) << n.name;
  }
  EXPECT_EQ(divisions, 1);
}

// Both directions of com.microsoft's LSTM of bytes. The answers are onnxruntime 1.32's, whose sums do not saturate with
// weights as small as these.
TEST(OnnxQuantized, LstmOfBytes) {
  constexpr std::int64_t kSteps = 3, kIn = 3, kHidden = 2, kBoth = 2;
  const auto bytes = [](std::int64_t n, int times, int plus, int period) {
    std::vector<std::int8_t> v;
    for (int k = 0; k < n; ++k) v.push_back(static_cast<std::int8_t>((times * k + plus) % period - period / 2));
    return v;
  };
  std::vector<float> bias;
  for (int k = 0; k < kBoth * 8 * kHidden; ++k) bias.push_back(static_cast<float>(3 * k % 7 - 3) / 8);
  Numbers x;
  for (int k = 0; k < kSteps * kIn; ++k) x.push_back(((5 * k + 1) % 11 - 5) / 4.0);
  ModelWriter w;
  w.opset(17).opset(1, "com.microsoft").input("x", ElementType::Float, {kSteps, 1, kIn});
  w.constant<std::int8_t>("W", bytes(kBoth * kIn * 4 * kHidden, 7, 3, 25), {kBoth, kIn, 4 * kHidden});
  w.constant<std::int8_t>("R", bytes(kBoth * kHidden * 4 * kHidden, 11, 5, 23), {kBoth, kHidden, 4 * kHidden});
  w.constant<float>("B", bias, {kBoth, 8 * kHidden});
  w.constant<float>("scale of W", {0.05F, 0.04F}, {kBoth}).constant<float>("scale of R", {0.06F, 0.03F}, {kBoth});
  w.constant<std::int8_t>("zero", {0, 0}, {kBoth});
  w.node("DynamicQuantizeLSTM", {"x", "W", "R", "B", "", "", "", "", "scale of W", "zero", "scale of R", "zero"},
         {"y", "h", "c"}, {{"direction", "bidirectional"}, {"hidden_size", static_cast<int>(kHidden)}},
         "com.microsoft");
  w.output("y").output("h").output("c");
  auto r = answers(w, {{"x", DType::F32, {kSteps, 1, kIn}, x}});
  expect_near(r["y"], {-0.132934, -0.009051, 0.187493, 0.008811, -0.249897, -0.148208, 0.148766, -0.014721, -0.032505,
                       -0.317019, -0.029328, 0.107107});
  expect_near(r["h"], {-0.032505, -0.317019, 0.187493, 0.008811});
  expect_near(r["c"], {-0.061135, -0.496133, 0.486946, 0.016236});
}

// Blocks of two along the axis: each has its own scale and zero point; the last block is cut.
TEST(OnnxQuantized, DequantizesBlocks) {
  ModelWriter w;
  w.opset(21).input("x", ElementType::Int8, {1, 3}).constant<float>("scale", {2, 10}, {1, 2});
  w.constant<std::int8_t>("zero", {1, -1}, {1, 2});
  w.node("DequantizeLinear", {"x", "scale", "zero"}, {"y"}, {{"axis", 1}, {"block_size", 2}}).output("y");
  EXPECT_EQ(answers(w, {{"x", DType::I8, {1, 3}, {5, -3, 4}}})["y"], (Numbers{8, -8, 50}));
}

// ONNX's case test_matmulinteger: u8 times u8 with a zero point of 12.
TEST(OnnxQuantized, MultipliesBytesExactly) {
  ModelWriter w;
  w.opset(10).input("a", ElementType::Uint8, {4, 3}).constant<std::uint8_t>("b", {1, 4, 2, 5, 3, 6}, {3, 2});
  w.constant<std::uint8_t>("za", {12}, {1}).constant<std::uint8_t>("zb", {0}, {1});
  w.node("MatMulInteger", {"a", "b", "za", "zb"}, {"y"}).output("y");
  EXPECT_EQ(answers(w, {{"a", DType::U8, {4, 3}, {11, 7, 3, 10, 6, 2, 9, 5, 1, 8, 4, 0}}})["y"],
            (Numbers{-38, -83, -44, -98, -50, -113, -56, -128}));
}

// A dynamically quantised product is one product of signed bytes, whatever the signs of its operands were.
TEST(OnnxQuantized, ProductsOfBytesUseTheKernelsOfBytes) {
  for (const bool is_signed : {false, true}) {
    ModelWriter w;
    w.opset(17).input("x", ElementType::Float, {"n", 64});
    std::vector<std::uint8_t> weights;
    for (int k = 0; k < 64 * 64; ++k) weights.push_back(static_cast<std::uint8_t>(k * k % 251));
    if (is_signed) w.constant<std::int8_t>("w", {weights.begin(), weights.end()}, {64, 64});
    else w.constant<std::uint8_t>("w", weights, {64, 64});
    if (is_signed) w.constant<std::int8_t>("zw", {0}, {});
    else w.constant<std::uint8_t>("zw", {125}, {});
    w.node("DynamicQuantizeLinear", {"x"}, {"q", "s", "z"}).node("MatMulInteger", {"q", "w", "z", "zw"}, {"y"});
    const std::string bytes = w.output("y").bytes();
    const OnnxProgram m = read_onnx(std::as_bytes(std::span(bytes)));
    const Program p = compile(m.graph, generic() | cpu({.threads = 1, .compiler = false}));
    int products = 0;
    for (NodeId id = 0; id < p.graph().size(); ++id) products += p.graph()[id].name.starts_with("matmul_i8");
    EXPECT_EQ(products, 1) << is_signed;
  }
}

// A weight of 4 bits, 0 to 15 twice, with a scale of 1/2 and the middle at 8: the sum of a row is 2 (120 - 128) / 2.
// Level 4 stores it as a block of Q4_0.
TEST(OnnxQuantized, ReadsWeightsInBlocksOfFourBits) {
  for (const int level : {0, 4}) {
    ModelWriter w;
    std::vector<std::uint8_t> codes;
    for (int k = 0; k < 16; ++k) codes.push_back(static_cast<std::uint8_t>(2 * k % 16 + (2 * k + 1) % 16 * 16));
    w.opset(17).opset(1, "com.microsoft").input("x", ElementType::Float, {2, 32});
    w.constant<std::uint8_t>("w", codes, {1, 1, 16}).constant<float>("scale", {0.5F}, {1, 1});
    w.node("MatMulNBits", {"x", "w", "scale"}, {"y"},
           {{"K", 32}, {"N", 1}, {"bits", 4}, {"block_size", 32}, {"accuracy_level", level}}, "com.microsoft");
    Numbers x(64, 1);
    std::fill(x.begin() + 32, x.end(), 0), x[32 + 15] = 2;  // the second row picks the code 15
    expect_near(answers(w.output("y"), {{"x", DType::F32, {2, 32}, x}})["y"], {-8, 7});
  }
}

// A query that the mask leaves no key for gives zeros, as the specification says since its erratum; the other one
// attends to the second key alone.
TEST(OnnxAttention, QueriesWithoutKeysGiveZeros) {
  ModelWriter w;
  w.opset(24);
  for (const char* name : {"q", "k", "v"}) w.input(name, ElementType::Float, {1, 1, 2, 2});
  w.input("mask", ElementType::Bool, {2, 2}).node("Attention", {"q", "k", "v", "mask"}, {"y"}).output("y");
  const auto given = [](const char* name, Numbers v) { return Given{name, DType::F32, {1, 1, 2, 2}, std::move(v)}; };
  const auto y = answers(w, {given("q", {1, 2, 3, 4}),
                             given("k", {1, 0, 0, 1}),
                             given("v", {5, 6, 7, 8}),
                             {"mask", DType::Bool, {2, 2}, {0, 0, 0, 1}}});
  expect_near(y.at("y"), {0, 0, 7, 8});
}

// Samples of a batch have caches of different lengths: keys of zeros weigh all valid values alike. The second sample
// has one old key, behind which the new one is written.
TEST(OnnxAttention, CachesOfSamplesHaveTheirOwnLengths) {
  ModelWriter w;
  w.opset(17).opset(1, "com.microsoft");
  for (const char* name : {"q", "k", "v"}) w.input(name, ElementType::Float, {2, 1, 2});
  for (const char* name : {"pk", "pv"}) w.input(name, ElementType::Float, {2, 1, 2, 2});
  w.input("lengths", ElementType::Int32, {2}).constant<std::int32_t>("total", {3}, {});
  w.node("GroupQueryAttention", {"q", "k", "v", "pk", "pv", "lengths", "total"}, {"y", "", "values"},
         {{"num_heads", 1}, {"kv_num_heads", 1}}, "com.microsoft");
  const auto r = answers(w.output("y").output("values"), {{"q", DType::F32, {2, 1, 2}, {1, 1, 1, 1}},
                                                          {"k", DType::F32, {2, 1, 2}, {0, 0, 0, 0}},
                                                          {"v", DType::F32, {2, 1, 2}, {9, 0, 9, 0}},
                                                          {"pk", DType::F32, {2, 1, 2, 2}, Numbers(8, 0)},
                                                          {"pv", DType::F32, {2, 1, 2, 2}, {3, 3, 6, 6, 3, 3, 77, 77}},
                                                          {"lengths", DType::I32, {2}, {2, 1}}});
  expect_near(r.at("y"), {6, 3, 6, 1.5});
  const Numbers values = r.at("values");
  EXPECT_EQ(Numbers(values.begin() + 6, values.begin() + 10), (Numbers{3, 3, 9, 0}));
}

// A tensor is split into a sequence, of which elements are taken, removed and joined in another order.
TEST(OnnxSequences, AreResolvedWhileReading) {
  ModelWriter w;
  w.opset(24).input("x", ElementType::Float, {5}).constant<std::int64_t>("two", {2}, {});
  w.constant<std::int64_t>("last", {-1}, {}).constant<std::int64_t>("first", {0}, {});
  w.node("SplitToSequence", {"x", "two"}, {"parts"}).node("SequenceAt", {"parts", "last"}, {"tail"});
  w.node("SequenceErase", {"parts", "last"}, {"rest"}).node("SequenceInsert", {"rest", "tail", "first"}, {"turned"});
  w.node("SequenceLength", {"turned"}, {"n"}).node("ConcatFromSequence", {"turned"}, {"y"}, {{"axis", 0}});
  auto r = answers(w.output("y").output("n"), {{"x", DType::F32, {5}, {1, 2, 3, 4, 5}}});
  EXPECT_EQ(r["y"], (Numbers{5, 1, 2, 3, 4}));
  EXPECT_EQ(r["n"], Numbers{3});
  ModelWriter whole;
  whole.opset(24).input("x", ElementType::Float, {5}).node("SplitToSequence", {"x"}, {"y"}).output("y");
  EXPECT_NE(refusal(whole).find("output 'y' is a sequence"), std::string::npos) << refusal(whole);
}

// Two trees on two features, one of them two levels deep, whose leaves vote for two targets.
TEST(OnnxTrees, VotesOfLeavesAreSummed) {
  ModelWriter w;
  w.opset(17).opset(5, "ai.onnx.ml").input("x", ElementType::Float, {"n", 2});
  // Inner nodes: 0 (x0 <= 0: leaf 0, else node 1), 1 (x1 < 5: leaf 1, else leaf 2), 2 (x1 >= 1: leaf 3, else leaf 0).
  const auto tensor = [](ElementType type, const std::string& raw, std::int64_t n) {
    return Message().integer(1, n).integer(2, static_cast<int>(type)).text(9, raw);
  };
  const auto floats = [](const std::vector<float>& v) {
    return std::string(reinterpret_cast<const char*>(v.data()), v.size() * sizeof(float));
  };
  Message node = Message().text(1, "x").text(2, "y").text(4, "TreeEnsemble").text(7, "ai.onnx.ml");
  const auto integers = [&](const char* name, const std::vector<std::int64_t>& v) {
    Message a = Message().text(1, name).integer(20, 7);
    for (const std::int64_t n : v) a.integer(8, n);
    node.message(5, a);
  };
  const auto tensors = [&](const char* name, const Message& t) {
    node.message(5, Message().text(1, name).message(5, t).integer(20, 4));
  };
  integers("nodes_featureids", {0, 1, 1}), integers("nodes_truenodeids", {0, 1, 3});
  integers("nodes_falsenodeids", {1, 2, 0}), integers("nodes_trueleafs", {1, 1, 1});
  integers("nodes_falseleafs", {0, 1, 1}), integers("tree_roots", {0, 2}), integers("leaf_targetids", {0, 0, 1, 1});
  tensors("nodes_splits", tensor(ElementType::Float, floats({0, 5, 1}), 3));
  tensors("nodes_modes", tensor(ElementType::Uint8, std::string("\0\1\2", 3), 3));
  tensors("leaf_weights", tensor(ElementType::Float, floats({1, 10, 100, 1000}), 4));
  node.message(5, Message().text(1, "n_targets").integer(3, 2).integer(20, 2));
  ModelWriter made = w.add(node).output("y");
  EXPECT_EQ(answers(made, {{"x", DType::F32, {3, 2}, {-1, 0, 1, 3, 1, 5}}})["y"], (Numbers{2, 0, 10, 1000, 0, 1100}));
}

// Nodes are named by their tree and a number, whatever their order; votes of a leaf for one target are added. All
// targets share one walk: its leaves, [samples, trees], are a value in memory.
TEST(OnnxTrees, NodesMayBeListedInAnyOrderAndAreWalkedOnce) {
  struct Listed {
    std::int64_t tree, id, feature, yes, no;
    float threshold;
  };
  const std::vector<Listed> nodes = {{0, 0, 0, 1, 2, 0}, {0, 1, 0, 0, 0, 0}, {0, 2, 0, 0, 0, 0},
                                     {7, 3, 1, 4, 5, 5}, {7, 4, 0, 0, 0, 0}, {7, 5, 0, 0, 0, 0},
                                     {9, 0, 0, 1, 2, 9}, {9, 1, 0, 0, 0, 0}, {9, 2, 0, 0, 0, 0}};
  const auto ensemble = [&](const std::vector<std::size_t>& order) {
    std::vector<std::int64_t> tree, id, feature, yes, no;
    std::vector<float> threshold;
    std::vector<std::string> mode;
    for (const std::size_t k : order) {
      const Listed& n = nodes[k];
      tree.push_back(n.tree), id.push_back(n.id), feature.push_back(n.feature), yes.push_back(n.yes);
      no.push_back(n.no), threshold.push_back(n.threshold), mode.emplace_back(n.yes ? "BRANCH_LEQ" : "LEAF");
    }
    ModelWriter w;
    w.opset(17).opset(1, "ai.onnx.ml").input("x", ElementType::Float, {"n", 2});
    w.node("TreeEnsembleRegressor", {"x"}, {"y"},
           {{"n_targets", 2},
            {"nodes_treeids", tree},
            {"nodes_nodeids", id},
            {"nodes_featureids", feature},
            {"nodes_truenodeids", yes},
            {"nodes_falsenodeids", no},
            {"nodes_values", threshold},
            {"nodes_modes", mode},
            {"target_treeids", std::vector<std::int64_t>{0, 0, 0, 0, 7, 7, 9}},
            {"target_nodeids", std::vector<std::int64_t>{1, 2, 1, 2, 4, 5, 1}},
            {"target_ids", std::vector<std::int64_t>{0, 0, 1, 0, 1, 0, 0}},
            {"target_weights", std::vector<float>{1, 2, 10, 3, 100, 1000, 0.5F}}},
           "ai.onnx.ml");
    return w.output("y");
  };
  const Given x{"x", DType::F32, {2, 2}, {-1, 3, 1, 6}};
  for (const std::vector<std::size_t>& order :
       {std::vector<std::size_t>{0, 1, 2, 3, 4, 5, 6, 7, 8}, std::vector<std::size_t>{8, 4, 2, 0, 7, 3, 1, 6, 5}})
    EXPECT_EQ(answers(ensemble(order), {x})["y"], (Numbers{1.5, 110, 1005.5, 0}));
  EXPECT_NE(refusal(ensemble({0, 1, 2, 3, 4, 5, 6, 7, 8, 4})).find("has a node twice"), std::string::npos);

  const std::string bytes = ensemble({0, 1, 2, 3, 4, 5, 6, 7, 8}).bytes();
  const Program p = compile(read_onnx(std::as_bytes(std::span(bytes))).graph, generic() | cpu({.threads = 1}));
  bool leaves = false;
  for (NodeId id = 0; id < p.graph().size(); ++id)
    leaves = leaves || (p.graph()[id].kernel && p.graph()[id].shape.size() == 2 && p.graph()[id].shape[1] == Dim(3));
  EXPECT_TRUE(leaves);
}

// What scikit-learn's classifiers end with: a list of maps from labels to scores is the scores.
TEST(OnnxTrees, AListOfMapsIsItsScores) {
  const auto zipped = [](const std::vector<std::int64_t>& labels) {
    ModelWriter w;
    w.opset(17).opset(1, "ai.onnx.ml").input("x", ElementType::Float, {2, 3});
    return w.node("ZipMap", {"x"}, {"y"}, {{"classlabels_int64s", labels}}, "ai.onnx.ml").output("y");
  };
  const Numbers scores{0.5, 0.25, 0.25, 0, 1, 0};
  EXPECT_EQ(answers(zipped({1, 5, 9}), {{"x", DType::F32, {2, 3}, scores}})["y"], scores);
  EXPECT_NE(refusal(zipped({1, 5})).find("gives 2 labels to scores [2, 3]"), std::string::npos);
}

// Labels that are texts are numbers of these texts, which the output's port has.
TEST(OnnxTrees, LabelsMayBeTexts) {
  ModelWriter w;
  w.opset(17).opset(1, "ai.onnx.ml").input("x", ElementType::Float, {3, 2});
  w.node("LinearClassifier", {"x"}, {"label", "scores"},
         {{"coefficients", std::vector<float>{1, 0, 0, 1, 0, 0}},
          {"intercepts", std::vector<float>{0, 0, 0.5F}},
          {"classlabels_strings", std::vector<std::string>{"rose", "lily", "iris"}}},
         "ai.onnx.ml");
  w.node("Identity", {"label"}, {"name"}).output("name");
  const std::string bytes = w.bytes();
  EXPECT_EQ(read_onnx(std::as_bytes(std::span(bytes))).outputs.at(0).labels,
            (std::vector<std::string>{"rose", "lily", "iris"}));
  EXPECT_EQ(answers(w, {{"x", DType::F32, {3, 2}, {2, 1, 0, 3, 0, 0}}})["name"], (Numbers{0, 1, 2}));
  ModelWriter reads = w;
  EXPECT_NE(refusal(reads.node("Neg", {"name"}, {"y"}).output("y")).find("holds strings"), std::string::npos);
}

// Each refused operator says why, and is named once with its nodes.
TEST(OnnxRefusals, NameTheReason) {
  ModelWriter w;
  w.opset(17).opset(1, "com.microsoft").opset(3, "ai.onnx.ml").input("x", ElementType::Float, {2});
  w.node("BeamSearch", {"x"}, {"a"}, {}, "com.microsoft").node("CastMap", {"a"}, {"y"}, {}, "ai.onnx.ml");
  const std::string why = refusal(w.output("y"));
  EXPECT_NE(why.find("com.microsoft.BeamSearch: it generates text inside one node"), std::string::npos) << why;
  EXPECT_NE(why.find("ai.onnx.ml.CastMap: maps are not supported"), std::string::npos) << why;
}

}  // namespace
}  // namespace lc::test
