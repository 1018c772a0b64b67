// Graphs become StableHLO in which products, convolutions, pools, sorts and loops have their names.
//
// round_trip_test checks that the text computes the same, and xla_check.py lets XLA run it.
#include <gtest/gtest.h>

#include "error_of.h"
#include "graphs.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/composites/composites.h"
#include "lightcone/passes/passes.h"
#include "lightcone/reference/interpreter.h"
#include "lightcone/stablehlo/read.h"
#include "lightcone/stablehlo/write.h"

using namespace lc;

namespace {

int count(const StableHloExport& e, const std::string& name) {
  const auto all = stablehlo::instructions(e.module).by_name;
  const auto at = all.find("stablehlo." + name);
  return at == all.end() ? 0 : at->second.total;
}

const stablehlo::Function& main_of(const StableHloExport& e) {
  EXPECT_EQ(e.module.functions.size(), 1u);
  return *e.module.function("main");
}

// Returns the operation that defines a value, or null for an argument.
const stablehlo::Operation* maker(const stablehlo::Function& f, stablehlo::ValueId v) {
  for (const stablehlo::Operation& o : f.body.operations)
    for (const stablehlo::ValueId r : o.results)
      if (r == v) return &o;
  return nullptr;
}
const stablehlo::Operation* behind_reshapes(const stablehlo::Function& f, stablehlo::ValueId v) {
  const stablehlo::Operation* o = maker(f, v);
  while (o && (o->name == "stablehlo.reshape" || o->name == "stablehlo.transpose")) o = maker(f, o->operands[0]);
  return o;
}

// Counts sums of products of two broadcast tensors, which are matrix products that were not recognized.
int products_unseen(const StableHloExport& e) {
  const stablehlo::Function& f = main_of(e);
  int found = 0;
  for (const stablehlo::Operation& o : f.body.operations) {
    if (o.name != "stablehlo.reduce") continue;
    const stablehlo::Operation* m = behind_reshapes(f, o.operands[0]);
    if (!m || m->name != "stablehlo.multiply") continue;
    const auto repeated = [&](stablehlo::ValueId v) {
      const stablehlo::Operation* b = behind_reshapes(f, v);
      return b && b->name == "stablehlo.broadcast_in_dim";
    };
    found += repeated(m->operands[0]) && repeated(m->operands[1]);
  }
  return found;
}

// ---- what has a name -----------------------------------------------------------------------------------------------

TEST(WriteStableHlo, ProductsAndTheirGradientsAreDotGeneral) {
  const StableHloExport mlp = export_stablehlo(test::mlp_graph(), {{"batch", 5}});
  EXPECT_EQ(count(mlp, "dot_general"), 5);  // two forward, two for weights, one for the hidden layer
  EXPECT_EQ(count(mlp, "transpose"), 0);
  EXPECT_EQ(products_unseen(mlp), 0);
  const StableHloExport attention = export_stablehlo(test::transformer_graph(false, 2, 10));
  EXPECT_EQ(count(attention, "dot_general"), 8);
  EXPECT_EQ(count(attention, "gather"), 1);
  const StableHloExport gradient = export_stablehlo(test::transformer_graph(true, 2, 10));
  EXPECT_GE(count(gradient, "dot_general"), 24);  // two more for each forward product
  EXPECT_EQ(count(gradient, "scatter"), 1);
  EXPECT_EQ(products_unseen(gradient), 0);
}

TEST(WriteStableHlo, BatchesAndOrdersOfAxesAreDimensionNumbers) {
  Graph g;
  const Tensor q = g.input("q", {2, 7, 3, 4}), k = g.input("k", {2, 5, 3, 4});  // [batch, position, head, width]
  g.output("y", matmul(q.transpose(1, 2), k.permute({0, 2, 3, 1})));
  const std::string text = export_stablehlo(g).text();
  EXPECT_PRED2(contains, text,
               "lhs_batching_dimensions = [0, 2], rhs_batching_dimensions = [0, 2], lhs_contracting_dimensions = [3], "
               "rhs_contracting_dimensions = [3]");
  EXPECT_FALSE(contains(text, "transpose")) << text;
}

TEST(WriteStableHlo, ConvolutionsAreConvolution) {
  const auto of = [](const Shape& x, const Shape& w, const ConvOptions& o) {
    return export_stablehlo(test::conv_graph(x, w, o));
  };
  const StableHloExport plain = of({2, 3, 8, 7}, {4, 3, 3, 3}, {.padding = {1}});
  EXPECT_EQ(count(plain, "convolution"), 3);  // with those of the gradients of the image and of the filter
  EXPECT_EQ(count(plain, "dot_general") + count(plain, "concatenate") + count(plain, "pad"), 0);
  EXPECT_EQ(count(of({1, 2, 9}, {4, 2, 3}, {.dilation = {2}}), "convolution"), 3);
  EXPECT_EQ(count(of({1, 2, 5, 6, 5}, {3, 2, 3, 2, 3}, {}), "convolution"), 3);
  EXPECT_EQ(count(of({2, 6, 7, 7}, {4, 3, 3, 3}, {.padding = {1}, .groups = 2}), "convolution"), 3);
  EXPECT_EQ(count(of({2, 4, 7, 7}, {4, 1, 3, 3}, {.padding = {1}, .groups = 4}), "convolution"), 3);
  // With strides, the image's gradient is one product whose parts are added: a dilated convolution would multiply the
  // zeros between elements by infinite weights.
  const StableHloExport strided = of({2, 3, 9, 9}, {4, 3, 3, 3}, {.stride = {2}, .padding = {1}});
  EXPECT_EQ(count(strided, "convolution"), 2);
  EXPECT_EQ(count(strided, "dot_general"), 1);
  const StableHloExport one = of({2, 4, 5, 5}, {3, 4, 1, 1}, {});
  EXPECT_EQ(count(one, "dot_general"), 3);
  EXPECT_PRED2(contains,
               of({1, 2, 9, 9}, {4, 2, 3, 2}, {.stride = {2, 1}, .padding = {1, 0}, .dilation = {1, 3}}).text(),
               "window_strides = array<i64: 2, 1>, padding = dense<[[1, 1], [0, 0]]> : tensor<2x2xi64>, "
               "lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 3>");
}

TEST(WriteStableHlo, PoolsAreReduceWindow) {
  const StableHloExport largest = export_stablehlo(test::pool_graph(true, {3}, {2}, {1}));
  EXPECT_GE(count(largest, "reduce_window"), 1);
  EXPECT_PRED2(contains, largest.text(),
               "window_dimensions = array<i64: 1, 1, 3, 3>, window_strides = array<i64: 1, 1, 2, 2>, base_dilations = "
               "array<i64: 1, 1, 1, 1>, window_dilations = array<i64: 1, 1, 1, 1>, padding = dense<[[0, 0], [0, 0], "
               "[1, 1], [1, 0]]> : tensor<4x2xi64>");
  const StableHloExport average = export_stablehlo(test::pool_graph(false, {2}, {2}, {0}));
  EXPECT_EQ(count(average, "reduce_window"), 1);
  EXPECT_EQ(products_unseen(largest) + products_unseen(average), 0);
  const StableHloExport cnn = export_stablehlo(test::cnn_graph(2));
  EXPECT_EQ(count(cnn, "convolution"), 5);
  EXPECT_GE(count(cnn, "reduce_window"), 2);
  EXPECT_EQ(products_unseen(cnn), 0);
}

TEST(WriteStableHlo, MovedElementsHaveNamesToo) {
  Graph g;
  const Tensor x = g.input("x", {4, 7}), y = g.input("y", {4, 3});
  const Sorted top = topk(x, 3);
  g.output("values", top.values), g.output("indices", top.indices);
  g.output("joined", concat({x, y, x}, 1));
  g.output("around", pad(x, 1, 1, 2, PadMode::Constant, 5.0));
  g.output("written", prim::slice_scatter(x, y, 1, 2));
  const StableHloExport e = export_stablehlo(g);
  EXPECT_EQ(count(e, "sort"), 1);
  EXPECT_EQ(count(e, "gather"), 0) << "sorted values come from the sort";
  EXPECT_EQ(count(e, "concatenate"), 1);
  EXPECT_EQ(count(e, "pad"), 1);
  EXPECT_EQ(count(e, "dynamic_update_slice"), 1);
  EXPECT_EQ(count(e, "select"), 0) << e.text();
}

TEST(WriteStableHlo, HalvesAreMultipliedAsTheyAreAndSummedInF32) {
  const std::string text = export_stablehlo(test::halves_graph()).text();
  EXPECT_PRED2(contains, text, ": (tensor<4x8xbf16>, tensor<8x5xbf16>) -> tensor<4x5xf32>");
}

// The library's casts to E4M3FN saturate, but a StableHLO convert gives NaN.
TEST(WriteStableHlo, CastsToEightBitsAreClamped) {
  Graph g;
  const Tensor x = g.input("x", {3});
  g.output("a", prim::cast(x, DType::F8E4M3FN)), g.output("b", prim::cast(x, DType::F8E5M2));
  const std::string text = export_stablehlo(g).text();
  EXPECT_PRED2(contains, text, "\"stablehlo.clamp\"(%0, %x, %1)");
  EXPECT_PRED2(contains, text, "(tensor<3xf32>) -> tensor<3xf8E4M3FN>");
  EXPECT_PRED2(contains, text, "\"stablehlo.convert\"(%x) : (tensor<3xf32>) -> tensor<3xf8E5M2>");
}

TEST(WriteStableHlo, PrecisionOfProductsIsAWish) {
  const Graph g = test::conv_graph({1, 1, 5}, {1, 1, 3}, {});
  EXPECT_PRED2(contains, export_stablehlo(g).text(), "precision HIGHEST");
  EXPECT_PRED2(contains, export_stablehlo(g, {}, Precision::High).text(), "precision HIGH>");
  EXPECT_PRED2(contains, export_stablehlo(g, {}, Precision::Medium).text(), "precision DEFAULT");
}

// ---- loops ---------------------------------------------------------------------------------------------------------

TEST(WriteStableHlo, ALoopEndsWhenItsConditionDoes) {
  const StableHloExport e = export_stablehlo(test::while_graph(1'000'000'000));
  const stablehlo::Operation* loop = nullptr;
  for (const stablehlo::Operation& o : main_of(e).body.operations)
    if (o.name == "stablehlo.while") loop = &o;
  ASSERT_NE(loop, nullptr);
  int comparisons = 0;
  for (const stablehlo::Operation& o : loop->regions[0].operations) comparisons += o.name == "stablehlo.compare";
  EXPECT_EQ(comparisons, 2) << "the steps and the condition";
  for (const stablehlo::Operation& o : loop->regions[1].operations) EXPECT_NE(o.name, "stablehlo.select");
}

TEST(WriteStableHlo, AScanStaysALoop) {
  const StableHloExport e = export_stablehlo(test::scan_graph(false, 1));
  EXPECT_EQ(count(e, "while"), 2);  // the loop and its gradient
  EXPECT_LT(stablehlo::instructions(e.module).all.total, 150);
}

// ---- the module ----------------------------------------------------------------------------------------------------

TEST(WriteStableHlo, StatesAreDonatedArguments) {
  Graph g;
  const Tensor x = g.input("x", {Dim::symbol("n", 1, 9), 2}), w = test::parameter(g, "layer.weight", {3, 2}),
               total = g.input("total", {3});
  g.input("unused", {4});
  const Tensor y = relu(linear(x, w));
  g.output("y", y);
  g.assign(total, total + sum(y, {0}));
  const StableHloExport e = export_stablehlo(g, {{"n", 4}});
  ASSERT_EQ(e.arguments.size(), 3u);
  using Kind = StableHloExport::Argument::Kind;
  EXPECT_EQ(e.arguments[0].name, "x");
  EXPECT_EQ(e.arguments[0].kind, Kind::Input);
  EXPECT_EQ(e.arguments[0].type.shape, (Shape{4, 2}));
  EXPECT_EQ(e.arguments[1].kind, Kind::Parameter);
  EXPECT_EQ(e.arguments[2].kind, Kind::State);
  EXPECT_EQ(e.arguments[2].result, 1);
  ASSERT_EQ(e.results.size(), 2u);
  EXPECT_FALSE(e.results[0].state);
  EXPECT_EQ(e.results[1].name, "total");
  EXPECT_TRUE(e.results[1].state);
  EXPECT_EQ(e.text(), R"(module @lightcone {
  func.func public @main(%x: tensor<4x2xf32>, %layer.weight: tensor<3x2xf32>, %total: tensor<3xf32> {tf.aliasing_output = 1 : i32}) -> (tensor<4x3xf32>, tensor<3xf32>) {
    %0 = "stablehlo.dot_general"(%x, %layer.weight) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>, precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>]}> : (tensor<4x2xf32>, tensor<3x2xf32>) -> tensor<4x3xf32>
    %1 = "stablehlo.constant"() <{value = dense<0.0> : tensor<4x3xf32>}> : () -> tensor<4x3xf32>
    %2 = "stablehlo.maximum"(%0, %1) : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
    %3 = "stablehlo.constant"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>
    %4 = "stablehlo.reduce"(%2, %3) <{dimensions = array<i64: 0>}> ({
    ^bb0(%5: tensor<f32>, %6: tensor<f32>):
      %7 = "stablehlo.add"(%5, %6) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%7) : (tensor<f32>) -> ()
    }) : (tensor<4x3xf32>, tensor<f32>) -> tensor<3xf32>
    %8 = "stablehlo.add"(%total, %4) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    "func.return"(%2, %8) : (tensor<4x3xf32>, tensor<3xf32>) -> ()
  }
}
)");
  const stablehlo::Instructions table = stablehlo::instructions(e.module);
  EXPECT_EQ(table.all.entry, 7);
  EXPECT_EQ(table.all.total, 9);
  EXPECT_EQ(table.by_name.at("stablehlo.add").entry, 1);
  EXPECT_EQ(table.by_name.at("stablehlo.add").total, 2);
}

