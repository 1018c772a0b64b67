#include "lightcone/onnx/read/describe.h"

#include <algorithm>
#include <set>

#include "lightcone/base/error.h"
#include "lightcone/io/printable.h"
#include "lightcone/onnx/onnx.h"
#include "lightcone/onnx/read/attributes.h"
#include "lightcone/onnx/read/importer.h"
#include "lightcone/onnx/read/operators.h"

namespace lc::onnx {
namespace {

constexpr std::size_t kMostNamed = 5;  // nodes in one line

// Visits the nodes of a graph and of the graphs inside it.
template <class F>
void each_node(const std::vector<NodeData>& nodes, const F& f) {
  for (const NodeData& n : nodes) {
    f(n);
    for (const Attribute& a : n.attributes)
      for (const auto& g : a.graphs) each_node(g->nodes, f);
  }
}
template <class F>
void each_node(const Model& m, const F& f) {
  each_node(m.graph.nodes, f);
  for (const Function& function : m.functions) each_node(function.nodes, f);
}

std::string operator_name(const NodeData& n) {
  return str_cat(n.domain.empty() ? "" : printable(n.domain, 100) + ".", printable(n.op, 100));
}

std::string described(const TypeInfo& t) {
  using Kind = TypeInfo::Kind;
  if (t.kind == Kind::Sequence) return str_cat("sequence of ", t.of.empty() ? "?" : described(t.of[0]));
  if (t.kind == Kind::Optional) return str_cat("optional ", t.of.empty() ? "?" : described(t.of[0]));
  if (t.kind != Kind::Tensor) return t.kind == Kind::Map ? "map" : t.kind == Kind::Sparse ? "sparse tensor" : "?";
  std::string s(name(t.element));
  if (!t.shape) return s + " of unknown rank";
  s += " [";
  for (std::size_t k = 0; k < t.shape->size(); ++k) {
    const TypeInfo::Extent& e = (*t.shape)[k];
    s += k ? ", " : "";
    s += e.value ? std::to_string(*e.value) : e.parameter.empty() ? "?" : printable(e.parameter, 100);
  }
  return s + "]";
}

OnnxDescription::Port port(const ValueInfo& v) {
  OnnxDescription::Port p{.name = std::string(v.name), .type = described(v.type)};
  const auto dtype = v.type.kind == TypeInfo::Kind::Tensor ? dtype_of(v.type.element) : std::nullopt;
  p.dtype = dtype.value_or(DType::F32), p.supported = dtype.has_value();
  if (!v.type.shape) return p;
  p.rank = static_cast<int>(v.type.shape->size());
  for (const TypeInfo::Extent& e : *v.type.shape)
    p.extents.push_back(e.value ? std::to_string(*e.value) : std::string(e.parameter));
  return p;
}

// Inputs with these names have a value in the file.
std::set<std::string_view> initializers(const Model& m) {
  std::set<std::string_view> names;
  for (const TensorData& t : m.graph.initializers) names.insert(t.name);
  return names;
}

void count_weights(const Model& m, OnnxDescription& d) {
  const auto count = [&](const TensorData& t) {
    std::int64_t n = 1;
    for (const std::int64_t e : t.shape) n *= e;
    d.parameters += n;
    d.weight_bytes += static_cast<std::int64_t>(t.bytes.size());
    d.weight_types[std::string(name(t.type))] += static_cast<std::int64_t>(t.bytes.size());
  };
  for (const TensorData& t : m.graph.initializers) {
    count(t);
    d.weights.push_back(
        {std::string(t.name), std::string(name(t.type)), t.shape, static_cast<std::int64_t>(t.bytes.size())});
  }
  each_node(m, [&](const NodeData& n) {
    if (n.op == "Constant" && n.domain.empty())
      for (const Attribute& a : n.attributes)
        for (const TensorData& t : a.tensors) count(t);
  });
}

}  // namespace

const Function* function_of(const Model& m, const NodeData& n) {
  const auto f = m.function_index.find({n.domain, n.op, n.overload});
  return f == m.function_index.end() ? nullptr : &m.functions[f->second];
}

std::int64_t count_nodes(const Model& m) {
  std::int64_t n = 0;
  each_node(m, [&](const NodeData&) { ++n; });
  return n;
}

std::string named(const NodeData& n) {
  std::string s = n.name.empty() ? "" : in_quotes(n.name) + " ";
  if (s.empty() && !n.outputs.empty()) s = "that makes " + in_quotes(n.outputs[0]) + " ";
  return str_cat("node ", s, "(", n.domain.empty() ? "" : std::string(n.domain) + ".", printable(n.op, 100), ")");
}

bool is_supported(const Model& m, const NodeData& n) {
  const Operator* row = find_operator(n.domain, n.op);
  return (row && row->rule) || function_of(m, n);
}

std::vector<std::string> unsupported(const Model& m) {
  std::map<std::string, std::vector<std::string>> by_operator;
  each_node(m, [&](const NodeData& n) {
    const Operator* row = find_operator(n.domain, n.op);
    if (is_supported(m, n)) return;
    const std::string why = row ? std::string(row->how) : "it is not known";
    by_operator[str_cat(operator_name(n), ": ", why)].push_back(
        in_quotes(n.name.empty() && !n.outputs.empty() ? n.outputs[0] : n.name));
  });
  std::vector<std::string> lines;
  const auto version = m.opsets.find("");
  if (version != m.opsets.end() && version->second > kNewestOpset)
    lines.push_back(str_cat("operator set ", version->second, " of ai.onnx: sets up to ", kNewestOpset, " are known"));
  for (const auto& [what, where] : by_operator) {
    std::string line = str_cat(what, " (", where.size(), where.size() == 1 ? " node: " : " nodes: ");
    for (std::size_t k = 0; k < std::min(where.size(), kMostNamed); ++k) line += (k ? ", " : "") + where[k];
    lines.push_back(line + (where.size() > kMostNamed ? ", ...)" : ")"));
  }
  const auto given = initializers(m);
  for (const ValueInfo& v : m.graph.inputs) {
    if (given.contains(v.name)) continue;
    if (v.type.kind != TypeInfo::Kind::Tensor || !dtype_of(v.type.element))
      lines.push_back(
          str_cat("input ", in_quotes(v.name), " is a ", described(v.type), ": inputs are tensors of numbers"));
  }
  return lines;
}

namespace {

// Attributes that no version of an operator has, wherever the node is: behind an unsupported one, in a branch that is
// not taken, in a function that nobody calls. So are the types that `to` names.
void add_attributes(const Model& m, std::vector<std::string>& lines) {
  each_node(m, [&](const NodeData& n) {
    if (!is_supported(m, n) || function_of(m, n)) return;
    const auto known = attributes_of(n.domain, n.op);
    for (const Attribute& a : n.attributes) {
      if (known && !has_word(*known, a.name))
        lines.push_back(str_cat(named(n), ": its attribute ", in_quotes(a.name), " is not known"));
      else if (a.name == "to" && a.type == Attribute::Type::Int && !dtype_of(element_type_of(a.i)))
        lines.push_back(str_cat(named(n), ": its attribute ", in_quotes(a.name), " is the type ",
                                name(element_type_of(a.i)), " (", a.i, "), which is not supported"));
    }
  });
}

}  // namespace

std::vector<std::string> survey(const Model& m, const OnnxOptions& o) {
  std::vector<std::string> lines = unsupported(m);
  std::vector<std::string> found = Importer(m, o).survey();
  if (lines.empty() && found.empty()) return {};  // what no run reads, such as a branch, does not matter
  add_attributes(m, lines);
  const std::set<std::string> known(lines.begin(), lines.end());
  for (std::string& line : found)
    if (!known.contains(line)) lines.push_back(std::move(line));
  return lines;
}

}  // namespace lc::onnx

