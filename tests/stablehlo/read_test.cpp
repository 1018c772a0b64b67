// StableHLO text becomes graphs that compute what it says. Everything that cannot be read is reported at once, with
// lines.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "error_of.h"
#include "lightcone/ops/loop.h"
#include "module_checks.h"
#include "on_device.h"
#include "paths.h"

using namespace lc;

namespace {

std::string module_text(const std::string& name) {
  std::ifstream f(std::string(paths::kSource) + "/tests/stablehlo/modules/" + name);
  EXPECT_TRUE(f) << name;
  return {std::istreambuf_iterator<char>(f), {}};
}

std::vector<std::string> module_names() {
  std::vector<std::string> all;
  for (const auto& e : std::filesystem::directory_iterator(std::string(paths::kSource) + "/tests/stablehlo/modules"))
    all.push_back(e.path().filename().string());
  return all;
}

void expect_passes(const stablehlo::Module& m, const std::string& name, const Compiler& c) {
  const test::Outcome o = test::run_module(m, "main", c);
  EXPECT_EQ(o.kind, test::Outcome::Kind::Pass) << name << ": " << o.why;
}

std::string problem(const std::string& body) {
  return error_of([&] { read_stablehlo("func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n" + body + "\n}"); });
}

// ---- what it computes -------------------------------------------------------------------------------

TEST(ReadStableHlo, ModulesThatCheckThemselvesPass) {
  for (const std::string& name : module_names()) {
    const stablehlo::Module m = stablehlo::parse(module_text(name));
    expect_passes(m, name + " by the reference", Compiler());
    expect_passes(m, name + " by the CPU", generic() | test::device({.threads = 1}));
    expect_passes(m, name + " by interpreted kernels", generic() | cpu({.threads = 1, .compiler = false}));
  }
}

TEST(ReadStableHlo, WhatIsPrintedInGenericFormReadsTheSame) {
  for (const std::string& name : module_names()) {
    const stablehlo::Module m = stablehlo::parse(module_text(name));
    const std::string generic_form = stablehlo::print(m);
    const stablehlo::Module again = stablehlo::parse(generic_form);
    EXPECT_EQ(stablehlo::print(again), generic_form) << name;
    EXPECT_EQ(read_stablehlo(m).graph.str(), read_stablehlo(again).graph.str()) << name;
  }
}

TEST(ReadStableHlo, ArgumentsAndResultsStandInOrder) {
  const StableHloProgram s = read_stablehlo(R"(module @jit_f {
    func.func public @main(%arg0: tensor<2xf32> {jax.buffer_donor = true, tf.aliasing_output = 1 : i32}, %w: tensor<2x2xf32>) -> (tensor<2xf32> {jax.result_info = ""}, tensor<2xf32>) {
      %0 = stablehlo.dot_general %w, %arg0, contracting_dims = [1] x [0] : (tensor<2x2xf32>, tensor<2xf32>) -> tensor<2xf32>
      %1 = stablehlo.add %0, %arg0 : tensor<2xf32>
      return %0, %1 : tensor<2xf32>, tensor<2xf32>
    }
  })");
  EXPECT_EQ(s.inputs, (std::vector<std::string>{"arg0", "w"}));
  EXPECT_EQ(s.outputs, (std::vector<std::string>{"out0", "out1"}));
  EXPECT_EQ(s.donated, (std::vector<std::pair<int, int>>{{0, 1}}));
  Context c(compile(s.graph, generic() | test::device({.threads = 1})));
  c.set("arg0", std::vector<float>{1, 2}).set("w", std::vector<float>{1, 2, 3, 4}).run();
  EXPECT_EQ(c.get("out0"), (std::vector<float>{5, 11}));
  EXPECT_EQ(c.get("out1"), (std::vector<float>{6, 13}));
}

