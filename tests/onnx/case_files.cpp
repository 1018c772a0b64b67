#include "case_files.h"

#include <algorithm>
#include <map>

namespace lc::test {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kSmall = 64;  // elements of an input that may stand for sizes

// The inputs of a case that become part of the graph, because sizes may depend on them.
std::map<std::string, ArrayView> small_inputs(const onnx::Model& m, const std::vector<StoredArray>& in,
                                              std::size_t from) {
  std::map<std::string, ArrayView> r;
  for (std::size_t k = from; k < in.size(); ++k) {
    if (!onnx::dtype_of(in[k].data.type) || k >= m.graph.inputs.size()) continue;
    const ArrayView a = in[k].view();
    if (a.bytes.size() / size_of(a.dtype) <= kSmall) r[std::string(m.graph.inputs[k].name)] = a;
  }
  return r;
}

std::vector<StoredArray> arrays(const fs::path& set, const std::string& prefix) {
  std::vector<StoredArray> r;
  for (int k = 0; fs::exists(set / str_cat(prefix, k, ".pb")); ++k)
    r.push_back(stored(set / str_cat(prefix, k, ".pb")));
  return r;
}

OnnxProgram read(const fs::path& model, const onnx::Model& m, const std::vector<StoredArray>& in) {
  OnnxOptions o;
  for (std::size_t k = 0; k < in.size() && k < m.graph.inputs.size(); ++k)
    if (onnx::dtype_of(in[k].data.type)) o.shapes[std::string(m.graph.inputs[k].name)] = in[k].data.shape;
  Error first("case", "");
  for (const std::size_t from : {in.size(), std::size_t{1}, std::size_t{0}}) {
    o.values = small_inputs(m, in, from);
    try {
      return read_onnx(model.string(), o);
    } catch (const Error& e) {
      if (from == in.size()) first = e;
    }
  }
  throw first;
}

std::string run_set(const fs::path& folder, const fs::path& set, const Compiler& compiler) {
  const fs::path model = folder / "model.onnx";
  const onnx::Model m = onnx::parse(MappedFile::open(model.string()));
  const std::vector<StoredArray> in = arrays(set, "input_"), out = arrays(set, "output_");
  const OnnxProgram g = read(model, m, in);
  Program p = compile(g.graph, compiler);
  g.load_weights(p);
  Context c(p);
  for (std::size_t k = 0; k < in.size() && k < m.graph.inputs.size(); ++k) {
    const std::string name(m.graph.inputs[k].name);
    if (std::ranges::find(g.inputs, name, &OnnxProgram::Port::name) != g.inputs.end()) c.set(name, in[k].view());
  }
  c.run();
  // The number of draws is the only state of a model. Other random numbers than the file's are as good.
  const bool is_random = !g.graph.assignments().empty();
  if (g.outputs.size() != out.size()) return str_cat("has ", g.outputs.size(), " outputs, not ", out.size());
  for (std::size_t k = 0; k < out.size(); ++k) {
    const OnnxProgram::Port& port = g.outputs[k];
    ArrayView got{port.dtype, c.shape(port.name), c.bytes(port.name)};
    std::vector<std::byte> kept;
    if (!port.count.empty()) std::tie(got, kept) = first_of(got, port.count_axis, c.get_i64(port.count).at(0));
    if (!port.count.empty()) got.bytes = kept;
    const std::string why = is_random ? difference_of_types(got, out[k].view()) : difference(got, out[k].view());
    if (!why.empty()) return str_cat("output ", port.name, ": ", why);
  }
  return {};
}

}  // namespace

OnnxProgram read_case(const fs::path& folder) {
  const fs::path model = folder / "model.onnx";
  return read(model, onnx::parse(MappedFile::open(model.string())), arrays(folder / "test_data_set_0", "input_"));
}

CaseResult run_case(const fs::path& folder, const Compiler& compiler) {
  int sets = 0;
  try {
    for (; fs::exists(folder / str_cat("test_data_set_", sets)); ++sets)
      if (const auto why = run_set(folder, folder / str_cat("test_data_set_", sets), compiler); !why.empty())
        return {CaseResult::Kind::Wrong, why};
  } catch (const Error& e) {
    const bool refused = e.op() == "read_onnx" || e.op() == "onnx" || e.op() == "case";
    return {refused ? CaseResult::Kind::Refused : CaseResult::Kind::Wrong, e.what()};
  }
  if (sets == 0) return {CaseResult::Kind::Refused, "has no data"};
  return {};
}

}  // namespace lc::test