namespace lc {

std::vector<std::string> survey_onnx(const std::string& path, const OnnxOptions& o) {
  return onnx::survey(onnx::parse(o.read.map ? MappedFile::open(path) : MappedFile::read(path), o.read), o);
}

OnnxDescription describe_onnx(const std::string& path, const ReadOptions& o) {
  using namespace onnx;
  const Model m = parse(o.map ? MappedFile::open(path) : MappedFile::read(path), o);
  OnnxDescription d;
  const auto given = initializers(m);
  for (const ValueInfo& v : m.graph.inputs)
    if (!given.contains(v.name)) d.inputs.push_back(port(v));
  for (const ValueInfo& v : m.graph.outputs) d.outputs.push_back(port(v));
  for (const auto& [domain, version] : m.opsets) d.opsets[std::string(domain)] = version;
  each_node(m, [&](const NodeData& n) { ++d.operators[operator_name(n)]; });
  d.unsupported = unsupported(m);
  count_weights(m, d);
  d.producer = str_cat(m.producer, m.producer_version.empty() ? "" : " ", m.producer_version);
  d.metadata = m.metadata;
  return d;
}

std::vector<std::string> survey_onnx(std::span<const std::byte> bytes, const OnnxOptions& o) {
  return onnx::survey(onnx::parse(MappedFile::view("model", bytes), o.read), o);
}

std::vector<OnnxProgram::Weight> read_onnx_weights(const std::string& path, const ReadOptions& o) {
  const onnx::Model m = onnx::parse(o.map ? MappedFile::open(path) : MappedFile::read(path), o);
  std::vector<OnnxProgram::Weight> all;
  for (const onnx::TensorData& t : m.graph.initializers) {
    const auto dtype = onnx::dtype_of(t.type);
    if (!dtype)
      throw file_error("read_onnx", path, "initializer ", in_quotes(t.name), " has elements of type ",
                       onnx::name(t.type), ", which are not supported");
    all.push_back({std::string(t.name), {*dtype, t.shape, t.bytes}, t.owner ? t.owner : m.file});
  }
  return all;
}

}  // namespace lc