// Numbers beyond the range of f8E4M3FN become NaN here; 464, halfway to the end, rounds to 448. f8E5M2 has an infinity.
TEST(ReadStableHlo, FloatsOf8BitsOverflow) {
  const stablehlo::Module m = stablehlo::parse(R"(func.func @main() {
    %x = stablehlo.constant dense<[448.0, 464.0, 464.125, -1.0e9, 0x7F800000, 17.5]> : tensor<6xf32>
    %a = stablehlo.convert %x : (tensor<6xf32>) -> tensor<6xf8E4M3FN>
    %b = stablehlo.convert %a : (tensor<6xf8E4M3FN>) -> tensor<6xf32>
    check.expect_eq_const %b, dense<[448.0, 448.0, 0x7FC00000, 0x7FC00000, 0x7FC00000, 18.0]> : tensor<6xf32>
    %c = stablehlo.convert %x : (tensor<6xf32>) -> tensor<6xf8E5M2>
    %d = stablehlo.convert %c : (tensor<6xf8E5M2>) -> tensor<6xf32>
    check.expect_eq_const %d, dense<[448.0, 448.0, 448.0, 0xFF800000, 0x7F800000, 16.0]> : tensor<6xf32>
    return
  })");
  expect_passes(m, "by the reference", Compiler());
  expect_passes(m, "by the device", generic() | test::device({.threads = 1}));
}

// Halves are reduced in f32 and rounded once, whatever the reduction body is: here, a small difference of large
// numbers.
TEST(ReadStableHlo, HalvesAreReducedInF32) {
  for (const std::string t : {"f16", "bf16"}) {
    const std::string body = "({\n ^bb0(%a: tensor<" + t + ">, %b: tensor<" + t + ">):\n" + R"(
      %max = stablehlo.maximum %a, %b : tensor<T>
      %d = stablehlo.subtract %a, %b : tensor<T>
      %abs = stablehlo.abs %d : tensor<T>
      %neg = stablehlo.negate %abs : tensor<T>
      %e = stablehlo.exponential %neg : tensor<T>
      %l = stablehlo.log_plus_one %e : tensor<T>
      %s = stablehlo.add %max, %l : tensor<T>
      stablehlo.return %s : tensor<T>
    }))";
    std::string text = R"(func.func @main() {
      %x = stablehlo.constant dense<-4.15625> : tensor<64xT>
      %none = stablehlo.constant dense<-6.0e+04> : tensor<T>
      %r = "stablehlo.reduce_window"(%x, %none) <{padding = dense<[[63, 0]]> : tensor<1x2xi64>, window_dimensions = array<i64: 64>}> )" +
                       body + R"( : (tensor<64xT>, tensor<T>) -> tensor<64xT>
      %q = "stablehlo.reduce"(%x, %none) <{dimensions = array<i64: 0>}> )" +
                       body + R"( : (tensor<64xT>, tensor<T>) -> tensor<T>
      %last = stablehlo.slice %r [63:64] : (tensor<64xT>) -> tensor<1xT>
      %wide = stablehlo.convert %last : (tensor<1xT>) -> tensor<1xf32>
      check.expect_almost_eq_const %wide, dense<[2.633e-3]> : tensor<1xf32>
      %one = stablehlo.convert %q : (tensor<T>) -> tensor<f32>
      check.expect_almost_eq_const %one, dense<2.633e-3> : tensor<f32>
      return
    })";
    for (std::size_t at = text.find('T'); at != std::string::npos; at = text.find('T', at + 1))
      if (text[at + 1] == '>') text.replace(at, 1, t);
    const stablehlo::Module m = stablehlo::parse(text);
    expect_passes(m, t + " by the reference", Compiler());
    expect_passes(m, t + " by the device", generic() | test::device({.threads = 1}));
  }
}

// Numbers whose sums and products overflow 64 bits.
TEST(ReadStableHlo, NumbersAtTheEdgesOf64Bits) {
  const stablehlo::Module ends = stablehlo::parse(R"(func.func @main() {
    %a = stablehlo.constant dense<[9223372036854775807, -9223372036854775808]> : tensor<2xi64>
    %b = stablehlo.reverse %a, dims = [0] : tensor<2xi64>
    check.expect_eq_const %b, dense<[-9223372036854775808, 9223372036854775807]> : tensor<2xi64>
    %c = stablehlo.constant dense<[-9223372036854775808, -9223372036854775807, -9223372036854775806]> : tensor<3xi64>
    %d = stablehlo.reverse %c, dims = [0] : tensor<3xi64>
    check.expect_eq_const %d, dense<[-9223372036854775806, -9223372036854775807, -9223372036854775808]> : tensor<3xi64>
    return
  })");
  expect_passes(ends, "by the reference", Compiler());
  expect_passes(ends, "by the CPU", generic() | test::device({.threads = 1}));

  for (const std::string far : {"9223372036854775807", "-9223372036854775808"})
    EXPECT_EQ(
        problem("  %z = stablehlo.constant dense<0.0> : tensor<f32>\n  %y = stablehlo.pad %x, %z, low = [" + far +
                "], high = [" + far +
                "], interior = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>\n  return %y : tensor<4xf32>"),
        "stablehlo: not all of the module can be read:\n  line 3: stablehlo.pad: padding of axis 0 makes more than "
        "2^48 elements, or cuts as many");

  const StableHloProgram none = read_stablehlo(R"(func.func @main(%x: tensor<4xf32>) -> tensor<0xf32> {
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %y = "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 549755813888>, window_dilations = array<i64: 549755813888>}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %s = stablehlo.add %a, %b : tensor<f32>
        "stablehlo.return"(%s) : (tensor<f32>) -> ()
    }) : (tensor<4xf32>, tensor<f32>) -> tensor<0xf32>
    return %y : tensor<0xf32>
  })");
  EXPECT_EQ(lc::str(none.graph[none.graph.roots()[0].edge.node].shape), "[0]");
}

