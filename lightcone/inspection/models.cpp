// Models whose graph is in the file: ONNX and StableHLO.
#include <charconv>

#include "lightcone/base/error.h"
#include "lightcone/inspection/parts.h"
#include "lightcone/io/mapped_file.h"
#include "lightcone/onnx/onnx.h"
#include "lightcone/stablehlo/read.h"

namespace lc::inspection {
namespace {

// The extents that a text such as "float [batch, 3]" states as numbers, with the values given for names.
std::optional<std::vector<std::int64_t>> extents_of(const OnnxDescription::Port& p, const InspectOptions& o) {
  if (p.rank < 0) return std::nullopt;
  std::vector<std::int64_t> shape;
  for (const std::string& e : p.extents) {
    std::int64_t n = -1;
    const auto [end, error] = std::from_chars(e.data(), e.data() + e.size(), n);
    if (e.empty() || error != std::errc() || end != e.data() + e.size()) {
      const auto given = o.extents.find(e);
      n = given == o.extents.end() ? -1 : given->second;
    }
    shape.push_back(n);
  }
  return shape;
}

}  // namespace

namespace {

// True if what the survey found is that open extents have no numbers: with some, nothing is found.
bool needs_numbers(const FileDescription& d, OnnxOptions options) {
  constexpr std::int64_t kSome = 64;
  for (const FileDescription::Port& p : d.inputs) {
    if (!p.shape) continue;
    std::vector<std::int64_t> shape = *p.shape;
    for (std::int64_t& e : shape) e = e < 0 ? kSome : e;
    options.shapes[p.name] = std::move(shape);
  }
  try {
    return survey_onnx(d.path, options).empty();
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

void describe_onnx_file(FileDescription& d, const InspectOptions& o) {
  OnnxDescription m = describe_onnx(d.path, o.read);
  const auto ports = [&](const std::vector<OnnxDescription::Port>& all, std::vector<FileDescription::Port>& to) {
    for (const auto& p : all)
      to.push_back({p.name, p.type, p.supported ? std::optional(p.dtype) : std::nullopt, extents_of(p, o)});
  };
  ports(m.inputs, d.inputs), ports(m.outputs, d.outputs);
  d.producer = std::move(m.producer), d.opsets = std::move(m.opsets), d.operators = std::move(m.operators);
  d.metadata = std::move(m.metadata);
  d.parameters = m.parameters, d.bytes = m.weight_bytes, d.types = std::move(m.weight_types);
  for (auto& w : m.weights) d.tensors.push_back({std::move(w.name), std::move(w.type), std::move(w.shape), w.bytes});
  OnnxOptions options;
  options.extents = o.extents, options.shapes = o.shapes, options.read = o.read;
  d.unsupported = o.plan ? survey_onnx(d.path, options) : std::move(m.unsupported);
  if (o.plan && !d.unsupported.empty() && !o.values.empty()) {
    options.values = o.values;
    d.unsupported = survey_onnx(d.path, options);
  }
  if (!o.plan) return;
  if (!d.unsupported.empty()) {
    if (!needs_numbers(d, options)) return;
    d.not_runnable = "open extents need numbers (--size, InspectOptions::extents): " + d.unsupported[0];
    d.unsupported.clear();
    return;
  }
  try {
    d.needs = needs_of(read_onnx(d.path, options).graph);
  } catch (const Error& e) {
    d.not_runnable = e.what();
  }
}

namespace {

FileDescription::Port port(const std::string& name, const stablehlo::Type& t) {
  FileDescription::Port p{name, str(t)};
  if (t.is_tensor) p.dtype = stablehlo::dtype_of(t.element), p.shape = t.shape;
  return p;
}

// Constants of a module are what it has of weights.
void add_constants(const stablehlo::Block& b, FileDescription& d) {
  for (const stablehlo::Operation& op : b.operations) {
    if (const auto* value = op.find("value"); value && op.name == "stablehlo.constant" && !value->splat) {
      std::int64_t n = 1;
      for (const std::int64_t e : value->type.shape) n *= e;
      const auto bytes = static_cast<std::int64_t>(value->data.size());
      d.parameters += n, d.bytes += bytes, d.types[value->type.element] += bytes;
    }
    for (const stablehlo::Block& inner : op.regions) add_constants(inner, d);
  }
}

// Shapes of arguments with open extents: "x_1" is that of axis 1 of argument x, and one without a number is 1.
Bindings give_shapes(const FileDescription& d, const InspectOptions& o, StableHloOptions& to) {
  Bindings sizes;
  for (std::size_t k = 0; k < d.inputs.size(); ++k) {
    if (!d.inputs[k].shape) continue;
    std::vector<std::int64_t> shape = *d.inputs[k].shape;
    bool open = false;
    for (std::size_t a = 0; a < shape.size(); ++a) {
      if (shape[a] >= 0) continue;
      const std::string name = str_cat(d.inputs[k].name, "_", a);
      const auto n = o.extents.find(name);
      open = true;
      shape[a] = n == o.extents.end() ? 1 : n->second;
      sizes[name] = shape[a];
    }
    if (open) to.shapes[static_cast<int>(k)] = std::move(shape);
  }
  return sizes;
}

}  // namespace

void describe_stablehlo_file(FileDescription& d, const InspectOptions& o) {
  const auto file = o.read.map ? MappedFile::open(d.path) : MappedFile::read(d.path);
  const auto bytes = file->bytes();
  const stablehlo::Module m = stablehlo::parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  for (const auto& [op, count] : stablehlo::instructions(m).by_name) d.operators[op] = count.total;
  for (const stablehlo::Function& f : m.functions) add_constants(f.body, d);
  StableHloOptions options;
  const stablehlo::Function* main = m.function(options.function);
  if (main) {
    for (std::size_t k = 0; k < main->body.arguments.size(); ++k) {
      const stablehlo::Value& v = m.values[static_cast<std::size_t>(main->body.arguments[k])];
      d.inputs.push_back(port(v.name.empty() ? str_cat("arg", k) : v.name, v.type));
    }
    for (std::size_t k = 0; k < main->results.size(); ++k)
      d.outputs.push_back(port(str_cat("out", k), main->results[k]));
  }
  if (!o.plan) return;
  const Bindings sizes = give_shapes(d, o, options);
  try {
    d.unsupported = survey_stablehlo(m, options);
    if (!d.unsupported.empty()) return;
    d.needs = needs_of(read_stablehlo(m, options).graph);
    d.needs->sizes = sizes;
  } catch (const Error& e) {
    d.not_runnable = e.what();
  }
}

}  // namespace lc::inspection
