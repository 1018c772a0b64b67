#include "lightcone/nn/session.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "lightcone/runtime/names.h"
#include "lightcone/runtime/program.h"

namespace lc {

namespace {

std::string word(const Value& v, std::size_t k) {
  if (v.dtype == DType::Bool) return v.i[k] ? "True" : "False";
  if (v.dtype == DType::U64) return std::to_string(static_cast<std::uint64_t>(v.i[k]));
  if (!is_float(v.dtype)) return std::to_string(v.i[k]);
  return str_cat(v.f[k]);
}

void rows(std::span<const std::string> words, std::span<const std::int64_t> shape, std::size_t width,
          std::size_t indent, std::string& out) {
  if (shape.empty()) {
    out.append(width - words[0].size(), ' ') += words[0];
    return;
  }
  const auto n = static_cast<std::size_t>(shape[0]), each = n > 0 ? words.size() / n : 0;
  out += "[";
  for (std::size_t i = 0; i < n; ++i) {
    if (i) out += shape.size() == 1 ? ", " : "," + std::string(shape.size() - 1, '\n') + std::string(indent + 1, ' ');
    rows(words.subspan(i * each, each), shape.subspan(1), width, indent + 1, out);
  }
  out += "]";
}

}  // namespace

struct Session::Impl {
  Graph graph;
  std::optional<Program> program;
  std::optional<Context> context;
  std::map<std::string, std::vector<std::byte>> values;  // values of inputs
  Bindings bindings;
  std::size_t compiled = 0;  // number of nodes that were compiled; later nodes wait for the next compile()
  int inputs = 0;