TEST(ReadStableHlo, CountedLoopsAreScansAndOthersEndWhereTheyShould) {
  const StableHloProgram s = read_stablehlo(module_text("control.mlir"));
  std::vector<std::int64_t> lengths;
  for (NodeId id = 0; id < s.graph.size(); ++id)
    if (const auto& c = s.graph[id].composite; c && c->loop) lengths.push_back(c->loop->length);
  ASSERT_EQ(lengths.size(), 2u);
  EXPECT_EQ(lengths[0], 10);
  EXPECT_EQ(lengths[1], StableHloOptions().max_steps);
}

TEST(ReadStableHlo, ProductsAndConvolutionsAreFound) {
  const std::string text =
      R"(func.func @main(%x: tensor<1x16x16x8xf32>, %k: tensor<3x3x8x8xf32>, %w: tensor<8x8xf32>) -> tensor<1x16x16x8xf32> {
    %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x16x16x8xf32>, tensor<3x3x8x8xf32>) -> tensor<1x16x16x8xf32>
    %1 = stablehlo.dot_general %0, %w, contracting_dims = [3] x [0] : (tensor<1x16x16x8xf32>, tensor<8x8xf32>) -> tensor<1x16x16x8xf32>
    return %1 : tensor<1x16x16x8xf32>
  })";
  const Program p = compile(read_stablehlo(text).graph, generic() | test::device({.threads = 1}));
  std::string kernels;
  for (const PassLog& pass : p.log())
    for (const auto& [name, times] : pass.fired) kernels += name + " ";
  EXPECT_NE(kernels.find("conv"), std::string::npos) << kernels;
  EXPECT_NE(kernels.find("matmul"), std::string::npos) << kernels;
}

// Causal attention as JAX writes it: the maximum starts at -infinity, and is taken with -infinity once more.
TEST(ReadStableHlo, AttentionIsFused) {
  const StableHloProgram s = read_stablehlo(
      R"(func.func @main(%q: tensor<2x8x16xf32>, %k: tensor<2x8x16xf32>, %v: tensor<2x8x16xf32>) -> tensor<2x8x16xf32> {
    %s = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x8x16xf32>, tensor<2x8x16xf32>) -> tensor<2x8x8xf32>
    %four = stablehlo.constant dense<4.0> : tensor<2x8x8xf32>
    %scaled = stablehlo.divide %s, %four : tensor<2x8x8xf32>
    %i = stablehlo.iota dim = 1 : tensor<2x8x8xi32>
    %j = stablehlo.iota dim = 2 : tensor<2x8x8xi32>
    %sees = stablehlo.compare GE, %i, %j, SIGNED : (tensor<2x8x8xi32>, tensor<2x8x8xi32>) -> tensor<2x8x8xi1>
    %low = stablehlo.constant dense<0xFF800000> : tensor<2x8x8xf32>
    %masked = stablehlo.select %sees, %scaled, %low : tensor<2x8x8xi1>, tensor<2x8x8xf32>
    %start = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %m = stablehlo.reduce(%masked init: %start) applies stablehlo.maximum across dimensions = [2] : (tensor<2x8x8xf32>, tensor<f32>) -> tensor<2x8xf32>
    %starts = stablehlo.broadcast_in_dim %start, dims = [] : (tensor<f32>) -> tensor<2x8xf32>
    %most = stablehlo.maximum %starts, %m : tensor<2x8xf32>
    %wide = stablehlo.broadcast_in_dim %most, dims = [0, 1] : (tensor<2x8xf32>) -> tensor<2x8x8xf32>
    %d = stablehlo.subtract %masked, %wide : tensor<2x8x8xf32>
    %e = stablehlo.exponential %d : tensor<2x8x8xf32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %sum = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<2x8x8xf32>, tensor<f32>) -> tensor<2x8xf32>
    %sums = stablehlo.broadcast_in_dim %sum, dims = [0, 1] : (tensor<2x8xf32>) -> tensor<2x8x8xf32>
    %p = stablehlo.divide %e, %sums : tensor<2x8x8xf32>
    %y = stablehlo.dot_general %p, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x8x8xf32>, tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
    return %y : tensor<2x8x16xf32>
  })");
  EXPECT_EQ(fired(transform(s.graph, generic() | test::device({.threads = 1})).log, "attention"), 1);
}

