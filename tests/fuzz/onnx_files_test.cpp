// ONNX models that are made at random, or whose fields are changed, give a graph or an Error, in time and within bounds
// of memory. A part of the graphs is compiled.
//
// LIGHTCONE_FUZZ makes more of them, LIGHTCONE_FUZZ_SEED other ones. LIGHTCONE_FUZZ_MODELS is a folder of models of any
// size, which are changed instead of those of the data.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/base/error.h"
#include "lightcone/onnx/onnx.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"
#include "memory.h"
#include "onnx_models.h"
#include "paths.h"
#include "processor_time.h"

using namespace lc;
using lc::onnx::ElementType;
using lc::test::AttributeSpec;
using lc::test::Message;
using lc::test::ModelWriter;

namespace {

namespace fs = std::filesystem;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr double kSeconds = 20;
#elif defined(__OPTIMIZE__)
constexpr double kSeconds = 2;
#else
constexpr double kSeconds = 10;
#endif
constexpr std::size_t kMemory = 200u << 20, kMemoryOfByte = 100;

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* v = std::getenv(name);
  return v ? std::strtoull(v, nullptr, 10) : otherwise;
}
std::string slurp(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// What survey_onnx() lists is nothing for a model that is read, and something, or its Error, for another one.
void expect_survey(const std::string& model, bool is_read, double seconds) {
  const double took = test::seconds([&] {
    try {
      const auto lines = survey_onnx(std::as_bytes(std::span(model)));
      EXPECT_EQ(lines.empty(), is_read) << (lines.empty() ? "" : lines[0]);
    } catch (const Error& e) {
      EXPECT_FALSE(is_read) << e.what();
    }
  });
  EXPECT_LT(took, seconds);
}

// Reads a model and returns what is said against it, "" if nothing is. Anything but an Error fails the test.
std::string refusal(const std::string& model, bool compiles = false, double seconds = kSeconds) {
  std::string why;
  counted::reset_most();
  const std::size_t before = counted::live();
  const double took = test::seconds([&] {
    try {
      const OnnxProgram m = read_onnx(std::as_bytes(std::span(model)));
      if (!compiles) return;
      Program p = compile(m.graph, generic() | cpu({.threads = 1, .compiler = false}));
      m.load_weights(p);
    } catch (const Error& e) {
      why = e.what();
      EXPECT_NE(e.op(), "internal error") << why;
    } catch (const std::exception& e) {
      ADD_FAILURE() << "an exception that is no Error: " << e.what();
    }
  });
  EXPECT_LT(took, seconds * (compiles ? 4 : 1));
  if (!compiles) {
    EXPECT_LT(counted::most() - before, kMemory + kMemoryOfByte * model.size());
  }
  EXPECT_LT(why.size(), 20000u);
  if (!compiles) expect_survey(model, why.empty(), seconds);
  return why;
}
bool says(const std::string& text, const std::string& words) { return text.find(words) != std::string::npos; }

const std::uint64_t kSeed = from_environment("LIGHTCONE_FUZZ_SEED", 1) * 1'000'003;

}  // namespace

TEST(OnnxFiles, RandomOperators) {
  std::size_t read = 0;
  const std::uint64_t n = from_environment("LIGHTCONE_FUZZ", 1500);
  for (std::uint64_t k = 0; k < n && !HasFailure(); ++k) {
    SCOPED_TRACE("model " + std::to_string(kSeed + k));
    read += refusal(fuzz::ModelMaker(kSeed + k).model(), k % 4 == 0).empty();
  }
  EXPECT_GT(read, 0u) << "the models no longer reach the graph";
}

