// A graph that export_onnx() writes and read_onnx() reads computes the same, with open sizes too; what is wrong is a
// sentence.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

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
  const Results want = interpret(g, inputs, sizes, Rounding::Wide, true);
  const OnnxProgram m = read_onnx(file, open ? with_sizes(g, sizes) : OnnxOptions());
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
      std::printf("random graph %d is refused: %s\n", static_cast<int>(k), e.what());
      continue;
    }
    expect_same(str_cat("random graph ", k), g, sizes, file, inputs, interpreted(), open);
  }
  EXPECT_LE(refused, 4);
  EXPECT_GT(decided.values, decided.all * 6 / 10) << decided.values << " of " << decided.all;
}

}  // namespace
}  // namespace lc