TEST(ReadStableHlo, WeightsThatStayAreParameters) {
  const std::string text =
      "func.func @main(%w: tensor<4xf32>, %x: tensor<4xf32>) -> tensor<4xf32> {\n"
      "  %y = stablehlo.add %w, %x : tensor<4xf32>\n  return %y : tensor<4xf32>\n}";
  const Program p = compile(read_stablehlo(text, {.parameters = {0}}).graph);
  EXPECT_TRUE(p.is_parameter("w"));
  EXPECT_FALSE(p.is_parameter("x"));
  EXPECT_EQ(error_of([&] { read_stablehlo(text, {.parameters = {2}}); }),
            "stablehlo: argument 2 is to be a parameter, and @main has 2 arguments");
}

TEST(ReadStableHlo, NodesKnowTheirLineOfTheModule) {
  const StableHloProgram s = read_stablehlo(R"(func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.sine %x : tensor<4xf32>
    return %0 : tensor<4xf32>
  })");
  const Node& n = s.graph[s.graph.roots()[0].edge.node];
  EXPECT_EQ(n.op, Op::Sin);
  EXPECT_EQ(n.where.str(), "module:6");
  EXPECT_STREQ(n.where.op, "sine");
}

// ---- extents that the text leaves open --------------------------------------------------------------

// A function of symbolic shapes as jax.export writes it: sizes come from get_dimension_size, and conditions on them are
// asserted.
constexpr const char* kOpen = R"(func.func public @main(%x: tensor<?x2xf32>) -> (tensor<?xf32>, tensor<?x?xi32>) {
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x2xf32>) -> tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %enough = stablehlo.compare GE, %n, %two, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.custom_call @shape_assertion(%enough, %n) {api_version = 2 : i32, error_message = "two rows, not {0}", has_side_effect = true} : (tensor<i1>, tensor<i32>) -> ()
  %r:2 = call @f(%n, %x) : (tensor<i32>, tensor<?x2xf32>) -> (tensor<?xf32>, tensor<?x?xi32>)
  return %r#0, %r#1 : tensor<?xf32>, tensor<?x?xi32>
}
func.func private @f(%n: tensor<i32>, %x: tensor<?x2xf32>) -> (tensor<?xf32>, tensor<?x?xi32>) {
  %two = stablehlo.constant dense<2> : tensor<i32>
  %all = stablehlo.multiply %n, %two : tensor<i32>
  %s = stablehlo.reshape %all : (tensor<i32>) -> tensor<1xi32>
  %flat = stablehlo.dynamic_reshape %x, %s : (tensor<?x2xf32>, tensor<1xi32>) -> tensor<?xf32>
  %one = stablehlo.constant dense<1> : tensor<1xi32>
  %step = stablehlo.constant dense<2> : tensor<1xi32>
  %odd = stablehlo.real_dynamic_slice %flat, %one, %s, %step : (tensor<?xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32>
  %m = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %square = stablehlo.concatenate %m, %m, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %i = stablehlo.dynamic_iota %square, dim = 1 : (tensor<2xi32>) -> tensor<?x?xi32>
  return %odd, %i : tensor<?xf32>, tensor<?x?xi32>
})";