// The models of ../shared/data where it is there.
TEST(OnnxFiles, ChangedFields) {
  std::vector<fs::path> files;
  const fs::path data = fs::path(paths::kData);
  for (const char* folder : {"onnx", "vision", "audio_models", "text"})
    if (fs::exists(data / folder))
      for (const auto& e : fs::recursive_directory_iterator(data / folder))
        if (e.path().filename() == "model.onnx" && e.file_size() < 1 << 20) files.push_back(e.path());
  if (const char* others = std::getenv("LIGHTCONE_FUZZ_MODELS")) {
    files.clear();
    for (const auto& e : fs::recursive_directory_iterator(others))
      if (e.path().extension() == ".onnx") files.push_back(e.path());
  }
  if (files.empty()) GTEST_SKIP() << "there are no models in " << data;
  std::ranges::sort(files);
  std::mt19937_64 random(kSeed);
  const std::uint64_t n = from_environment("LIGHTCONE_FUZZ", 1500);
  for (std::uint64_t k = 0; k < n && !HasFailure(); ++k) {
    const fs::path& file = files[random() % files.size()];
    SCOPED_TRACE("change " + std::to_string(k) + " of " + file.string());
    fuzz::Fields model = fuzz::parse_model(slurp(file));
    fuzz::change(model, random);
    refusal(fuzz::written(model), k % 4 == 0);
  }
}

// ---- single models ---------------------------------------------------------------------------------

namespace {

ModelWriter base() {
  ModelWriter w;
  w.opset(18).opset(1, "own").opset(1, "com.microsoft");
  w.input("x", ElementType::Float, {"n", 4});
  return w;
}
std::string refused(ModelWriter w, const std::string& result) { return refusal(w.output(result).bytes()); }
AttributeSpec whole(const std::string& name, std::int64_t v) {
  AttributeSpec a(name, 0);
  a.value = v;
  return a;
}

// A model with functions, each of which calls the next one `times` times.
std::string functions_of_functions(int depth, int times) {
  Message graph;
  const Message shape = Message().message(1, Message().integer(1, 4));
  const Message type = Message().message(1, Message().integer(1, 1).message(2, shape));
  graph.message(11, Message().text(1, "x").message(2, type));
  graph.message(1, Message().text(1, "x").text(2, "y").text(4, "f0").text(7, "own"))
      .message(12, Message().text(1, "y"));
  Message m;
  m.integer(1, 10).message(7, graph).message(8, Message().text(1, "").integer(2, 18));
  m.message(8, Message().text(1, "own").integer(2, 1));
  for (int d = 0; d < depth; ++d) {
    Message f;
    f.text(1, "f" + std::to_string(d)).text(10, "own").text(4, "a0").text(5, "a" + std::to_string(times));
    for (int k = 0; k < times; ++k) {
      Message n;
      n.text(1, "a" + std::to_string(k)).text(2, "a" + std::to_string(k + 1));
      if (d + 1 < depth) n.text(4, "f" + std::to_string(d + 1)).text(7, "own");
      else n.text(4, "Relu");
      f.message(7, n);
    }
    m.message(25,
              f.message(9, Message().text(1, "").integer(2, 18)).message(9, Message().text(1, "own").integer(2, 1)));
  }
  return m.bytes();
}

// Loops in loops, each of `steps` steps whose shapes differ, so that they are written out.
Message loops_in_loops(int depth, std::int64_t steps) {
  ModelWriter w;
  w.input("i", ElementType::Int64, {}).input("c", ElementType::Bool, {}).input("v", ElementType::Float, {});
  w.constant<std::int64_t>("steps", {steps}, {});
  if (depth > 0) w.node("Loop", {"steps", "", "v"}, {"w"}, {{"body", loops_in_loops(depth - 1, steps)}});
  else w.node("Concat", {"v", "v"}, {"w"}, {{"axis", 0}});
  return w.output("c").output("w").graph();
}

}  // namespace