  std::string output(const Tensor& t) const;
  bool loaded = true;  // false if a parameter was set after it was loaded into the program
  Context& ready() {
    if (!context) throw Error("execute", "compile the session first");
    if (!loaded) begin();
    return *context;
  }
  void begin();
  std::vector<NodeId> parameters() const {
    std::vector<NodeId> all;
    for (NodeId id = 0; id < graph.size(); ++id)
      if (graph[id].op == Op::Input && graph[id].parameter) all.push_back(id);
    return all;
  }
};

Session::Session() : impl_(std::make_unique<Impl>()) {}
Session::~Session() = default;
Graph& Session::graph() { return impl_->graph; }
std::string Session::next_name() { return str_cat("input", impl_->inputs++); }

void Session::put(const Tensor& input, const void* data, std::size_t elements) {
  const Node& n = input.node();
  const Bounds b = product(n.shape).bounds();
  const auto count = static_cast<std::int64_t>(elements);
  if (count < b.lo || count > b.hi)
    throw Error("set", str_cat(elements, " elements for a tensor of ", lc::str(n.shape)));
  const auto* p = static_cast<const std::byte*>(data);
  auto& bytes = impl_->values[n.name];
  bytes.assign(p, p + elements * size_of(n.dtype));
  if (!impl_->context || input.edge().node >= impl_->compiled) return;
  if (n.parameter) impl_->loaded = false;
  else impl_->context->set_bytes(n.name, bytes.data(), bytes.size());
}
void Session::put(const Tensor& input, const ArrayView& array) {
  const Node& n = input.node();
  check_array("set", n, array);
  if (array.bytes.size() % size_of(n.dtype) != 0)
    throw Error("set", str_cat("the array for '", n.name, "' is cut short"));
  put(input, array.bytes.data(), array.bytes.size() / size_of(n.dtype));
}

// Makes a new context with all values for the program. States of a previous context keep their values.
void Session::Impl::begin() {
  for (const NodeId id : parameters())
    if (const auto it = values.find(graph[id].name); it != values.end() && id < compiled)
      program->load(it->first, it->second.data(), it->second.size());
  Context fresh(*program);
  for (const auto& [name, bytes] : values)
    if (!program->is_parameter(name)) fresh.set_bytes(name, bytes.data(), bytes.size());
  for (const auto& [name, value] : bindings) fresh.bind(name, value);
  if (context)
    for (const Assignment& a : program->graph().assignments()) {
      const std::string& state = program->graph()[a.state].name;
      const auto held = context->bytes(state);
      fresh.set_bytes(state, held.data(), held.size());
    }
  context = std::move(fresh);
  loaded = true;
}

Session& Session::load(const std::map<std::string, ArrayView, std::less<>>& tensors, bool strict) {
  std::vector<std::string> missing, unknown;
  std::set<std::string> known;
  for (const NodeId id : impl_->parameters()) {
    const Node& n = impl_->graph[id];
    known.insert(n.name);
    if (!tensors.contains(n.name)) missing.push_back(n.name);
  }
  for (const auto& [name, array] : tensors)
    if (!known.contains(name)) unknown.push_back(name);
  if (!missing.empty()) {
    std::vector<std::string> given;
    for (const auto& [name, array] : tensors) given.push_back(name);
    throw Error("load", missing_among(missing, given));
  }
  if (strict && !unknown.empty())
    throw Error("load", str_cat("no parameter is called ", listed(unknown), "; strict = false ignores them"));
  for (const NodeId id : impl_->parameters()) check_array("load", impl_->graph[id], tensors.at(impl_->graph[id].name));
  for (const NodeId id : impl_->parameters())
    put(Tensor(impl_->graph, {id, View(impl_->graph[id].shape)}), tensors.at(impl_->graph[id].name));
  return *this;
}

std::map<std::string, ArrayView, std::less<>> Session::parameters() const {
  std::map<std::string, ArrayView, std::less<>> all;
  for (const NodeId id : impl_->parameters()) {
    const Node& n = impl_->graph[id];
    const auto it = impl_->values.find(n.name);
    if (it == impl_->values.end())
      throw Error("parameters", str_cat("'", n.name, "' has no value yet: set or load it"));
    ArrayView& view = all[n.name] = {n.dtype, {}, it->second};
    for (const Dim& d : n.shape) view.shape.push_back(d.constant().value_or(0));
  }
  return all;
}

void typed::put(Session& s, const lc::Tensor& input, const ArrayView& array) { s.put(input, array); }
void typed::put(Session& s, const lc::Tensor& input, const void* data, std::size_t elements) {
  s.put(input, data, elements);
}

Session& Session::compile(const Compiler& c) {
  Program program = lc::compile(impl_->graph, c);  // after an Error the previous program is still usable
  impl_->compiled = impl_->graph.size();
  impl_->program = std::move(program);
  impl_->context.reset();
  impl_->begin();
  return *this;
}

Session& Session::bind(std::string_view name, std::int64_t value) {
  std::map<std::string, Bounds> known;
  bool waits = true;
  for (NodeId id = 0; id < impl_->graph.size(); ++id)
    if (impl_->graph[id].op == Op::Input)
      for (const Dim& d : impl_->graph[id].shape) {
        auto names = d.symbols();
        waits = waits && !(id < impl_->compiled && names.contains(std::string(name)));
        known.merge(names);
      }
  const auto it = known.find(std::string(name));
  if (it == known.end()) throw Error("bind", str_cat("no extent of an input is named '", name, "'"));
  if (value < it->second.lo || value > it->second.hi)
    throw Error("bind",
                str_cat(name, " = ", value, " is outside its bounds [", it->second.lo, ", ", it->second.hi, "]"));
  impl_->bindings[std::string(name)] = value;
  if (impl_->context && !waits) impl_->context->bind(name, value);
  return *this;
}

Session& Session::execute() {
  impl_->ready().run();
  return *this;
}

std::string Session::Impl::output(const Tensor& t) const {
  for (const Root& r : graph.roots())
    if (&t.impl() == &graph.impl() && r.edge == t.edge() && std::ranges::count(program->outputs(), r.name))
      return r.name;
  throw Error("data", "the tensor is not a result; retrieve() it before compiling");
}

std::vector<float> Session::data(const Tensor& result) const { return impl_->ready().get(impl_->output(result)); }
std::vector<double> Session::data_f64(const Tensor& result) const {
  return impl_->ready().get_f64(impl_->output(result));
}
std::vector<std::int64_t> Session::data_i64(const Tensor& result) const {
  return impl_->ready().get_i64(impl_->output(result));
}

std::string Session::str(const Tensor& result) const {
  const Value v = impl_->ready().value(impl_->output(result));
  std::vector<std::string> words;
  std::size_t width = 0;
  for (std::size_t k = 0; k < v.size(); ++k) {
    words.push_back(word(v, k));
    width = std::max(width, words.back().size());
  }
  std::string out;
  rows(words, v.shape, width, 0, out);
  return out;
}

const Program& Session::program() const {
  if (!impl_->program) throw Error("program", "compile the session first");
  return *impl_->program;
}

}  // namespace lc
