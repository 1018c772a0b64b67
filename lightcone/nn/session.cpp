#include "lightcone/nn/session.h"

#include <cstdio>
#include <map>
#include <optional>

#include "lightcone/runtime/program.h"

namespace lc {

struct Session::Impl {
  Graph graph;
  std::optional<Program> program;
  std::optional<Context> context;
  std::map<std::string, std::vector<std::byte>> values;  // of inputs
  Bindings bindings;
  int inputs = 0;

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
  const std::int64_t most = product(n.shape).bounds().hi;
  if (static_cast<std::int64_t>(elements) > most) throw Error("set", cat(elements, " elements do not fit ", lc::str(n.shape)));
  const auto* p = static_cast<const std::byte*>(data);
  auto& bytes = impl_->values[n.name];
  bytes.assign(p, p + elements * size_of(n.dtype));
  if (impl_->context) impl_->context->set_bytes(n.name, bytes.data(), bytes.size());
}

Session& Session::compile(const Compiler& c) {
  impl_->context.reset();
  impl_->program = lc::compile(impl_->graph, c);
  impl_->context.emplace(*impl_->program);
  for (const std::string& name : impl_->program->inputs())
    if (const auto it = impl_->values.find(name); it != impl_->values.end()) impl_->context->set_bytes(name, it->second.data(), it->second.size());
  for (const auto& [name, value] : impl_->bindings) impl_->context->bind(name, value);
  return *this;
}

Session& Session::bind(std::string_view name, std::int64_t value) {
  impl_->bindings[std::string(name)] = value;
  if (impl_->context) impl_->context->bind(name, value);
  return *this;
}

Session& Session::execute() {
  impl_->ready().run();
  return *this;
}

std::vector<float> Session::data(const Tensor& result) const { return impl_->ready().get(result); }

std::string Session::str(const Tensor& result) const {
  const std::vector<float> v = data(result);
  const auto shape = numbers(result.shape(), impl_->bindings);
  return format(v, shape);
}

const Program& Session::program() const {
  if (!impl_->program) throw Error("program", "compile the session first");
  return *impl_->program;
}

namespace {

void rows(std::span<const float> v, std::span<const std::int64_t> shape, std::size_t indent, std::string& out) {
  if (shape.empty()) {
    char text[32];
    std::snprintf(text, sizeof text, "%g", static_cast<double>(v[0]));
    out += text;
    return;
  }
  out += "[";
  const std::size_t each = shape[0] > 0 ? v.size() / static_cast<std::size_t>(shape[0]) : 0;
  for (std::int64_t i = 0; i < shape[0]; ++i) {
    if (i) out += shape.size() == 1 ? ", " : ",\n" + std::string(indent + 1, ' ');
    rows(v.subspan(static_cast<std::size_t>(i) * each, each), shape.subspan(1), indent + 1, out);
  }
  out += "]";
}

}  // namespace

std::string format(std::span<const float> values, std::span<const std::int64_t> shape) {
  std::string s;
  rows(values, shape, 0, s);
  return s;
}

}  // namespace lc
