// A graph that export_onnx() writes and read_onnx() reads computes the same, with open sizes too; what is wrong is a
// sentence.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "../stablehlo/graphs.h"
#include "error_of.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/io/checkpoints/weights.h"
#include "lightcone/nn/layers.h"
#include "lightcone/nn/session.h"
#include "lightcone/onnx/export.h"
#include "lightcone/onnx/onnx.h"
#include "lightcone/passes/passes.h"
#include "lightcone/passes/symbols.h"
#include "lightcone/runtime/program.h"
#include "lightcone/stablehlo/write.h"
#include "lightcone/verify/random_graph.h"
#include "onnx_values.h"
#include "paths.h"

namespace lc {
namespace {

constexpr double kSlack = 4;  // as in verify()

struct Decided {
  std::size_t values = 0, all = 0;
} decided;

void expect_close(const Value& got, const Value& want, const std::string& what) {
  ASSERT_EQ(got.shape, want.shape) << what;
  ASSERT_EQ(got.dtype, want.dtype) << what;
  for (std::size_t k = 0; k < got.size(); ++k) {
    const double x = got.at(k), y = want.at(k), room = kSlack * want.error_at(k);
    ++decided.all;
    if (std::isinf(room)) continue;
    ++decided.values;
    const bool both_nan = std::isnan(x) && std::isnan(y);
    const double tiny = is_float(want.dtype) ? std::abs(y) * 1e-6 + 1e-38 : 0;
    ASSERT_TRUE(both_nan || x == y || std::abs(x - y) <= room + tiny)
        << what << ": element " << k << " is " << x << ", not " << y << " within " << room;
  }
}

void set(Context& c, const std::string& name, const Value& v) {
  std::vector<std::byte> bytes(v.size() * size_of(v.dtype));
  write_value(v, bytes.data());
  c.set(name, ArrayView{v.dtype, v.shape, bytes});
}

// A size that no shape tells is an input of the file. The reader needs its value, as sizes depend on it.
OnnxOptions with_sizes(const Graph& g, const Bindings& sizes) {
  OnnxOptions o;
  for (const auto& a : export_stablehlo(g, {}, Precision::Highest, UnboundSizes::Open).arguments)
    if (a.kind == StableHloExport::Argument::Kind::Size && sizes.contains(a.name))
      o.values[a.name] = {DType::I64, {}, std::as_bytes(std::span(&sizes.at(a.name), 1))};
  return o;
}

void expect_same(const std::string& name, const Graph& g, const Bindings& sizes, std::span<const std::byte> file,
                 const std::map<std::string, Value>& inputs, const Compiler& compiler, bool open = true) {
  const OnnxProgram m = read_onnx(file, open ? with_sizes(g, sizes) : OnnxOptions());
  const Results want = interpret(g, inputs, sizes, Rounding::Wide, true);
  Program p = compile(m.graph, compiler);
  m.load_weights(p);
  Context c(p);
  for (const auto& in : m.inputs) set(c, in.name, inputs.at(in.name));
  c.run();
  for (const auto& [output, value] : want.outputs)
    expect_close(c.value(inputs.contains(output) ? output + ".out" : output), value, str_cat(name, ", ", output));
  for (const auto& [state, value] : want.states)
    expect_close(c.value(state + ".next"), value, str_cat(name, ", ", state));
}

const Compiler& interpreted() {
  static const Compiler c = generic() | cpu({.threads = 1, .compiler = false});
  return c;
}

OnnxExportOptions newest() { return {.opset = 26}; }

// Networks, layers, loops and indexing come back as they were.
TEST(ExportOnnx, OfNetworks) {
  for (const test::Named& n : test::named_graphs()) {
    const auto inputs = fitting_inputs(n.graph, n.sizes, 1, false);
    const test::OnnxInputs values(n.graph, inputs);
    OnnxExportOptions o = newest();
    o.sizes = n.sizes;
    expect_same(n.name, n.graph, n.sizes, export_onnx(n.graph, values.parameters, o), inputs, interpreted(), false);
  }
}

// One file answers for several sizes.
TEST(ExportOnnx, OfNetworksWithOpenSizes) {
  int open = 0;
  for (const test::Named& n : test::named_graphs()) {
    if (n.sizes.empty()) continue;
    if (n.name == "random_numbers_of_rows") continue;  // Slice cuts off at the end, which the reader cannot rule out
    const auto inputs = fitting_inputs(n.graph, n.sizes, 1, false);
    const test::OnnxInputs values(n.graph, inputs);
    const auto file = export_onnx(n.graph, values.parameters, newest());
    Bindings other = n.sizes;
    for (auto& [name, size] : other) ++size;
    auto more = fitting_inputs(n.graph, other, 1, false);
    for (NodeId id = 0; id < n.graph.size(); ++id)
      if (n.graph[id].parameter) more[n.graph[id].name] = inputs.at(n.graph[id].name);
    for (const auto& [sizes, in] : {std::pair(n.sizes, inputs), std::pair(other, more)})
      expect_same(n.name, n.graph, sizes, file, in, interpreted());
    ++open;
  }
  EXPECT_GE(open, 10);
}

// Graphs over everything the core offers.
TEST(ExportOnnx, OfRandomGraphs) {
  const char* given = std::getenv("LIGHTCONE_SEED");
  const std::uint64_t first = given ? std::strtoull(given, nullptr, 10) * 1000 : 0;
  int refused = 0;
  for (std::uint64_t k = first; k < first + 200 && !HasFailure(); ++k) {
    const Graph g = random_graph(k, {.nodes = 4 + static_cast<int>(k % 14)});
    const Bindings sizes = random_bindings(g, k);
    const auto inputs = random_inputs(g, sizes, k, k % 3 == 0);
    const test::OnnxInputs values(g, inputs);
    OnnxExportOptions o = newest();
    // The reader takes open extents to be at least 1.
    const bool open = k % 2 == 1 && std::ranges::none_of(sizes, [](const auto& size) { return size.second == 0; });
    if (!open) o.sizes = sizes;
    std::vector<std::byte> file;
    try {
      file = export_onnx(g, values.parameters, o);
    } catch (const Error& e) {
      ++refused;
      std::printf("random graph %s is refused: %s\n", std::to_string(k).c_str(), e.what());
      continue;
    }
    try {
      expect_same(str_cat("random graph ", k), g, sizes, file, inputs, interpreted(), open);
    } catch (const Error& e) {
      // The reader takes n + 3 for a name, and so cannot prove that max(n + 3, 3) is n + 3.
      if (!open || std::string_view(e.what()).find("not known whether") == std::string_view::npos) throw;
      ++refused;
    }
  }
  EXPECT_LE(refused, 10);
  EXPECT_GT(decided.values, decided.all * 6 / 10) << decided.values << " of " << decided.all;
}

// NaN sorts as larger than an infinity, and zeros of padding times NaN are NaN.
TEST(ExportOnnx, NotANumberKeepsItsPlace) {
  Graph g;
  const Tensor x = g.input("x", {1, 4}), none = g.input("none", {2, 0});
  g.output("order", argsort(x, 1, true));
  g.output("product", matmul(none.pad(1, 0, 1), x));
  const OnnxProgram m = read_onnx(export_onnx(g, {}, newest()));
  Context c(compile(m.graph, interpreted()));
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> values{inf, 1, nan, -inf};
  c.set("x", values).run();
  EXPECT_EQ(c.get("order"), (std::vector<float>{2, 0, 1, 3}));
  const auto product = c.get("product");
  ASSERT_EQ(product.size(), 8u);
  for (std::size_t k = 0; k < 8; ++k) EXPECT_EQ(std::isnan(product[k]), k % 4 != 1) << k;
}

// ---- what is written ---------------------------------------------------------------------------------------------

std::string file(const std::string& name) {
  return (std::filesystem::temp_directory_path() / str_cat("lightcone_export_", ::getpid(), "_", name)).string();
}

// The operators of a graph in a file of opset 21, or of the one given.
std::map<std::string, std::int64_t> operators(const Graph& g, const std::string& name, int opset = 21) {
  const auto inputs = fitting_inputs(g, random_bindings(g, 1), 1, false);
  const test::OnnxInputs values(g, inputs);
  const std::string path = file(name);
  export_onnx(g, values.parameters, path, {.opset = opset});
  const auto found = describe_onnx(path).operators;
  std::filesystem::remove(path);
  return found;
}
using Operators = std::map<std::string, std::int64_t>;

TEST(ExportOnnx, ProductsAreOperators) {
  Graph g;
  const Dim batch = Dim::symbol("batch", 1, 8);
  const Tensor x = g.input("x", {batch, 6}), w = g.parameter("w", {4, 6}), b = g.parameter("b", {4});
  g.output("y", softmax(linear(x, w, b), 1));
  EXPECT_EQ(operators(g, "linear.onnx"), (Operators{{"Transpose", 1}, {"MatMul", 1}, {"Add", 1}, {"Softmax", 1}}));
}

// Images of any size, and of any number.
TEST(ExportOnnx, ConvolutionsAndPoolsAreOperators) {
  for (const bool open : {false, true}) {
    Graph g;
    const Dim n = open ? Dim::symbol("n", 1, 4) : Dim(2), h = open ? Dim::symbol("h", 8, 64) : Dim(12);
    const Tensor x = g.input("x", {n, 3, h, 16}), w = g.parameter("w", {8, 3, 3, 3}),
                 v = g.parameter("v", {5, 8, 1, 1});
    const Tensor y = relu(conv(x, w, {.stride = {2}, .padding = {1}}));
    g.output("y", avg_pool(conv(max_pool(y, {2}), v, ConvOptions()), {2}, {1}));
    const auto found = operators(g, "conv.onnx");
    EXPECT_EQ(found.at("Conv"), 2);
    EXPECT_EQ(found.at("Relu"), 1);
    EXPECT_EQ(found.at("MaxPool"), 1);
    EXPECT_EQ(found.at("AveragePool"), 1);
    EXPECT_FALSE(found.contains("Einsum"));
    EXPECT_FALSE(found.contains("ReduceSum"));
  }
}

TEST(ExportOnnx, NormsAndAttentionAreTheOperatorsOfTheOpset) {
  Graph g;
  const Tensor x = g.input("x", {2, 4, 6, 8}), w = g.parameter("w", {8}), c = g.parameter("c", {4});
  g.output("layer", layer_norm(x, {8}, w, w));
  g.output("rms", rms_norm(x, {8}, w));
  g.output("group", group_norm(x, 2, c, c));
  g.output("attention", scaled_dot_product_attention(x, x, x, AttentionOptions{.is_causal = true}));
  const auto old = operators(g, "norms.onnx", 20), now = operators(g, "norms.onnx", 23);
  EXPECT_EQ(old.at("LayerNormalization"), 1);
  EXPECT_FALSE(old.contains("GroupNormalization"));
  EXPECT_FALSE(old.contains("Attention"));
  EXPECT_EQ(now, (Operators{
                     {"LayerNormalization", 1}, {"RMSNormalization", 1}, {"GroupNormalization", 1}, {"Attention", 1}}));
}

// The rows that steps make are the loop's scanned outputs: no step copies them all.
TEST(ExportOnnx, RowsOfALoopAreScanned) {
  const auto found = operators(test::scan_graph(false, 2), "scan.onnx");
  EXPECT_EQ(found.at("Loop"), 2);  // the gradient has the other one
  EXPECT_FALSE(found.contains("Concat"));
}

TEST(ExportOnnx, WeightsOfSessionsAndNames) {
  Session cx;
  const auto x = cx.tensor<2, 3>();
  const auto w = cx.parameter<3, 2>("w");
  cx.parameter<3, 2>("unread");
  (void)x.matmul(w).retrieve();
  const std::vector<float> values{1, 2, 3, 4, 5, 6};
  cx.load({{"w", ArrayView{DType::F32, {3, 2}, std::as_bytes(std::span(values))}},
           {"unread", ArrayView{DType::F32, {3, 2}, std::as_bytes(std::span(values))}}});
  const std::string input = cx.graph()[x.edge().node].name, output = cx.graph().roots()[0].name;
  const auto bytes = export_onnx(cx.graph(), cx.parameters(),
                                 {.names = {{input, "pictures"}, {output, "scores"}}, .metadata = {{"made by", "me"}}});
  const OnnxProgram m = read_onnx(bytes);
  ASSERT_EQ(m.inputs.size(), 1u);
  EXPECT_EQ(m.inputs[0].name, "pictures");
  EXPECT_EQ(m.outputs.at(0).name, "scores");
  EXPECT_EQ(m.metadata.at("made by"), "me");
  ASSERT_EQ(m.weights.size(), 1u);
  EXPECT_EQ(m.weights[0].name, "w");
  Program p = compile(m.graph, interpreted());
  m.load_weights(p);
  Context c(p);
  c.set("pictures", std::vector<float>{1, 0, 0, 0, 1, 1}).run();
  EXPECT_EQ(c.get("scores"), (std::vector<float>{1, 2, 8, 10}));  // by hand
}

// Large weights begin at pages of the file beside, and the model answers as with weights inside.
TEST(ExportOnnx, WeightsBeside) {
  Graph g;
  const Tensor x = g.input("x", {2, 300}), a = g.parameter("a", {300, 300}), b = g.parameter("b", {2, 300}),
               small = g.parameter("small", {2});
  g.output("y", linear(linear(x, a), b) + small);
  const auto inputs = fitting_inputs(g, {}, 1, false);
  const test::OnnxInputs values(g, inputs);
  const std::string path = file("beside.onnx");
  export_onnx(g, values.parameters, path, {.weights = OnnxExportOptions::WeightsIn::FileBeside});
  const std::uint64_t first = 300 * 300 * 4, pages = (first + 4095) / 4096 * 4096;
  EXPECT_EQ(std::filesystem::file_size(path + ".data"), pages + 2 * 300 * 4);
  EXPECT_LT(std::filesystem::file_size(path), 4096u);
  {
    const OnnxProgram m = read_onnx(path);
    Program p = compile(m.graph, interpreted());
    m.load_weights(p);
    Context c(p);
    set(c, "x", inputs.at("x"));
    c.run();
    expect_close(c.value("y"), interpret(g, inputs, {}, Rounding::Wide, true).outputs.at("y"), "y");
  }
  std::filesystem::remove(path), std::filesystem::remove(path + ".data");
}

// Blocks of Q8_0 are a half, the scale, and 32 signed bytes (ggml). Rows are gathered from the numbers.
TEST(ExportOnnx, BlocksBecomeNumbers) {
  Graph g;
  const nn::Parameter w = nn::parameter(g, "w", {2, 32}, DType::U8, QuantFormat::Q8_0);
  g.output("rows", w.rows(g.input("ids", {3}, DType::I64)));
  std::vector<std::uint8_t> blocks(2 * 34);
  for (int row = 0; row < 2; ++row) {
    blocks[static_cast<std::size_t>(row) * 34 + 1] = 0x38;  // 0.5 as a half
    for (int k = 0; k < 32; ++k)
      blocks[static_cast<std::size_t>(row * 34 + 2 + k)] = static_cast<std::uint8_t>(row == 0 ? k : -k);
  }
  const auto bytes = export_onnx(g, {{"w", ArrayView{DType::U8, {2, 34}, std::as_bytes(std::span(blocks))}}});
  const OnnxProgram m = read_onnx(bytes);
  ASSERT_EQ(m.weights.size(), 1u);
  EXPECT_EQ(m.weights[0].name, "w.f32");
  EXPECT_EQ(m.weights[0].view.shape, (std::vector<std::int64_t>{2, 32}));
  Program p = compile(m.graph, interpreted());
  m.load_weights(p);
  Context c(p);
  c.set("ids", std::vector<std::int64_t>{1, 0, 1}).run();
  const auto y = c.get("rows");
  for (int k = 0; k < 32; ++k) {
    EXPECT_EQ(y[static_cast<std::size_t>(k)], -0.5f * static_cast<float>(k));
    EXPECT_EQ(y[static_cast<std::size_t>(32 + k)], 0.5f * static_cast<float>(k));
  }
}

// A model that was read is written, and read, with the same answers.
TEST(ExportOnnx, AgainWhatWasRead) {
  const OnnxProgram first = read_onnx(std::string(paths::kSource) + "/models/onnx/flowers.onnx");
  const auto bytes = export_onnx(first.graph, first.values());
  const OnnxProgram second = read_onnx(bytes);
  EXPECT_EQ(str(second.inputs.at(0).shape), str(first.inputs.at(0).shape));
  std::vector<std::vector<float>> answers;
  for (const OnnxProgram* m : {&first, &second}) {
    Program p = compile(m->graph, interpreted());
    m->load_weights(p);
    Context c(p);
    const std::vector<float> x{5.1f, 3.5f, 1.4f, 0.2f, 6.3f, 3.3f, 6.0f, 2.5f};
    c.set("x", ArrayView{DType::F32, {2, 4}, std::as_bytes(std::span(x))}).run();
    answers.push_back(c.get("probabilities"));
  }
  ASSERT_EQ(answers[0].size(), answers[1].size());
  for (std::size_t k = 0; k < answers[0].size(); ++k) EXPECT_NEAR(answers[0][k], answers[1][k], 1e-6);
}

// ---- what is wrong -----------------------------------------------------------------------------------------------

TEST(ExportOnnx, SaysWhatIsWrong) {
  Graph g;
  const Tensor x = g.input("x", {4});
  g.output("y", x * g.parameter("w", {4}));
  g.output("bits", prim::bitcast(x, DType::I32));
  const std::vector<float> four(4), three(3);
  const OnnxValues good{{"w", {DType::F32, {4}, std::as_bytes(std::span(four))}}},
      bad{{"w", {DType::F32, {3}, std::as_bytes(std::span(three))}}};
  const std::string missing = error_of([&] { export_onnx(g, {}); });
  EXPECT_NE(missing.find("parameters have no value: 'w' f32[4]"), std::string::npos) << missing;
  EXPECT_NE(error_of([&] { export_onnx(g, bad); }).find("the value of 'w' is [3], and the parameter [4]"),
            std::string::npos);
  const std::string unsaid = error_of([&] { export_onnx(g, good); });
  EXPECT_NE(unsaid.find("not all of the graph can be said in ONNX:\n  the bits of a floating number need opset 26 "
                        "(BitCast) (bitcast at export_onnx_test.cpp:"),
            std::string::npos)
      << unsaid;
  EXPECT_GT(export_onnx(g, good, {.opset = 26}).size(), 0u);
  EXPECT_NE(error_of([&] { export_onnx(g, good, {.opset = 16}); }).find("opset 16 is not written: 17 to 26 are"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              export_onnx(g, good, {.opset = 26, .sizes = {{"n", 3}}});
            }).find("the graph has no size 'n'"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              export_onnx(g, good, {.opset = 26, .names = {{"bits", "x"}}});
            }).find("would be named 'x'"),
            std::string::npos);
  const auto beside = OnnxExportOptions::WeightsIn::FileBeside;
  EXPECT_NE(error_of([&] { export_onnx(g, good, {.opset = 26, .weights = beside}); }).find("need a path"),
            std::string::npos);
  EXPECT_NE(error_of([&] { export_onnx(g, good, "/no/folder/here.onnx", {.opset = 26}); }).find("/no/folder"),
            std::string::npos);
}

}  // namespace
}  // namespace lc
