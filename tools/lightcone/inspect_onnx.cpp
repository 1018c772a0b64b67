// lightcone inspect of an ONNX model: what it takes and gives, what is not supported, and the memory a run needs.
#include <algorithm>
#include <cstdio>

#include <nlohmann/json.hpp>

#include "command.h"
#include "commands.h"
#include "lightcone/base/error.h"
#include "lightcone/io/printable.h"
#include "lightcone/onnx/onnx.h"
#include "lightcone/passes/passes.h"
#include "lightcone/passes/symbols.h"
#include "onnx_options.h"

namespace lc::tool {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostOperators = 12;  // printed at most; --json has all of them

Json model_json(const OnnxDescription& d, const InspectOptions& o) {
  Json j{{"file", o.model}, {"format", "ONNX"}, {"producer", d.producer}};
  for (const auto& [domain, version] : d.opsets) j["opsets"][domain.empty() ? "ai.onnx" : domain] = version;
  j["parameters"] = d.parameters;
  j["bytes"] = d.weight_bytes;
  j["types"] = d.weight_types;
  const auto ports = [](const std::vector<OnnxDescription::Port>& all) {
    Json list = Json::object();
    for (const auto& p : all) list[p.name] = p.type;
    return list;
  };
  j["inputs"] = ports(d.inputs);
  j["outputs"] = ports(d.outputs);
  j["operators"] = d.operators;
  if (!d.metadata.empty()) j["metadata"] = d.metadata;
  if (!d.unsupported.empty()) j["unsupported"] = d.unsupported;
  return j;
}

// Adds the memory plan, or the reason why there is none.
void add_plan(const InspectOptions& o, Json& j) {
  try {
    const OnnxProgram m = read_onnx(o.model, onnx_options(o.sizes));
    const Program p = compile(m.graph, generic() | cpu({.compiler = false}));
    Bindings sizes;
    for (const auto& [name, bounds] : symbols_of(m.graph)) sizes[name] = bounds.lo < 1 ? 1 : bounds.lo;
    const MemoryPlan needs = p.plan(sizes);
    j["needs"] = {{"weights", needs.input_bytes + needs.prepared_bytes},
                  {"working", needs.arena_bytes},
                  {"total", needs.total_bytes()}};
    if (!sizes.empty()) j["needs"]["with"] = sizes;
  } catch (const Error& e) {
    j["not_runnable"] = e.what();
  }
}

void line(std::string& s, const std::string& key, const std::string& value) {
  s += key + std::string(key.size() < 22 ? 22 - key.size() : 0, ' ') + " " + value + "\n";
}

void print_model(const Json& j) {
  std::string s;
  const auto text = [](const Json& v) { return printable(v.is_string() ? v.get<std::string>() : v.dump(), 2000); };
  line(s, "file", text(j["file"]));
  line(s, "format", str_cat("ONNX of ", text(j["producer"])));
  if (j.contains("opsets"))
    for (const auto& [domain, version] : j["opsets"].items()) line(s, "operator set", domain + " " + version.dump());
  line(s, "parameters", str_cat(j["parameters"].dump(), ", ", human_bytes(j["bytes"].get<double>())));
  for (const auto& [type, n] : j["types"].items()) line(s, "  " + type, human_bytes(n.get<double>()));
  for (const auto& [name, type] : j["inputs"].items()) line(s, "input", printable(name, 200) + ": " + text(type));
  for (const auto& [name, type] : j["outputs"].items()) line(s, "output", printable(name, 200) + ": " + text(type));
  std::vector<std::pair<std::int64_t, std::string>> by_number;
  for (const auto& [name, n] : j["operators"].items()) by_number.emplace_back(-n.get<std::int64_t>(), name);
  std::ranges::sort(by_number);
  std::string list;
  for (std::size_t k = 0; k < std::min(by_number.size(), kMostOperators); ++k)
    list += str_cat(k ? ", " : "", by_number[k].second, " ", -by_number[k].first);
  if (by_number.size() > kMostOperators) list += str_cat(" and ", by_number.size() - kMostOperators, " more");
  line(s, "operators", list);
  if (j.contains("needs")) {
    const Json& n = j["needs"];
    std::string with;
    if (n.contains("with"))
      for (const auto& [name, size] : n["with"].items())
        with += str_cat(with.empty() ? ", with " : ", ", name, "=", size.dump());
    line(s, "memory to run",
         str_cat(human_bytes(n["total"].get<double>()), " = weights ", human_bytes(n["weights"].get<double>()),
                 " + working ", human_bytes(n["working"].get<double>()), with));
  }
  if (j.contains("unsupported"))
    for (const auto& what : j["unsupported"]) line(s, "not supported", text(what));
  else if (j.contains("not_runnable")) line(s, "cannot run", for_terminal(j["not_runnable"].get<std::string>()));
  if (j.contains("metadata"))
    for (const auto& [key, value] : j["metadata"].items())
      s += "  " + printable(key, 200) + " = " + printable(value.get<std::string>(), 200) + "\n";
  write_stdout(s);
}

}  // namespace

void inspect_onnx(const InspectOptions& o) {
  const OnnxDescription d = describe_onnx(o.model);
  Json j = model_json(d, o);
  if (d.unsupported.empty()) add_plan(o, j);
  if (o.json) write_stdout(j.dump(2, ' ', true, Json::error_handler_t::replace) + "\n");
  else print_model(j);
}

}  // namespace lc::tool