TEST(ReadOpenExtents, FollowFromTheArgumentsShapes) {
  for (const std::int64_t n : {2, 5}) {
    const StableHloProgram s = read_stablehlo(kOpen, {.shapes = {{0, {n, 2}}}});
    std::vector<float> x(static_cast<std::size_t>(2 * n)), odd, columns;
    for (std::size_t k = 0; k < x.size(); ++k) x[k] = static_cast<float>(k);
    for (std::int64_t k = 0; k < n; ++k) odd.push_back(static_cast<float>(2 * k + 1));
    for (std::int64_t k = 0; k < n * n; ++k) columns.push_back(static_cast<float>(k % n));
    Context c(compile(s.graph, generic() | test::device({.threads = 1})));
    c.set("x", x).run();
    EXPECT_EQ(c.get("out0"), odd);
    EXPECT_EQ(c.get("out1"), columns);
  }
}

TEST(ReadOpenExtents, SizesAmongTheArgumentsAreNumbers) {
  const std::string text = R"(func.func @main(%n: tensor<i64>, %x: tensor<?xf32>) -> tensor<?x?xf32> {
    %m = stablehlo.reshape %n : (tensor<i64>) -> tensor<1xi64>
    %s = stablehlo.concatenate %m, %m, dim = 0 : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
    %y = stablehlo.dynamic_broadcast_in_dim %x, %s, dims = [1] : (tensor<?xf32>, tensor<2xi64>) -> tensor<?x?xf32>
    return %y : tensor<?x?xf32>
  })";
  const StableHloProgram s = read_stablehlo(text, {.shapes = {{1, {2}}}, .sizes = {{0, 2}}});
  EXPECT_EQ(s.inputs, (std::vector<std::string>{"", "x"}));
  Context c(compile(s.graph, generic() | test::device({.threads = 1})));
  c.set("x", std::vector<float>{1, 2}).run();
  EXPECT_EQ(c.get("out0"), (std::vector<float>{1, 2, 1, 2}));
  EXPECT_EQ(error_of([&] {
              read_stablehlo(text, {.shapes = {{1, {2}}}});
            }),
            "stablehlo: not all of the module can be read:\n"
            "  line 4: stablehlo.dynamic_broadcast_in_dim: sizes depend on data: a graph has static shapes");
  EXPECT_EQ(error_of([&] {
              read_stablehlo(text, {.sizes = {{1, 2}}});
            }),
            "stablehlo: argument %x of tensor<?xf32> cannot be a size: a whole number can");
  EXPECT_EQ(error_of([&] {
              read_stablehlo(text, {.sizes = {{2, 2}}});
            }),
            "stablehlo: argument 2 is to be a size, and @main has 2 arguments");
}

TEST(ReadOpenExtents, BoundsAreTheLargestShape) {
  const std::string text =
      R"(func.func @main(%x: tensor<?x2xf32, #stablehlo.bounds<4, ?>>) -> tensor<?x2xf32, #stablehlo.bounds<4, ?>> {
    %n = stablehlo.constant dense<2> : tensor<i32>
    %y = stablehlo.set_dimension_size %x, %n, dim = 0 : (tensor<?x2xf32, #stablehlo.bounds<4, ?>>, tensor<i32>) -> tensor<?x2xf32, #stablehlo.bounds<4, ?>>
    return %y : tensor<?x2xf32, #stablehlo.bounds<4, ?>>
  })";
  EXPECT_EQ(stablehlo::print(stablehlo::parse(stablehlo::print(stablehlo::parse(text)))),
            stablehlo::print(stablehlo::parse(text)));
  Context c(compile(read_stablehlo(text, {.shapes = {{0, {3, 2}}}}).graph, generic() | test::device({.threads = 1})));
  c.set("x", std::vector<float>{1, 2, 3, 4, 5, 6}).run();
  EXPECT_EQ(c.get("out0"), (std::vector<float>{1, 2, 3, 4}));
  const std::string type = "stablehlo: argument %x of tensor<?x2xf32, #stablehlo.bounds<4, ?>> cannot have the shape ";
  EXPECT_EQ(error_of([&] { read_stablehlo(text, {.shapes = {{0, {5, 2}}}}); }), type + "[5, 2]");
  EXPECT_EQ(error_of([&] { read_stablehlo(text, {.shapes = {{0, {4, 3}}}}); }), type + "[4, 3]");
  EXPECT_EQ(error_of([&] { read_stablehlo(text, {.shapes = {{0, {-4, 2}}}}); }), type + "[-4, 2]");
  EXPECT_EQ(error_of([&] {
              read_stablehlo(text, {.shapes = {{0, {1, 2}}}});
            }),
            "stablehlo: not all of the module can be read:\n"
            "  line 3: stablehlo.set_dimension_size: axis 0 of 1 elements cannot have a size outside of 0 to 1");
}

