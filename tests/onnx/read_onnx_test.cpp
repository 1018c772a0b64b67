// The importer itself: sizes, weights, control flow, and what it refuses. Operators are tested elsewhere.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/io/data/array.h"
#include "lightcone/onnx/onnx.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"
#include "write_model.h"

namespace lc {
namespace {

using onnx::ElementType;
using test::ModelWriter;

std::span<const std::byte> view(const std::string& s) { return std::as_bytes(std::span(s)); }
OnnxProgram read(const std::string& model, const OnnxOptions& o = {}) { return read_onnx(view(model), o); }

std::string refusal(const std::string& model, const OnnxOptions& o = {}) {
  try {
    read(model, o);
  } catch (const Error& e) {
    return e.what();
  }
  return "no Error";
}
bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

Program compiled(const OnnxProgram& m) {
  Program p = compile(m.graph, generic() | cpu({.threads = 1, .compiler = false}));
  m.load_weights(p);
  return p;
}
Array floats(std::vector<std::int64_t> shape, std::vector<float> v) {
  return Array::of<float>(std::move(shape), std::span<const float>(v));
}

TEST(ReadOnnx, ShapeArithmeticBecomesPartOfTheShape) {
  // [b, 2 s] -> [b, s, 2], with s computed from the input's shape
  const std::string model = ModelWriter()
                                .opset(13)
                                .input("x", ElementType::Float, {"batch", "width"})
                                .constant<std::int64_t>("one", {1}, {1})
                                .constant<std::int64_t>("zero", {0}, {1})
                                .constant<std::int64_t>("two", {2}, {1})
                                .node("Shape", {"x"}, {"shape"})
                                .node("Gather", {"shape", "one"}, {"width"}, {{"axis", 0}})
                                .node("Div", {"width", "two"}, {"half"})
                                .node("Gather", {"shape", "zero"}, {"batch"})
                                .node("Concat", {"batch", "half", "two"}, {"to"}, {{"axis", 0}})
                                .node("Reshape", {"x", "to"}, {"y"})
                                .output("y")
                                .bytes();
  const OnnxProgram m = read(model, {.extents = {{"width", 6}}});
  EXPECT_EQ(str(m.outputs[0].shape), "[batch, 3, 2]");
  const Program p = compiled(m);
  Context c(p);
  c.set("x", floats({2, 6}, std::vector<float>(12, 1.0f))).run();  // binds batch
  EXPECT_EQ(c.shape("y"), (std::vector<std::int64_t>{2, 3, 2}));
  c.set("x", floats({1, 6}, std::vector<float>(6, 1.0f))).run();
  EXPECT_EQ(c.shape("y"), (std::vector<std::int64_t>{1, 3, 2}));
}

// Sizes that exporters compute in floats: Floor, Ceil and Round of an extent times a factor.
TEST(ReadOnnx, RoundedQuotientsOfExtentsAreExtents) {
  for (const std::string how : {"Floor", "Ceil", "Round"}) {
    const std::string model = ModelWriter()
                                  .opset(13)
                                  .input("x", ElementType::Float, {"width"})
                                  .constant<float>("factor", {0.25f}, {1})
                                  .constant<float>("one", {1}, {1})
                                  .node("Shape", {"x"}, {"shape"})
                                  .node("Cast", {"shape"}, {"number"}, {{"to", 1}})
                                  .node("Mul", {"number", "factor"}, {"part"})
                                  .node(how, {"part"}, {"whole"})
                                  .node("Cast", {"whole"}, {"to"}, {{"to", 7}})
                                  .node("Expand", {"one", "to"}, {"y"})
                                  .output("y")
                                  .bytes();
    const OnnxProgram m = read(model);
    const Dim extent = m.outputs[0].shape[0];
    for (std::int64_t width = 1; width < 40; ++width) {
      const double part = 0.25 * static_cast<double>(width);
      const double whole = how == "Floor" ? std::floor(part) : how == "Ceil" ? std::ceil(part) : std::nearbyint(part);
      EXPECT_EQ(extent.eval({{"width", width}}), static_cast<std::int64_t>(whole)) << how << " of " << part;
    }
  }
}

TEST(ReadOnnx, ExtentsThatHaveToBeEqualAreOneSymbol) {
  const std::string model = ModelWriter()
                                .opset(13)
                                .input("a", ElementType::Float, {"batch", "?"})
                                .input("b", ElementType::Float, {"other", -1})
                                .node("Add", {"a", "b"}, {"y"})
                                .output("y")
                                .bytes();
  const OnnxProgram m = read(model);
  EXPECT_EQ(str(m.inputs[0].shape), str(m.inputs[1].shape));
  const Program p = compiled(m);
  Context c(p);
  c.set("a", floats({2, 2}, {1, 2, 3, 4})).set("b", floats({2, 2}, {10, 20, 30, 40})).run();
  EXPECT_EQ(c.get("y"), (std::vector<float>{11, 22, 33, 44}));
  c.set("a", floats({1, 2}, {1, 2}));  // b still has two rows
  EXPECT_THROW(c.run(), Error);
}

TEST(ReadOnnx, ATableOfPositionsLimitsTheLength) {
  const std::string model = ModelWriter()
                                .opset(13)
                                .input("x", ElementType::Float, {"length", 2})
                                .constant<float>("table", std::vector<float>(16, 0.5f), {8, 2})
                                .constant<std::int64_t>("zero", {0}, {1})
                                .node("Shape", {"x"}, {"shape"}, {{"start", 0}, {"end", 1}})
                                .node("Slice", {"table", "zero", "shape", "zero"}, {"rows"})
                                .node("Add", {"x", "rows"}, {"y"})
                                .output("y")
                                .opset(1, "unused")
                                .bytes();
  const OnnxProgram m = read(std::string(model), {});
  EXPECT_EQ(m.inputs[0].shape[0].bounds().hi, 8);
}

TEST(ReadOnnx, ExtentsMayBeExpressions) {
  const std::string model = ModelWriter()
                                .opset(13)
                                .input("past", ElementType::Float, {"past_length", 2})
                                .input("x", ElementType::Float, {"length", 2})
                                .input("mask", ElementType::Float, {"past_length + length", 1})
                                .node("Concat", {"past", "x"}, {"all"}, {{"axis", 0}})
                                .node("Mul", {"all", "mask"}, {"y"})
                                .output("y")
                                .bytes();
  const OnnxProgram m = read(model);
  const Program p = compiled(m);
  Context c(p);
  c.set("past", floats({0, 2}, {})).set("x", floats({1, 2}, {3, 4})).set("mask", floats({1, 1}, {2})).run();
  EXPECT_EQ(c.get("y"), (std::vector<float>{6, 8}));
}

TEST(ReadOnnx, OpenExtentsAreLoweredUntilTheMemoryCanBePlanned) {
  const std::string model = ModelWriter()
                                .opset(13)
                                .input("x", ElementType::Float, {"a", "b", "c", "d"})
                                .node("Relu", {"x"}, {"y"})
                                .output("y")
                                .bytes();
  const OnnxProgram m = read(model);
  EXPECT_GE(m.inputs[0].shape[0].bounds().hi, 256);
  EXPECT_NO_THROW(compiled(m));
}

// 8 elements are the least of which windows of 4, three times, leave something; kernels know then that sizes are no
// less.
TEST(ReadOnnx, WindowsThatHaveToFitBoundTheExtent) {
  ModelWriter w;
  w.opset(13).input("x", ElementType::Float, {1, 1, "n"}).constant<float>("w", std::vector<float>(4, 1.0f), {1, 1, 4});
  w.node("Conv", {"x", "w"}, {"a"}).node("Conv", {"a", "w"}, {"b"}).node("Conv", {"b", "w"}, {"y"}).output("y");
  const std::string model = w.bytes();
  const OnnxProgram m = read(model);
  EXPECT_EQ(m.inputs[0].shape[2].bounds().lo, 9);
  EXPECT_EQ(m.outputs[0].shape[2].bounds().lo, 0);
  const Program p = compiled(m);
  Context c(p);
  c.set("x", floats({1, 1, 11}, std::vector<float>(11, 1.0f))).run();
  EXPECT_EQ(c.get("y"), (std::vector<float>{64, 64}));
}

// Nodes in any order, as ONNX Runtime takes them: a node goes behind those that make what it reads, in graphs within
// it, too. Nodes in a circle are refused.
TEST(ReadOnnx, NodesMayBeInAnyOrder) {
  ModelWriter w;
  w.opset(17).input("x", ElementType::Float, {3});
  w.node("Mul", {"b", "a"}, {"y"}).node("Add", {"a", "x"}, {"b"}).node("Neg", {"x"}, {"a"});
  const Program p = compiled(read(w.output("y").bytes()));
  Context c(p);
  c.set("x", std::vector<float>{1, 2, -3}).run();
  EXPECT_EQ(c.get("y"), (std::vector<float>{0, 0, 0}));

  ModelWriter circle;
  circle.opset(17).input("x", ElementType::Float, {3});
  circle.node("Add", {"x", "b"}, {"a"}).node("Neg", {"a"}, {"b"});
  EXPECT_TRUE(has(refusal(circle.output("b").bytes()), "its operand 'b' is not defined before it"));
}

TEST(ReadOnnx, ABranchThatIsKnownIsTaken) {
  const auto branch = [](float v) { return ModelWriter().constant<float>("v", {v}, {}).output("v").graph(); };
  const auto model = [&](bool known) {
    ModelWriter w;
    w.opset(13).input("x", ElementType::Float, {2}).input("c", ElementType::Bool, {});
    w.constant<std::uint8_t>("one", {1}, {}).node("Cast", {"one"}, {"yes"}, {{"to", 9}});
    return w.node("If", {known ? "yes" : "c"}, {"r"}, {{"then_branch", branch(2)}, {"else_branch", branch(3)}})
        .node("Mul", {"x", "r"}, {"y"})
        .output("y")
        .bytes();
  };
  const OnnxProgram data = read(model(false));
  const Program p = compiled(data);
  Context c(p);
  const std::array<std::uint8_t, 1> no{0};
  c.set("x", floats({2}, {1, 2})).set_bytes("c", no.data(), 1).run();
  EXPECT_EQ(c.get("y"), (std::vector<float>{3, 6}));
  const OnnxProgram known = read(model(true));
  for (NodeId id = 0; id < known.graph.size(); ++id) {
    if (known.graph.live()[id]) {
      EXPECT_NE(known.graph[id].op, Op::Where);
    }
  }
}

TEST(ReadOnnx, ALoopOfDataHasABoundAndItsResultsACount) {
  // while (sum < limit) { sum = sum + 3; collect sum }
  const test::Message body = ModelWriter()
                                 .input("k", ElementType::Int64, {})
                                 .input("go", ElementType::Bool, {})
                                 .input("sum", ElementType::Float, {})
                                 .constant<float>("three", {3}, {})
                                 .node("Add", {"sum", "three"}, {"next"})
                                 .node("Less", {"next", "limit"}, {"on"})
                                 .node("Identity", {"next"}, {"seen"})
                                 .output("on")
                                 .output("next")
                                 .output("seen")
                                 .graph();
  const std::string model = ModelWriter()
                                .opset(13)
                                .input("limit", ElementType::Float, {})
                                .constant<float>("zero", {0}, {})
                                .node("Loop", {"", "", "zero"}, {"last", "all"}, {{"body", body}})
                                .output("last")
                                .output("all")
                                .bytes();
  const OnnxProgram m = read(model, {.max_steps = 10});
  ASSERT_EQ(m.outputs[1].count, "all.count");
  const Program p = compiled(m);
  Context c(p);
  c.set("limit", floats({}, {7})).run();
  EXPECT_EQ(c.get("last"), (std::vector<float>{9}));
  EXPECT_EQ(c.get_i64("all.count"), (std::vector<std::int64_t>{3}));
  EXPECT_EQ(c.get("all")[2], 9);
}

TEST(ReadOnnx, EverythingThatIsNotKnownIsNamedAtOnce) {
  const std::string what = refusal(ModelWriter()
                                       .opset(13)
                                       .input("x", ElementType::Float, {2})
                                       .node("Frobnicate", {"x"}, {"a"})
                                       .node("Ungarble", {"a"}, {"y"}, {}, "com.example")
                                       .output("y")
                                       .bytes());
  EXPECT_TRUE(has(what, "Frobnicate: it is not known (1 node: 'a')")) << what;
  EXPECT_TRUE(has(what, "com.example.Ungarble: it is not known (1 node: 'y')")) << what;
  EXPECT_TRUE(has(refusal(ModelWriter()
                              .opset(13)
                              .input("x", ElementType::Float, {2})
                              .node("Relu", {"x"}, {"y"}, {{"slope", 0.5}})
                              .output("y")
                              .bytes()),
                  "its attribute 'slope' is not known"));
  EXPECT_TRUE(
      has(refusal(ModelWriter().opset(99).input("x", ElementType::Float, {2}).output("x").bytes()), "operator set 99"));
  EXPECT_TRUE(has(refusal(ModelWriter().opset(13).input("x", ElementType::String, {2}).output("x").bytes()),
                  "input 'x' is a string [2]"));
}

TEST(ReadOnnx, DamagedFilesAreErrors) {
  const std::string good = ModelWriter()
                               .opset(13)
                               .input("x", ElementType::Float, {2, 3})
                               .constant<float>("w", std::vector<float>(12, 1.0f), {3, 4})
                               .node("MatMul", {"x", "w"}, {"y"})
                               .output("y")
                               .bytes();
  for (std::size_t n = 1; n < good.size(); ++n) {
    try {
      read(good.substr(0, n));
    } catch (const Error&) {
    }
  }
  for (std::size_t n = 0; n < good.size(); ++n)
    for (const int bit : {0, 3, 7}) {
      std::string bad = good;
      bad[n] = static_cast<char>(bad[n] ^ (1 << bit));
      try {
        read(bad);
      } catch (const Error&) {
      }
    }
  EXPECT_TRUE(has(refusal("no model at all"), "damaged")) << refusal("no model at all");
}

}  // namespace
}  // namespace lc