TEST(HostileOnnx, WorkIsInProportionToTheFile) {
  EXPECT_EQ(refusal(functions_of_functions(3, 4)), "");
  EXPECT_TRUE(says(refusal(functions_of_functions(40, 2)), "make more than"));
  EXPECT_TRUE(says(refusal(functions_of_functions(6, 30)), "make more than"));
  ModelWriter loops = base();
  loops.constant<std::int64_t>("steps", {200}, {}).node("Identity", {"x"}, {"v"});
  loops.node("Loop", {"steps", "", "v"}, {"w"}, {{"body", loops_in_loops(4, 200)}});
  EXPECT_NE(refused(loops, "w"), "");
}

// Sizes are open, so that the steps would be written out.
TEST(HostileOnnx, LoopsOfAstronomicLength) {
  for (const std::int64_t n : {std::int64_t{1} << 31, std::int64_t{1} << 48, INT64_MAX}) {
    ModelWriter body;
    body.input("i", ElementType::Int64, {}).input("c", ElementType::Bool, {}).input("v", ElementType::Float, {});
    body.node("Relu", {"v"}, {"w"}).output("c").output("w").output("w");
    ModelWriter w = base();
    w.constant<std::int64_t>("steps", {n}, {});
    w.node("Loop", {"steps", "", "x"}, {"last", "all"}, {{"body", body.graph()}});
    EXPECT_NE(refused(w, "last"), "");
  }
}

TEST(HostileOnnx, SequencesThatGrow) {
  ModelWriter w = base();
  w.node("SequenceEmpty", {}, {"s0"});
  for (int k = 0; k < 8000; ++k)
    w.node("SequenceInsert", {"s" + std::to_string(k), "x"}, {"s" + std::to_string(k + 1)});
  w.node("SequenceLength", {"s8000"}, {"n"});
  EXPECT_TRUE(says(refused(w, "n"), "elements in all"));
}

TEST(HostileOnnx, OperandsWithoutElements) {
  const auto with = [](const std::string& op, const std::vector<std::string>& in) {
    ModelWriter w = base();
    w.constant<std::int64_t>("none", {}, {0}).constant<std::int64_t>("pads", {0, 0, 1, 1}, {4});
    w.constant<float>("nothing", {}, {0}).constant<std::int64_t>("one", {1}, {});
    return refused(w.node(op, in, {"y"}), "y");
  };
  EXPECT_TRUE(says(with("Range", {"none", "one", "one"}), "operand 0 has 0 elements, not one"));
  EXPECT_TRUE(says(with("Range", {"nothing", "nothing", "nothing"}), "operand 0 has 0 elements, not one"));
  EXPECT_TRUE(says(with("Pad", {"x", "pads", "nothing"}), "operand 2 has 0 elements, not one"));
  EXPECT_TRUE(says(with("Trilu", {"x", "none"}), "operand 1 has 0 elements, not one"));
  EXPECT_TRUE(says(with("Dropout", {"x", "nothing"}), "operand 1 has 0 elements, not one"));
}

