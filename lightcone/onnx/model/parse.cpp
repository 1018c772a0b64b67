// Parses the messages of onnx.proto.
#include <utility>

#include "lightcone/io/printable.h"
#include "lightcone/onnx/model/parser.h"

namespace lc::onnx {
namespace {

constexpr int kDeepest = 64;  // nesting of graphs and types
constexpr std::int64_t kNewestIr = 14;

Attribute::Type attribute_type(std::int64_t number) {
  const bool known = number > 0 && number <= static_cast<int>(Attribute::Type::TypeProtos);
  return known ? static_cast<Attribute::Type>(number) : Attribute::Type::Undefined;
}

}  // namespace

Parser::Parser(std::shared_ptr<const MappedFile> file, const ReadOptions& o)
    : file_(std::move(file)), budget_(o, file_->path()), options_(o) {
  budget_.parsed(file_->bytes().size());
}

ProtobufFields Parser::fields(std::span<const std::byte> message) const { return {message, "onnx", file_->path()}; }

void Parser::deeper() {
  if (++depth_ > kDeepest)
    throw file_error("onnx", file_->path(), "graphs or types are nested more than ", kDeepest, " deep");
}

std::pair<std::string_view, std::string_view> Parser::entry(std::span<const std::byte> message) const {
  std::pair<std::string_view, std::string_view> r;
  for (auto f = fields(message); f.next();) {
    if (f.field() == 1) r.first = f.text();
    else if (f.field() == 2) r.second = f.text();
    else f.unknown("an entry of metadata");
  }
  return r;
}
void Parser::opset(std::span<const std::byte> message, std::map<std::string_view, std::int64_t>& to) const {
  std::string_view domain;
  std::int64_t version = 0;
  for (auto f = fields(message); f.next();) {
    if (f.field() == 1) domain = f.text();
    else if (f.field() == 2) version = f.integer();
    else f.unknown("an operator set");
  }
  to[domain == "ai.onnx" ? std::string_view() : domain] = version;
}

// ---- types ----------------------------------------------------------------------------------------

std::vector<TypeInfo::Extent> Parser::shape(std::span<const std::byte> message) {
  std::vector<TypeInfo::Extent> r;
  for (auto f = fields(message); f.next();) {
    if (f.field() != 1) f.unknown("a shape");
    budget_.take(sizeof(TypeInfo::Extent));
    TypeInfo::Extent e;
    for (auto d = fields(f.bytes()); d.next();) {
      if (d.field() == 1) e.value = d.integer();
      else if (d.field() == 2) e.parameter = d.text();
      else if (d.field() != 3) d.unknown("an extent");  // 3: its denotation
    }
    if (e.value && *e.value < 0) e.value.reset();  // some exporters write -1 for an unknown extent
    r.push_back(e);
  }
  return r;
}

TypeInfo Parser::type(std::span<const std::byte> message) {
  deeper();
  using Kind = TypeInfo::Kind;
  TypeInfo t;
  const auto tensor = [&](std::span<const std::byte> m, Kind kind) {
    t.kind = kind;
    for (auto f = fields(m); f.next();) {
      if (f.field() == 1) t.element = element_type_of(f.integer());
      else if (f.field() == 2) t.shape = shape(f.bytes());
      else f.unknown("the type of a tensor");
    }
  };
  const auto container = [&](std::span<const std::byte> m, Kind kind) {
    t.kind = kind;
    for (auto f = fields(m); f.next();) {
      if (kind == Kind::Map) f.bytes();
      else if (f.field() == 1) t.of = {type(f.bytes())};
      else f.unknown("the type of a sequence or an optional");
    }
  };
  for (auto f = fields(message); f.next();) {
    switch (f.field()) {
      case 1: tensor(f.bytes(), Kind::Tensor); break;
      case 4: container(f.bytes(), Kind::Sequence); break;
      case 5: t.kind = Kind::Map; break;
      case 6: break;  // its denotation
      case 8: tensor(f.bytes(), Kind::Sparse); break;
      case 9: container(f.bytes(), Kind::Optional); break;
      default: f.unknown("a type");
    }
  }
  --depth_;
  return t;
}

ValueInfo Parser::value_info(std::span<const std::byte> message) {
  ValueInfo v;
  for (auto f = fields(message); f.next();) {
    if (f.field() == 1) v.name = f.text();
    else if (f.field() == 2) v.type = type(f.bytes());
    else if (f.field() != 3 && f.field() != 4) f.unknown("an input or output");  // a comment, metadata
  }
  return v;
}

// ---- graphs ---------------------------------------------------------------------------------------

Attribute Parser::attribute(std::span<const std::byte> message) {
  Attribute a;
  bool typed = false;
  for (auto f = fields(message); f.next();) {
    switch (f.field()) {
      case 1: a.name = f.text(); break;
      case 2: a.f = static_cast<double>(f.f32()); break;
      case 3: a.i = f.integer(); break;
      case 4: a.s = bytes_as_text(f.bytes()); break;
      case 5: a.tensors = {tensor(f.bytes())}; break;
      case 6: a.graphs = {std::make_shared<GraphData>(graph(f.bytes()))}; break;
      case 7: append(f, a.floats); break;
      case 8: append(f, a.ints); break;
      case 9: a.strings.push_back(bytes_as_text(f.bytes())); break;
      case 10: a.tensors.push_back(tensor(f.bytes())); break;
      case 11: a.graphs.push_back(std::make_shared<GraphData>(graph(f.bytes()))); break;
      case 13: break;  // a comment
      case 14: a.type_info = type(f.bytes()); break;
      case 20: a.type = attribute_type(f.integer()), typed = true; break;
      case 21: a.reference = f.text(); break;
      case 15:
      case 22:
      case 23: break;  // sparse tensors and lists of types: refused by the type below
      default: f.unknown("an attribute");
    }
    budget_.take(16);
  }
  budget_.take(sizeof(Attribute));
  if (!typed) throw file_error("onnx", file_->path(), "attribute ", in_quotes(a.name), " has no type");
  return a;
}

NodeData Parser::node(std::span<const std::byte> message) {
  NodeData n;
  for (auto f = fields(message); f.next();) {
    switch (f.field()) {
      case 1: n.inputs.push_back(f.text()); break;
      case 2: n.outputs.push_back(f.text()); break;
      case 3: n.name = f.text(); break;
      case 4: n.op = f.text(); break;
      case 5: n.attributes.push_back(attribute(f.bytes())); break;
      case 6: break;  // a comment
      case 7: n.domain = f.text() == "ai.onnx" ? std::string_view() : f.text(); break;
      case 8: n.overload = f.text(); break;
      case 9: break;   // metadata
      case 10: break;  // how it is divided among devices, which changes no value
      default: f.unknown("a node");
    }
    budget_.take(16);
  }
  budget_.take(sizeof(NodeData));
  return n;
}

GraphData Parser::graph(std::span<const std::byte> message) {
  deeper();
  GraphData g;
  for (auto f = fields(message); f.next();) {
    switch (f.field()) {
      case 1: g.nodes.push_back(node(f.bytes())); break;
      case 2: g.name = f.text(); break;
      case 5: g.initializers.push_back(tensor(f.bytes())); break;
      case 10: break;  // a comment
      case 11: g.inputs.push_back(value_info(f.bytes())); break;
      case 12: g.outputs.push_back(value_info(f.bytes())); break;
      case 13: f.bytes(); break;  // shapes of values, which the importer infers
      case 14: break;             // names of scales and zero points, which QuantizeLinear nodes have as well
      case 15: throw file_error("onnx", file_->path(), "has a sparse initializer, which is not supported");
      case 16: break;  // metadata
      default: f.unknown("a graph");
    }
    budget_.take(sizeof(ValueInfo));
  }
  sort_nodes(g.nodes);
  --depth_;
  return g;
}

Function Parser::function(std::span<const std::byte> message) {
  Function r;
  for (auto f = fields(message); f.next();) {
    switch (f.field()) {
      case 1: r.name = f.text(); break;
      case 4: r.inputs.push_back(f.text()); break;
      case 5: r.outputs.push_back(f.text()); break;
      case 6: f.text(); break;  // names of attributes, which its nodes refer to
      case 7: r.nodes.push_back(node(f.bytes())); break;
      case 8: break;  // a comment
      case 9: opset(f.bytes(), r.opsets); break;
      case 10: r.domain = f.text() == "ai.onnx" ? std::string_view() : f.text(); break;
      case 11: r.defaults.push_back(attribute(f.bytes())); break;
      case 12: r.overload = f.text(); break;
      case 13:
      case 14: break;  // shapes of values, metadata
      default: f.unknown("a function");
    }
    budget_.take(sizeof(ValueInfo));
  }
  sort_nodes(r.nodes);
  return r;
}

Model Parser::model() {
  Model m;
  m.file = file_;
  bool graph_seen = false;
  for (auto f = fields(file_->bytes()); f.next();) {
    switch (f.field()) {
      case 1: m.ir_version = f.integer(); break;
      case 2: m.producer = f.text(); break;
      case 3: m.producer_version = f.text(); break;
      case 4: f.text(); break;     // the model's domain
      case 5: f.integer(); break;  // the model's version
      case 6: f.text(); break;     // a comment
      case 7: m.graph = graph(f.bytes()), graph_seen = true; break;
      case 8: opset(f.bytes(), m.opsets); break;
      case 14: {
        const auto [key, value] = entry(f.bytes());
        budget_.take(2 * (key.size() + value.size()) + 128);
        m.metadata[std::string(key)] = value;
        break;
      }
      case 20: break;  // graphs for training beside the one for inference
      case 25: m.functions.push_back(function(f.bytes())); break;
      case 26: break;  // devices that nodes can be divided among
      default: f.unknown("the model");
    }
  }
  for (std::size_t k = 0; k < m.functions.size(); ++k) {
    const Function& f = m.functions[k];
    m.function_index.try_emplace({f.domain, f.name, f.overload}, k);  // the first of two counts
  }
  if (!graph_seen) throw file_error("onnx", file_->path(), "is no ONNX model: it has no graph");
  if (m.ir_version > kNewestIr)
    throw file_error("onnx", file_->path(), "has IR version ", m.ir_version, "; versions up to ", kNewestIr,
                     " are known");
  if (m.opsets.empty()) throw file_error("onnx", file_->path(), "states no operator set");
  return m;
}

Model parse(std::shared_ptr<const MappedFile> file, const ReadOptions& o) { return Parser(std::move(file), o).model(); }
TensorData parse_tensor(const std::shared_ptr<const MappedFile>& file, const ReadOptions& o) {
  return Parser(file, o).tensor(file->bytes());
}

}  // namespace lc::onnx
