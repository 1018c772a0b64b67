#include "lightcone/onnx/write/nodes.h"

#include <algorithm>
#include <map>
#include <set>

#include "lightcone/base/error.h"
#include "lightcone/onnx/model/model.h"

namespace lc::onnx {
namespace {

void prune(OutGraph& g, std::set<std::string>& read) {
  for (const OutPort& o : g.outputs) read.insert(o.name);
  std::vector<OutNode> kept;
  for (; !g.nodes.empty(); g.nodes.pop_back()) {
    OutNode& n = g.nodes.back();
    if (!std::ranges::any_of(n.outputs, [&](const std::string& o) { return read.contains(o); })) continue;
    read.insert(n.inputs.begin(), n.inputs.end());
    for (OutAttribute& a : n.attributes)
      if (auto* inner = std::get_if<std::shared_ptr<OutGraph>>(&a.value)) prune(**inner, read);
    kept.push_back(std::move(n));
  }
  std::ranges::reverse(kept);
  g.nodes = std::move(kept);
}

using Names = std::map<std::string, std::string>;

void rename(OutGraph& g, const Names& names) {
  const auto change = [&](std::string& name) {
    if (const auto it = names.find(name); it != names.end()) name = it->second;
  };
  for (OutNode& n : g.nodes) {
    for (std::string& s : n.inputs) change(s);
    for (std::string& s : n.outputs) change(s);
    for (OutAttribute& a : n.attributes)
      if (auto* inner = std::get_if<std::shared_ptr<OutGraph>>(&a.value)) rename(**inner, names);
  }
  for (OutPort& p : g.outputs) change(p.name);
}

ProtobufWriter type_fields(DType dtype, const std::optional<Shape>& shape) {
  ProtobufWriter tensor, type;
  tensor.integer(1, element_number(dtype));
  if (shape) {
    ProtobufWriter extents;
    for (const Dim& d : *shape) {
      ProtobufWriter extent;
      if (const auto n = d.constant()) extent.integer(1, *n);
      else extent.text(2, d.str());
      extents.message(1, extent);
    }
    tensor.message(2, extents);
  }
  type.message(1, tensor);
  return type;
}

ProtobufWriter port_fields(const OutPort& p) {
  ProtobufWriter w;
  w.text(1, p.name);
  w.message(2, type_fields(p.dtype, p.shape));
  return w;
}

ProtobufWriter attribute_fields(const OutAttribute& a) {
  using Type = Attribute::Type;
  ProtobufWriter w;
  w.text(1, a.name);
  const auto typed = [&](Type t) { w.integer(20, static_cast<int>(t)); };
  if (const auto* i = std::get_if<std::int64_t>(&a.value)) w.integer(3, *i), typed(Type::Int);
  else if (const auto* f = std::get_if<float>(&a.value)) w.f32(2, *f), typed(Type::Float);
  else if (const auto* s = std::get_if<std::string>(&a.value)) w.text(4, *s), typed(Type::String);
  else if (const auto* g = std::get_if<std::shared_ptr<OutGraph>>(&a.value))
    w.message(6, graph_fields(**g)), typed(Type::Graph);
  else {
    for (const std::int64_t n : std::get<std::vector<std::int64_t>>(a.value)) w.integer(8, n);
    typed(Type::Ints);
  }
  return w;
}

ProtobufWriter node_fields(const OutNode& n) {
  ProtobufWriter w;
  for (const std::string& s : n.inputs) w.text(1, s);
  for (const std::string& s : n.outputs) w.text(2, s);
  w.text(3, n.name);
  w.text(4, n.op);
  for (const OutAttribute& a : n.attributes) w.message(5, attribute_fields(a));
  if (!n.comment.empty()) w.text(6, n.comment);
  return w;
}

}  // namespace

std::uint64_t OutTensor::size() const {
  std::uint64_t n = size_of(dtype);
  for (const std::int64_t e : shape) n *= static_cast<std::uint64_t>(e);
  return n;
}

std::int64_t element_number(DType t) { return static_cast<std::int64_t>(element_type_of(t)); }

void name_outputs(OutGraph& g, const std::vector<std::string>& values) {
  std::set<std::string> made;
  for (const OutNode& n : g.nodes) made.insert(n.outputs.begin(), n.outputs.end());
  Names names;
  for (std::size_t k = 0; k < values.size(); ++k)
    if (made.contains(values[k])) names.emplace(values[k], g.outputs[k].name);
  rename(g, names);
  for (std::size_t k = 0; k < values.size(); ++k) {
    const auto it = names.find(values[k]);
    const std::string& now = it == names.end() ? values[k] : it->second;
    if (now == g.outputs[k].name) continue;
    g.nodes.push_back({.op = "Identity", .name = str_cat("Identity_out_", k), .inputs = {now}});
    g.nodes.back().outputs = {g.outputs[k].name};
  }
}

void remove_unread(OutGraph& g) {
  std::set<std::string> read;
  prune(g, read);
  std::erase_if(g.initializers, [&](const OutTensor& t) { return !read.contains(t.name); });
}

ProtobufWriter graph_fields(const OutGraph& g) {
  ProtobufWriter w;
  for (const OutNode& n : g.nodes) w.message(1, node_fields(n));
  w.text(2, g.name);
  for (const OutPort& p : g.inputs) w.message(11, port_fields(p));
  for (const OutPort& p : g.outputs) w.message(12, port_fields(p));
  return w;
}

}  // namespace lc::onnx