TEST(HostileOnnx, NumbersThatNoIntHolds) {
  const std::int64_t large = (std::int64_t{1} << 32) + 1;  // 1 if it is cut to 32 bits
  ModelWriter pads = base();
  pads.constant<std::int64_t>("pads", {0, large, 0, 0}, {4}).node("Pad", {"x", "pads"}, {"y"}, {{"mode", "edge"}});
  EXPECT_TRUE(says(refused(pads, "y"), "padding is 4294967297, which is too large"));
  EXPECT_TRUE(says(refused(base().node("Split", {"x"}, {"a", "b"}, {whole("num_outputs", 2'000'000'000)}), "a"),
                   "has 2 results and num_outputs of 2000000000"));
  EXPECT_TRUE(says(refused(base().node("Cast", {"x"}, {"y"}, {whole("to", large)}), "y"),
                   "its attribute to is 4294967297, which is no element type that is known"));
  ModelWriter range = base();
  range.constant<std::int64_t>("start", {0}, {}).constant<std::int64_t>("step", {INT64_MIN}, {});
  EXPECT_TRUE(says(refused(range.node("Range", {"start", "start", "step"}, {"y"}), "y"), "exceeds 2^62"));
  ModelWriter transform;
  transform.opset(20).input("x", ElementType::Float, {2, 4, 1});
  transform.constant<std::int64_t>("length", {std::int64_t{1} << 62}, {});
  EXPECT_TRUE(
      says(refused(transform.node("DFT", {"x", "length"}, {"y"}), "y"), "transforms 4611686018427387904 elements"));
  ModelWriter codes = base();
  codes.constant<std::uint8_t>("data", std::vector<std::uint8_t>(64), {4, 16})
      .constant<float>("scale", {1, 1, 1, 1}, {4, 1});
  codes.constant<std::int64_t>("rows", {0}, {1});
  codes.node("GatherBlockQuantized", {"data", "rows", "scale"}, {"y"}, {whole("bits", 0), {"block_size", 16}},
             "com.microsoft");
  EXPECT_TRUE(says(refused(codes, "y"), "has codes of 0 bits"));
  ModelWriter bias;
  bias.opset(18).opset(1, "com.microsoft").input("x", ElementType::Float, {2, 3, 4});
  bias.input("b", ElementType::Float, {4}).node("BiasSoftmax", {"x", "b"}, {"y"}, {{"axis", 1}}, "com.microsoft");
  EXPECT_TRUE(says(refused(bias, "y"), "has too few axes"));
}

// Unnamed constants, inputs with named extents, and functions: a square of their number would take minutes.
TEST(HostileOnnx, ManyOfOneThing) {
  ModelWriter constants = base(), inputs;
  inputs.opset(18);
  for (int k = 0; k < 5000; ++k) {
    const std::string n = std::to_string(k);
    constants.constant<std::int64_t>("", {1, 5, 2}, {3});
    inputs.input("x" + n, ElementType::Float, {("n" + n).c_str(), ("n" + n + " + 1").c_str()});
  }
  EXPECT_EQ(refused(constants.node("Relu", {"x"}, {"y"}), "y"), "");
  EXPECT_EQ(refused(inputs.node("Relu", {"x7"}, {"y"}), "y"), "");
}

TEST(HostileOnnx, LongChains) {
  ModelWriter w = base();
  std::string last = "x";
  for (int k = 0; k < 3000; ++k) w.node("Add", {last, "x"}, {"v" + std::to_string(k)}), last = "v" + std::to_string(k);
  EXPECT_EQ(refusal(w.output(last).bytes(), true), "");
  ModelWriter sizes = base();
  sizes.node("Shape", {"x"}, {"s"});
  last = "s";
  for (int k = 0; k < 3000; ++k)
    sizes.node("Add", {last, "s"}, {"v" + std::to_string(k)}), last = "v" + std::to_string(k);
  refused(sizes.node("ConstantOfShape", {last}, {"y"}), "y");  // or a size is unknown: chains have an end
}

// Each extent equals another: the model is read again for each.
TEST(HostileOnnx, ExtentsThatProveToBeEqual) {
  const auto sum = [](int inputs, int nodes) {
    ModelWriter w;
    w.opset(18);
    for (int k = 0; k < inputs; ++k)
      w.input("x" + std::to_string(k), ElementType::Float, {("n" + std::to_string(k)).c_str()});
    std::string last = "x0";
    for (int k = 0; k < nodes; ++k) {
      const std::string next = "v" + std::to_string(k);
      w.node("Add", {last, "x" + std::to_string(k % inputs)}, {next});
      last = next;
    }
    return w.output(last).bytes();
  };
  EXPECT_EQ(refusal(sum(100, 120)), "");
  EXPECT_NE(refusal(sum(1000, 3000), false, 6 * kSeconds), "");
  ModelWriter w = base();  // [n, 4] and [2 n, 4]
  w.node("Concat", {"x", "x"}, {"two"}, {{"axis", 0}}).node("Add", {"two", "x"}, {"y"});
  EXPECT_NE(refused(w, "y"), "");
}