TEST(ReadOpenExtents, WhatTheModuleDoesNotAllowIsRefused) {
  EXPECT_EQ(error_of([] {
              read_stablehlo(kOpen, {.shapes = {{0, {1, 2}}}});
            }),
            "stablehlo: not all of the module can be read:\n"
            "  line 5: stablehlo.custom_call: the module does not allow these shapes: two rows, not 1");
  EXPECT_EQ(error_of([] { read_stablehlo(kOpen); }),
            "stablehlo: not all of the module can be read:\n"
            "  line 1: argument %x of tensor<?x2xf32> has extents that are not known: StableHloOptions::shapes gives "
            "them numbers");
}

// ---- what it refuses ----------------------------------------------------------------------------------

// Operations that rewriting cannot replace are refused.
TEST(ReadStableHlo, WhatRewritingCannotTakeIsRefused) {
  const auto expect = [](const std::string& body, const std::string& words) {
    EXPECT_PRED2(contains, problem(body + "\n  return %x : tensor<4xf32>"), "line 2: " + words);
  };
  expect("  %a = stablehlo.uniform_quantize %x : (tensor<4xf32>) -> tensor<4x!quant.uniform<i8:f32:{0:2}, {0.5, 1.0}>>",
         "stablehlo.uniform_quantize");
  expect("  %a = stablehlo.uniform_quantize %x : (tensor<4xf32>) -> tensor<4x!quant.uniform<i8:f32, -1.0>>",
         "stablehlo.uniform_quantize");
  expect("  %a = stablehlo.add %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xcomplex<f32>>",
         "stablehlo.add (complex): is not supported");
  expect("  %c = stablehlo.constant dense<3> : tensor<4xi4> %d = stablehlo.popcnt %c : tensor<4xi4>",
         "stablehlo.popcnt (of 2 or 4 bits): is not supported");
}

