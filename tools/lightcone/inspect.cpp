// lightcone inspect: what a file is and holds, and what running it will need, before it runs.
#include <algorithm>
#include <cstdio>
#include <map>

#include <nlohmann/json.hpp>

#include "command.h"
#include "commands.h"
#include "lightcone/base/error.h"
#include "lightcone/inspection/inspect.h"
#include "lightcone/io/printable.h"
#include "onnx_options.h"
#include "run/inputs.h"

namespace lc::tool {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kLongest = 1000;      // bytes of one value that are shown
constexpr std::size_t kMostValues = 200;    // metadata entries that are printed; --json has all of them
constexpr std::size_t kMostOperators = 12;  // printed at most; --json has all of them

Json language_model(const FileDescription::LanguageModel& m) {
  const LlamaConfig& c = m.config;
  return {{"layers", c.layers},         {"hidden", c.hidden},           {"heads", c.heads},
          {"kv_heads", c.kv_heads},     {"head_dim", c.head_dim},       {"intermediate", c.intermediate},
          {"vocab", c.vocab},           {"trained_context", c.context}, {"window", c.window},
          {"rope_theta", c.rope_theta}, {"tokenizer", m.tokenizer},     {"chat_template", m.chat_template}};
}

Json needs(const FileDescription& d, const InspectCommand& o) {
  const FileDescription::Needs& n = *d.needs;
  Json j{{"weights", n.weights}};
  if (d.language_model)
    j.update({{"unpacked_at_load", d.language_model->unpacked_at_load},
              {"kv_cache", n.states},
              {"kv_cache_type", name(o.kv_cache)}});
  else if (n.states) j["states"] = n.states;
  j.update({{"working", n.working}, {"total", n.total()}});
  if (d.language_model) j["context"] = d.language_model->context;
  if (!n.sizes.empty()) j["with"] = n.sizes;
  return j;
}

Json ports(const std::vector<FileDescription::Port>& all) {
  Json list = Json::object();
  for (const auto& p : all) list[p.name] = p.type;
  return list;
}

Json described(const FileDescription& d, const InspectCommand& o) {
  Json j{{"file", d.path}, {"format", name(d.format)}};
  if (!d.producer.empty()) j["producer"] = d.producer;
  for (const auto& [domain, version] : d.opsets) j["opsets"][domain.empty() ? "ai.onnx" : domain] = version;
  j.update({{"tensors", d.tensors.size()}, {"bytes", d.bytes}, {"parameters", d.parameters}});
  j["types"] = Json::object();
  for (const auto& [type, bytes] : d.types) j["types"][type] = bytes;
  if (!d.architecture.empty()) j["architecture"] = d.architecture;
  if (!d.inputs.empty()) j["inputs"] = ports(d.inputs);
  if (!d.outputs.empty()) j["outputs"] = ports(d.outputs);
  if (!d.operators.empty()) j["operators"] = d.operators;
  if (!d.metadata.empty()) j["metadata"] = d.metadata;
  if (o.tensors)
    for (const auto& t : d.tensors) j["list"][t.name] = {{"type", t.type}, {"shape", t.shape}, {"bytes", t.bytes}};
  if (d.language_model) j["model"] = language_model(*d.language_model);
  if (d.needs) j["needs"] = needs(d, o);
  if (!d.unsupported.empty()) j["unsupported"] = d.unsupported;
  if (!d.not_runnable.empty()) j["not_runnable"] = d.not_runnable;
  return j;
}

// The lines that people read, from the same document that scripts get.
class Page {
 public:
  // `hint`: inputs were not given, and may decide what is supported.
  Page(const Json& j, bool hint) : j_(j), hint_(hint) {}
  std::string text();