TEST(WriteStableHlo, IndicesAreIotas) {
  Graph g;
  const Dim i = Dim::index(0, 3), j = Dim::index(1, 4);
  g.output("y", g.index({3, 4}, (i - j) / Dim(2), DType::I32));
  g.output("mask", g.index({3, 4}, less(j, i + 1), DType::Bool));
  const std::string text = export_stablehlo(g).text();
  EXPECT_PRED2(contains, text, "iota_dimension = 1 : i64");
  const StableHloProgram p = read_stablehlo(text);
  const Results r = interpret(p.graph, {});
  EXPECT_EQ(r.outputs.at("out0").i, (std::vector<std::int64_t>{0, -1, -1, -2, 0, 0, -1, -1, 1, 0, 0, -1}));
  EXPECT_EQ(r.outputs.at("out1").i, (std::vector<std::int64_t>{1, 0, 0, 0, 1, 1, 0, 0, 1, 1, 1, 0}));
}

TEST(WriteStableHlo, NumbersAreWrittenExactly) {
  Graph g;
  const auto put = [&](const char* name, double v, DType t) { g.output(name, full(g, {2}, v, t)); };
  put("nan", kNaN, DType::F32), put("inf", -kInf, DType::F16), put("zero", -0.0, DType::BF16);
  put("tenth", 0.1, DType::F64), put("third", 1.0 / 3, DType::F32), put("tiny", 0x1p-149, DType::F32);
  put("byte", -128, DType::I8), put("yes", 1, DType::Bool);
  g.output("whole", g.constant(std::int64_t{9007199254740993}, DType::I64));
  const std::string text = export_stablehlo(g).text();
  for (const char* number :
       {"dense<0x7FC00000> : tensor<2xf32>", "dense<0xFC00> : tensor<2xf16>", "dense<-0.0> : tensor<2xbf16>",
        "dense<0.1> : tensor<2xf64>", "dense<0.33333334> : tensor<2xf32>", "dense<1.0e-45> : tensor<2xf32>",
        "dense<-128> : tensor<2xi8>", "dense<true> : tensor<2xi1>", "dense<9007199254740993> : tensor<i64>"})
    EXPECT_PRED2(contains, text, number);
  EXPECT_EQ(stablehlo::print(stablehlo::parse(text)), text);
}

