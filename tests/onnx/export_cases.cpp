// Writes graphs as ONNX models, with inputs and the f64 reference's results, for export_check.py:
//
//   onnx_export_cases FOLDER [first random graph] [how many]
//   onnx_export_cases --again MODELS FOLDER [opset]     reads each MODELS/*/model.onnx and writes it again
//
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "../stablehlo/graphs.h"
#include "../stablehlo/npz.h"
#include "case_files.h"
#include "lightcone/models/llama/llama_graph.h"
#include "lightcone/models/vision/vision.h"
#include "lightcone/nn/layers.h"
#include "lightcone/onnx/export.h"
#include "lightcone/onnx/onnx.h"
#include "lightcone/passes/compiler.h"
#include "lightcone/passes/symbols.h"
#include "lightcone/verify/random_graph.h"
#include "onnx_values.h"

namespace {

using namespace lc;
namespace fs = std::filesystem;

// numpy has no bf16 and no f8.
bool numpy_has(DType t) { return t != DType::BF16 && !is_f8(t); }

void add_run(const fs::path& folder, int run, const Graph& g, const Bindings& sizes,
             const std::map<std::string, Value>& inputs) {
  const Results want = interpret(g, inputs, sizes, Rounding::Wide, true);
  test::Npz in, out;
  for (NodeId id = 0; id < g.size(); ++id)
    if (g[id].op == Op::Input && (!g[id].parameter || want.states.contains(g[id].name)))
      in.add(g[id].name, inputs.at(g[id].name));
  for (const auto& [name, n] : sizes) {
    Value v = make_value(DType::I64, {});
    v.i = {n};
    in.add(name, v);
  }
  const auto add = [&](const std::string& name, const Value& v) {
    Value error = make_value(DType::F64, v.shape);
    error.f = v.error.empty() ? std::vector<double>(v.size(), 0.0) : v.error;
    out.add("want " + name, v), out.add("error " + name, error);
  };
  for (const auto& [name, v] : want.outputs) add(inputs.contains(name) ? name + ".out" : name, v);
  for (const auto& [name, v] : want.states) add(name + ".next", v);
  in.save(folder / str_cat("in", run, ".npz"));
  out.save(folder / str_cat("out", run, ".npz"));
}

// Writes a model, and runs of it: with open sizes, two of different sizes.
void write_case(const fs::path& folder, const Graph& g, const Bindings& sizes, OnnxExportOptions o, bool open,
                const std::map<std::string, Value>& inputs) {
  for (NodeId id = 0; id < g.size(); ++id)
    if (g[id].op == Op::Input && !g[id].parameter && !numpy_has(g[id].dtype)) return;
  for (const Root& r : g.roots())
    if (!numpy_has(g[r.edge.node].dtype)) return;
  const test::OnnxInputs values(g, inputs);
  if (!open) o.sizes = sizes;
  fs::create_directories(folder);
  try {
    export_onnx(g, values.parameters, (folder / "model.onnx").string(), o);
  } catch (...) {
    fs::remove_all(folder);
    throw;
  }
  add_run(folder, 0, g, sizes, inputs);
  if (!open || sizes.empty()) return;
  Bindings other = sizes;
  const Symbols bounds = symbols_of(g);
  for (auto& [name, n] : other)
    if (const auto b = bounds.find(name); b != bounds.end()) n += b->second.hi > n ? 1 : -1;
  auto more = fitting_inputs(g, other, 2, false);
  for (NodeId id = 0; id < g.size(); ++id)
    if (g[id].parameter) more[g[id].name] = inputs.at(g[id].name);
  add_run(folder, 1, g, other, more);
}

Graph vision_case(const std::string& name, std::int64_t size) {
  Graph g;
  nn::Model<VisionModel> net(g, vision_model(name, {.num_classes = 10, .width_divisor = 16}));
  net(g.input("pictures", {Dim::symbol("batch", 1, 4), 3, size, size})).retrieve("logits");
  return g;
}

Graph llama_case() {
  LlamaConfig c;
  c.hidden = 32, c.layers = 2, c.intermediate = 48, c.heads = 4, c.kv_heads = 2, c.head_dim = 8;
  c.vocab = 50, c.context = 24;
  return llama_graph(c, {.context = 24, .chunk = 8}, [](Graph& g, const std::string& path, Shape shape) {
    if (path.find("bias") != std::string::npos || path.find("lm_head") != std::string::npos) return nn::Parameter();
    return nn::parameter(g, path, std::move(shape), DType::F32);
  });
}

Graph attention_case() {
  Graph g;
  nn::Model<nn::MultiheadAttention> net(g, nn::MultiheadAttention(16, 4));
  const Tensor x = g.input("x", {2, Dim::symbol("seq", 1, 12), 16});
  net(x).retrieve("y");
  return g;
}

Graph lstm_case() {
  Graph g;
  nn::Model<nn::LSTM<>> net(g, nn::LSTM<>(5, 6, {.num_layers = 2, .batch_first = true, .bidirectional = true}));
  const auto r = net(g.input("x", {Dim::symbol("batch", 1, 6), 7, 5}));
  r.output.retrieve("y"), r.h_n.retrieve("h"), r.c_n.retrieve("c");
  return g;
}

Graph norms_case() {
  Graph g;
  const Tensor x = g.input("x", {Dim::symbol("batch", 1, 6), 8, 5, 4}), w = g.parameter("w", {8}),
               b = g.parameter("b", {8}), v = g.parameter("v", {4});
  g.output("group", group_norm(x, 2, w, b));
  g.output("layer", layer_norm(x, {4}, v));
  g.output("rms", rms_norm(x, {4}, v));
  g.output("attention", scaled_dot_product_attention(x, x * 2, x, AttentionOptions{.is_causal = true}));
  return g;
}

Graph quantised_case() {
  Graph g;
  const nn::Parameter table = nn::parameter(g, "table", {12, 64}, DType::U8, QuantFormat::Q8_0),
                      w = nn::parameter(g, "w", {9, 64}, DType::U8, QuantFormat::Q4_0);
  const Tensor ids = g.input("ids", {Dim::symbol("n", 1, 8)}, DType::I64);
  g.output("y", nn::linear(table.rows(ids), w));
  return g;
}

struct Model {
  std::string name;
  Graph graph;
  Bindings sizes = {};
};

std::vector<Model> models() {
  std::vector<Model> all;
  all.push_back({"resnet18", vision_case("resnet18", 32), {{"batch", 2}}});
  all.push_back({"vgg11", vision_case("vgg11", 32), {{"batch", 2}}});
  all.push_back({"llama", llama_case(), {{"seq", 5}, {"past", 3}}});
  all.push_back({"multihead_attention", attention_case(), {{"seq", 6}}});
  all.push_back({"lstm", lstm_case(), {{"batch", 3}}});
  all.push_back({"norms", norms_case(), {{"batch", 3}}});
  all.push_back({"quantised", quantised_case(), {{"n", 5}}});
  return all;
}

std::uint64_t number(const char* text) { return std::strtoull(text, nullptr, 10); }

int write_cases(const fs::path& folder, std::uint64_t first, std::uint64_t many) {
  int refused = 0, unexpected = 0;
  const auto attempt = [&](const std::string& name, const auto& write) {
    try {
      write();
    } catch (const Error& e) {
      std::cout << "refused " << name << ": " << e.what() << '\n';
      ++refused;
      if (e.problem().find("need opset") == std::string::npos && e.problem().find("needs opset") == std::string::npos)
        ++unexpected;
    }
  };
  const auto all_ways = [&](const std::string& name, const Graph& g, const Bindings& sizes) {
    const auto inputs = fitting_inputs(g, sizes, 1, false);
    for (const int opset : {18, 21, 24, 26})
      for (const bool open : {false, true})
        if (!open || !sizes.empty())
          attempt(name, [&] {
            write_case(folder / str_cat(name, open ? "_open" : "", "_opset", opset), g, sizes, {.opset = opset}, open,
                       inputs);
          });
  };
  for (const test::Named& n : test::named_graphs()) all_ways(n.name, n.graph, n.sizes);
  for (const Model& m : models()) all_ways(m.name, m.graph, m.sizes);
  for (std::uint64_t k = first; k < first + many; ++k) {
    const Graph g = random_graph(k, {.nodes = 4 + static_cast<int>(k % 14)});
    const Bindings sizes = random_bindings(g, k);
    // onnxruntime's ReduceMax leaves NaN out.
    const bool has_maxima = any_node(g, [](const Node& n) { return n.op == Op::MaxReduce; });
    const auto inputs = random_inputs(g, sizes, k, k % 3 == 0 && !has_maxima);
    attempt(str_cat("random", k),
            [&] { write_case(folder / str_cat("random", k), g, sizes, {.opset = 26}, k % 2 == 1, inputs); });
  }
  std::printf("%d are refused\n", refused);
  return unexpected > 0;
}

int write_again(const fs::path& models, const fs::path& folder, int opset) {
  int written = 0, unread = 0;
  for (const auto& entry : fs::directory_iterator(models)) {
    const fs::path from = entry.path() / "model.onnx", to = folder / entry.path().filename();
    if (!fs::exists(from)) continue;
    OnnxProgram m;
    try {
      m = test::read_case(entry.path());
    } catch (const Error&) {
      ++unread;
      continue;
    }
    try {
      fs::create_directories(to);
      export_onnx(m.graph, m.values(), (to / "model.onnx").string(), {.opset = opset});
      std::ofstream counts(to / "counts.txt");  // outputs of which only a number of elements are valid
      for (const auto& out : m.outputs)
        if (!out.count.empty()) counts << out.name << '\t' << out.count << '\t' << out.count_axis << '\n';
      ++written;
    } catch (const Error& e) {
      fs::remove_all(to);
      std::cout << "refused " << entry.path().filename().string() << ": " << e.what() << '\n';
    }
  }
  std::printf("%d are written again, %d are not read\n", written, unread);
  return 0;
}

}  // namespace

int main(int count, char** words) {
  if (count > 3 && std::string(words[1]) == "--again")
    return write_again(words[2], words[3], count > 4 ? std::atoi(words[4]) : 21);
  if (count < 2) {
    std::cerr << "usage: onnx_export_cases FOLDER [first random graph] [how many]\n"
                 "       onnx_export_cases --again MODELS FOLDER [opset]\n";
    return 2;
  }
  return write_cases(words[1], count > 2 ? number(words[2]) : 0, count > 3 ? number(words[3]) : 60);
}