 private:
  void line(const std::string& key, const std::string& value) {
    s_ += key + std::string(key.size() < 22 ? 22 - key.size() : 0, ' ') + " " + value + "\n";
  }
  static std::string bytes(const Json& n) { return human_bytes(n.get<double>()); }
  static std::string plain(const Json& v) {
    return printable(v.is_string() ? v.get<std::string>() : v.dump(), kLongest);
  }
  void head();
  void graph();
  void memory();
  void lists();
  const Json& j_;
  bool hint_;
  std::string s_;
};

void Page::head() {
  line("file", plain(j_["file"]));
  line("format", plain(j_["format"]) + (j_.contains("producer") ? " of " + plain(j_["producer"]) : ""));
  if (j_.contains("opsets"))
    for (const auto& [domain, version] : j_["opsets"].items())
      line("operator set", printable(domain, 200) + " " + version.dump());
  const bool alone = j_["tensors"] == 0 && j_["parameters"] != 0;  // constants of a module have no names
  line("parameters",
       str_cat(j_["parameters"].get<std::int64_t>(),
               alone ? ", " : str_cat(" in ", j_["tensors"].get<std::size_t>(), " tensors, "), bytes(j_["bytes"])));
  for (const auto& [type, n] : j_["types"].items()) line("  " + printable(type, 100), bytes(n));
}

void Page::graph() {
  if (j_.contains("architecture")) line("architecture", plain(j_["architecture"]));
  for (const char* which : {"input", "output"})
    if (const std::string key = str_cat(which, "s"); j_.contains(key))
      for (const auto& [name, type] : j_[key].items()) line(which, printable(name, 200) + ": " + plain(type));
  if (!j_.contains("operators")) return;
  std::vector<std::pair<std::int64_t, std::string>> by_number;
  for (const auto& [name, n] : j_["operators"].items()) by_number.emplace_back(-n.get<std::int64_t>(), name);
  std::ranges::sort(by_number);
  std::string list;
  for (std::size_t k = 0; k < std::min(by_number.size(), kMostOperators); ++k)
    list += str_cat(k ? ", " : "", printable(by_number[k].second, 100), " ", -by_number[k].first);
  if (by_number.size() > kMostOperators) list += str_cat(" and ", by_number.size() - kMostOperators, " more");
  line("operators", list);
}

void Page::memory() {
  if (j_.contains("model"))
    for (const auto& [key, v] : j_["model"].items()) line(key, plain(v));
  if (j_.contains("needs")) {
    const Json& n = j_["needs"];
    std::string parts = str_cat(bytes(n["total"]), " = weights ", bytes(n["weights"]));
    if (n.contains("kv_cache"))
      parts += str_cat(" + KV cache ", bytes(n["kv_cache"]), " (", n["context"].dump(), " positions, ",
                       plain(n["kv_cache_type"]), ")");
    if (n.contains("states")) parts += str_cat(" + states ", bytes(n["states"]));
    parts += str_cat(" + working ", bytes(n["working"]));
    std::string with;
    if (n.contains("with"))
      for (const auto& [name, size] : n["with"].items())
        with += str_cat(with.empty() ? ", with " : ", ", printable(name, 200), "=", size.dump());
    line("memory to run", parts + with);
    if (n.contains("unpacked_at_load") && n["unpacked_at_load"].get<double>() > 0)
      line("", str_cat(bytes(n["unpacked_at_load"]), " of the weights are unpacked to f32 at load"));
  }
  if (j_.contains("unsupported")) {
    for (const auto& what : j_["unsupported"]) line("not supported", plain(what));
    if (hint_) line("", "--size and -i say what inputs are: more may be supported for these");
  }
  if (j_.contains("not_runnable")) line("cannot run", plain(j_["not_runnable"]));
}

void Page::lists() {
  std::size_t shown = 0;
  if (j_.contains("metadata"))
    for (const auto& [key, v] : j_["metadata"].items()) {
      if (shown++ == kMostValues) {
        s_ += str_cat("  ... and ", j_["metadata"].size() - kMostValues, " more (--json has them all)\n");
        break;
      }
      s_ += "  " + printable(key, 200) + " = " + plain(v) + "\n";
    }
  if (j_.contains("list"))
    for (const auto& [name, t] : j_["list"].items())
      s_ += "  " + printable(name, 200) + " " + plain(t["type"]) + " " + t["shape"].dump() + "\n";
}

std::string Page::text() {
  head();
  graph();
  memory();
  lists();
  return s_;
}

// Reads inputs as `lightcone run` does, and gives their shapes and whole numbers to the options.
std::map<std::string, Array> read_given(const InspectCommand& o, lc::InspectOptions& options) {
  if (file_format(o.model) != FileFormat::Onnx) throw Error("--input", "an ONNX model alone can be given its inputs");
  RunOptions as_run;
  as_run.model = o.model, as_run.inputs = o.inputs, as_run.sizes = o.sizes;
  std::map<std::string, Array> arrays = read_inputs(as_run, ModelFile(as_run)).arrays;
  for (const auto& [name, array] : arrays) {
    options.shapes[name] = array.shape;
    if (may_be_sizes(array)) options.values[name] = array;
  }
  return arrays;
}

}  // namespace

void inspect(const InspectCommand& o) {
  lc::InspectOptions options{.context = o.context, .kv_cache = o.kv_cache};
  options.extents = onnx_options(o.sizes).extents;
  std::map<std::string, Array> given;  // owns the values
  if (!o.inputs.empty()) given = read_given(o, options);
  const FileDescription d =
      o.model == "builtin" ? lc::inspect(open_model(o.model), options) : lc::inspect(o.model, options);
  const Json j = described(d, o);
  // characters beyond ASCII are escaped, so a script reads the same text, and a terminal obeys none of it
  if (o.json) write_stdout(j.dump(2, ' ', true, Json::error_handler_t::replace) + "\n");
  else write_stdout(Page(j, d.format == FileFormat::Onnx && o.inputs.empty()).text());
}

}  // namespace lc::tool