TEST(ReadStableHlo, EverythingThatIsNotSupportedIsListedWithItsLine) {
  const std::string e = problem(
      R"(  %a = "stablehlo.collective_permute"(%x) <{source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
  %b = stablehlo.add %a, %a : tensor<4xf32>
  %c = stablehlo.custom_call @somebody(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %c : tensor<4xf32>)");
  EXPECT_EQ(e,
            "stablehlo: not all of the module can be read:\n"
            "  line 2: stablehlo.collective_permute: sends to or from device 1, and there is one, 0\n"
            "  line 4: stablehlo.custom_call: of 'somebody' is not supported");
}

TEST(ReadStableHlo, ProgramsForSeveralDevicesAreRefusedWhereTheyAskWhoTheyAre) {
  const auto asked = [](const char* how) {
    return error_of([&] {
      read_stablehlo(str_cat(how, R"( {
  func.func @main() -> tensor<ui32> {
    %who = stablehlo.partition_id : tensor<ui32>
    return %who : tensor<ui32>
  }
})"));
    });
  };
  const char* sentence =
      "stablehlo: not all of the module can be read:\n  line 3: stablehlo.partition_id: is part of a program for 2 "
      "devices, and there is one";
  EXPECT_EQ(asked("module attributes {mhlo.num_partitions = 2 : i32}"), sentence);
  EXPECT_EQ(asked("module attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 2 : i32}"), sentence);
  EXPECT_EQ(asked("module attributes {mhlo.num_partitions = 1 : i32}"), "no error");
  const std::string e = problem(
      "  %y = \"stablehlo.all_gather\"(%x) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : "
      "tensor<1x2xi64>}> : (tensor<4xf32>) -> tensor<8xf32>\n  return %x : tensor<4xf32>");
  EXPECT_EQ(e,
            "stablehlo: not all of the module can be read:\n  line 2: stablehlo.all_gather: joins values of 2 devices, "
            "and there is one");
}

TEST(ReadStableHlo, TextThatIsWrongIsRefusedWithLineAndColumn) {
  EXPECT_EQ(problem("  return %y : tensor<4xf32>"), "stablehlo: line 2, column 10: %y is not defined");
  EXPECT_EQ(problem("  %y = stablehlo.add %x, : tensor<4xf32>"),
            "stablehlo: line 2, column 26: an operand or an attribute was expected, not ':'");
  EXPECT_EQ(problem("  %y = stablehlo.abs %x : tensor<5xf32>"),
            "stablehlo: line 2, column 27: %x is tensor<4xf32>, not tensor<5xf32>");
  EXPECT_EQ(problem("  %y = stablehlo.constant dense<[1.0, 2.0]> : tensor<3xf32>"),
            "stablehlo: line 2, column 43: 2 elements were written where axis 0 of tensor<3xf32> has 3");
  EXPECT_EQ(error_of([] { read_stablehlo("func.func @f() {\n  return\n}"); }),
            "stablehlo: the module has no function @main; it has @f");
  EXPECT_EQ(error_of([] { read_stablehlo("module {"); }),
            "stablehlo: line 1, column 9: the text ends where '}' was expected");
}

TEST(ReadStableHlo, AttributesHaveTheKindThatIsNeeded) {
  EXPECT_EQ(problem("  %y = \"stablehlo.concatenate\"(%x) <{dimension = \"zero\"}> : (tensor<4xf32>) -> tensor<4xf32>\n"
                    "  return %y : tensor<4xf32>"),
            "stablehlo: not all of the module can be read:\n  line 2: stablehlo.concatenate: dimension is not a whole "
            "number");
}

TEST(ReadStableHlo, TypesHaveToBeThoseOfTheOperations) {
  EXPECT_EQ(problem("  %y = stablehlo.reshape %x : (tensor<4xf32>) -> tensor<2x3xf32>\n  return %x : tensor<4xf32>"),
            "stablehlo: not all of the module can be read:\n  line 2: stablehlo.reshape: [4] has another number of "
            "elements than [2, 3]");
  EXPECT_EQ(
      problem(
          "  %y = stablehlo.transpose %x, dims = [0] : (tensor<4xf32>) -> tensor<4xf64>\n  return %x : tensor<4xf32>"),
      "stablehlo: not all of the module can be read:\n  line 2: stablehlo.transpose: gives f32 [4], and its type says "
      "tensor<4xf64>");
}

// A file may state that the result of an operation is not a tensor of numbers.
TEST(ReadStableHlo, ResultsOfArithmeticAreTensors) {
  const std::string dots =
      "dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0], "
      "rhs_contracting_dimensions = [0]>";
  const std::pair<const char*, std::string> operations[] = {
      {"stablehlo.dot_general", "(%x, %x) <{" + dots + "}> : (tensor<4xf32>, tensor<4xf32>)"},
      {"stablehlo.convert", "(%x) : (tensor<4xf32>)"},
      {"stablehlo.bitcast_convert", "(%x) : (tensor<4xf32>)"}};
  for (const auto& [name, operands] : operations)
    for (const char* type : {"f8E5M2FNUZ", "f32", "!stablehlo.token"}) {
      const std::string e =
          problem("  %y = \"" + std::string(name) + "\"" + operands + " -> " + type +
                  "\n  %z = \"stablehlo.tanh\"(%y) : (" + type + ") -> " + type + "\n  return %x : tensor<4xf32>");
      EXPECT_PRED2(contains, e, name) << type;
      EXPECT_PRED2(contains, e, "which is no tensor of numbers") << type;
    }
}

// Functions that each call the next one twice would expand to 2^40 operations.
TEST(ReadStableHlo, CallsThatWouldNeverEndAreRefused) {
  std::string text =
      "func.func @f0(%x: tensor<f32>) -> tensor<f32> {\n  %y = stablehlo.add %x, %x : tensor<f32>\n  return %y : "
      "tensor<f32>\n}\n";
  for (int k = 1; k <= 40; ++k) {
    const std::string call = "call @f" + std::to_string(k - 1);
    text += "func.func @f" + std::to_string(k) + "(%x: tensor<f32>) -> tensor<f32> {\n  %a = " + call +
            "(%x) : (tensor<f32>) -> tensor<f32>\n  %b = " + call +
            "(%a) : (tensor<f32>) -> tensor<f32>\n  return %b : tensor<f32>\n}\n";
  }
  const std::string e = error_of([&] { read_stablehlo(text, {.function = "f40"}); });
  EXPECT_NE(e.find("more than 1000000 operations"), std::string::npos) << e;
  const std::string self =
      error_of([] { read_stablehlo("func.func @main() {\n  call @main() : () -> ()\n  return\n}"); });
  EXPECT_NE(self.find("line 2: func.call: @main calls itself"), std::string::npos) << self;
}

}  // namespace
