#include "lightcone/nn/session.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>

#include "lightcone/runtime/program.h"

namespace lc {

namespace {

std::string word(const Value& v, std::size_t k) {
  if (v.dtype == DType::Bool) return v.i[k] ? "True" : "False";
  if (!is_float(v.dtype)) return std::to_string(v.i[k]);
  char text[32];
  std::snprintf(text, sizeof text, "%g", v.f[k]);
  return text;
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
  std::map<std::string, std::vector<std::byte>> values;  // of inputs
  Bindings bindings;
  std::size_t compiled = 0;  // nodes the graph had; what came later waits for the next compile()
  int inputs = 0;

  std::string output(const Tensor& t) const;
  Context& ready() {
    if (!context) throw Error("execute", "compile the session first");
    return *context;
  }
};

Session::Session() : impl_(std::make_unique<Impl>()) {}
Session::~Session() = default;
Graph& Session::graph() { return impl_->graph; }
std::string Session::next_name() { return cat("input", impl_->inputs++); }

void Session::put(const Tensor& input, const void* data, std::size_t elements) {
  const Node& n = input.node();
  const Bounds b = product(n.shape).bounds();
  const auto count = static_cast<std::int64_t>(elements);
  if (count < b.lo || count > b.hi) throw Error("set", cat(elements, " elements for a tensor of ", lc::str(n.shape)));
  const auto* p = static_cast<const std::byte*>(data);
  auto& bytes = impl_->values[n.name];
  bytes.assign(p, p + elements * size_of(n.dtype));
  if (impl_->context && input.edge().node < impl_->compiled)
    impl_->context->set_bytes(n.name, bytes.data(), bytes.size());
}

void typed::put(Session& s, const lc::Tensor& input, const void* data, std::size_t elements) {
  s.put(input, data, elements);
}

Session& Session::compile(const Compiler& c) {
  Program program = lc::compile(impl_->graph, c);  // after an Error what was compiled before can still be used
  Context context(program);
  for (const auto& [name, bytes] : impl_->values) context.set_bytes(name, bytes.data(), bytes.size());
  for (const auto& [name, value] : impl_->bindings) context.bind(name, value);
  impl_->compiled = impl_->graph.size();
  impl_->program = std::move(program);
  impl_->context = std::move(context);
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
  if (it == known.end()) throw Error("bind", cat("no extent of an input is named '", name, "'"));
  if (value < it->second.lo || value > it->second.hi)
    throw Error("bind", cat(name, " = ", value, " is outside its bounds [", it->second.lo, ", ", it->second.hi, "]"));
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
