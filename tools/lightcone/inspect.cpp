// lightcone inspect: the contents of a checkpoint, and what running it will need, before it runs.
#include <cstdio>
#include <map>

#include <nlohmann/json.hpp>

#include "command.h"
#include "commands.h"
#include "lightcone/base/error.h"
#include "lightcone/io/checkpoints/gguf.h"
#include "lightcone/io/printable.h"
#include "lightcone/models/llama/llama.h"
#include "onnx_options.h"

namespace lc::tool {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kLongest = 1000;    // bytes of one value that are shown
constexpr std::size_t kMostValues = 200;  // metadata entries that are printed; --json has all of them

Json describe(const Weights& w, const InspectOptions& o) {
  Json j{{"file", w.path()}, {"format", w.format()}, {"tensors", w.tensors().size()}, {"bytes", w.bytes()}};
  std::int64_t parameters = 0;
  std::map<std::string, std::size_t> types;
  for (const auto& [name, t] : w.tensors()) parameters += t.elements(), types[t.type] += t.bytes.size();
  j["parameters"] = parameters;
  j["types"] = Json::object();
  std::map<std::string, Json> metadata, list;
  for (const auto& [type, bytes] : types) j["types"][type] = bytes;
  if (w.gguf())
    for (const auto& [key, value] : w.gguf()->metadata) metadata[key] = str(value);
  for (const auto& [key, value] : w.metadata()) metadata[key] = printable(value, kLongest);
  if (!metadata.empty()) j["metadata"] = metadata;
  if (o.tensors)
    for (const auto& [name, t] : w.tensors())
      list[name] = {{"type", t.type}, {"shape", t.shape}, {"bytes", t.bytes.size()}};
  if (!list.empty()) j["list"] = list;
  return j;
}

// Adds figures of a model of the Llama family, or the reason why it is not one.
void describe_model(const Weights& w, const InspectOptions& o, Json& j) {
  try {
    const Llama m = Llama::load(w, {.context = o.context, .kv_cache = o.kv_cache, .load_weights = false});
    const LlamaConfig& c = m.config();
    j["model"] = {{"layers", c.layers},
                  {"hidden", c.hidden},
                  {"heads", c.heads},
                  {"kv_heads", c.kv_heads},
                  {"head_dim", c.head_dim},
                  {"intermediate", c.intermediate},
                  {"vocab", c.vocab},
                  {"trained_context", c.context},
                  {"window", c.window},
                  {"rope_theta", c.rope_theta},
                  {"tokenizer", m.has_tokenizer()},
                  {"chat_template", !m.chat_template().text.empty()}};
    const MemoryPlan& p = m.program().plan();
    j["needs"] = {{"weights", p.input_bytes + p.prepared_bytes},  // packed, if they are packed in memory
                  {"unpacked_at_load", m.converted_bytes()},
                  {"kv_cache", p.state_bytes},
                  {"kv_cache_type", name(o.kv_cache)},
                  {"working", p.arena_bytes},
                  {"total", p.total_bytes()},
                  {"context", m.shape().context}};
  } catch (const Error& e) {
    j["not_runnable"] = e.what();
  }
}

void print(const Json& j) {
  std::string s;
  const auto line = [&](const std::string& key, const std::string& value) {
    char text[64];
    std::snprintf(text, sizeof text, "%-22s ", key.c_str());
    s += text + value + "\n";
  };
  const auto bytes = [&](const Json& n) { return human_bytes(n.get<double>()); };
  const auto plain = [](const Json& v) { return v.is_string() ? printable(v.get<std::string>(), kLongest) : v.dump(); };
  std::size_t shown = 0;
  line("file", plain(j["file"]));
  line("format", j["format"]);
  line("parameters", str_cat(j["parameters"].get<std::int64_t>(), " in ", j["tensors"].get<std::size_t>(), " tensors, ",
                             bytes(j["bytes"])));
  for (const auto& [type, n] : j["types"].items()) line("  " + type, bytes(n));
  if (j.contains("model"))
    for (const auto& [key, v] : j["model"].items()) line(key, plain(v));
  if (j.contains("needs")) {
    const Json& n = j["needs"];
    line("memory to run",
         str_cat(bytes(n["total"]), " = weights ", bytes(n["weights"]), " + KV cache ", bytes(n["kv_cache"]), " (",
                 n["context"].dump(), " positions, ", plain(n["kv_cache_type"]), ") + working ", bytes(n["working"])));
    if (n["unpacked_at_load"].get<double>() > 0)
      line("", str_cat(bytes(n["unpacked_at_load"]), " of the weights are unpacked to f32 at load"));
  }
  if (j.contains("not_runnable")) line("cannot run", plain(j["not_runnable"]));
  if (j.contains("metadata"))
    for (const auto& [key, v] : j["metadata"].items()) {
      if (shown++ == kMostValues) {
        s += str_cat("  ... and ", j["metadata"].size() - kMostValues, " more (--json has them all)\n");
        break;
      }
      s += "  " + printable(key, 200) + " = " + plain(v) + "\n";
    }
  if (j.contains("list"))
    for (const auto& [name, t] : j["list"].items())
      s += "  " + printable(name, 200) + " " + plain(t["type"]) + " " + t["shape"].dump() + "\n";
  write_stdout(s);
}

}  // namespace

void inspect(const InspectOptions& o) {
  if (is_onnx(o.model)) return inspect_onnx(o);
  const Weights w = open_model(o.model);
  Json j = describe(w, o);
  describe_model(w, o, j);
  // characters beyond ASCII are escaped, so a script reads the same text, and a terminal obeys none of it
  if (o.json) write_stdout(j.dump(2, ' ', true, Json::error_handler_t::replace) + "\n");
  else print(j);
}

}  // namespace lc::tool