// ---- what cannot be written ----------------------------------------------------------------------------------------

TEST(WriteStableHlo, SizesMayStayOpen) {
  Graph g;
  const Dim n = Dim::symbol("n", 1, 8), first = Dim::symbol("first", 0, 5);
  const Tensor x = g.input("x", {n * 2 + 1, 4}), bias = g.input("bias", {4}), table = g.input("table", {20});
  g.output("y", x + bias);
  g.output("piece", table.slice(0, first, first + n));
  StableHloExport e = export_stablehlo(g, {}, Precision::Highest, UnboundSizes::Open);
  ASSERT_EQ(e.arguments.size(), 4u);  // the last one's size appears in no shape
  EXPECT_EQ(e.arguments[3].name, "first");
  EXPECT_EQ(e.arguments[3].kind, StableHloExport::Argument::Kind::Size);
  const std::string text = e.text();
  for (const char* line :
       {"@main(%x: tensor<?x4xf32>, %bias: tensor<4xf32>, %table: tensor<20xf32>, %first: tensor<i64>) -> "
        "(tensor<?x4xf32>, tensor<?xf32>)",
        R"("stablehlo.get_dimension_size"(%x) <{dimension = 0 : i64}> : (tensor<?x4xf32>) -> tensor<i32>)",
        R"("stablehlo.dynamic_broadcast_in_dim"(%bias, )", R"("stablehlo.real_dynamic_slice"(%table, )"})
    EXPECT_PRED2(contains, text, line);
  EXPECT_EQ(stablehlo::print(stablehlo::parse(text)), text);

  e = export_stablehlo(g, {{"first", 2}}, Precision::Highest, UnboundSizes::Bounded);
  EXPECT_EQ(e.arguments.size(), 3u);
  EXPECT_PRED2(contains, e.text(),
               "-> (tensor<?x4xf32, #stablehlo.bounds<17, ?>>, tensor<?xf32, #stablehlo.bounds<8>>)");
}

TEST(WriteStableHlo, SizesNeedNumbers) {
  const Graph g = test::mlp_graph();
  EXPECT_PRED2(contains, error_of([&] { export_stablehlo(g); }),
               "'batch' is a size without a number, and StableHLO needs one: give it, as in export_stablehlo(graph, "
               "{{\"batch\", 64}}), or leave it open with UnboundSizes::Open");
  EXPECT_PRED2(contains, error_of([&] { export_stablehlo(g, {{"batch", 65}}); }), "'batch' is 65, and lies in [1, 64]");
  EXPECT_PRED2(contains, error_of([&] {
                 export_stablehlo(g, {{"batch", 5}, {"seq", 1}});
               }),
               "the graph has no size 'seq'");
}

TEST(WriteStableHlo, KernelsHaveNoCounterpart) {
  Graph g;
  const Tensor x = g.input("x", {8, 8});
  g.output("y", matmul(x, x));
  const Graph compiled = transform(g, generic() | cpu({.threads = 1, .compiler = false})).graph;
  EXPECT_PRED2(contains, error_of([&] { export_stablehlo(compiled); }),
               "give the graph as it was before cpu() compiled it");
}

}  // namespace
