#include "lightcone/models/sentence/sentence_config.h"

#include <algorithm>
#include <filesystem>

#include "lightcone/io/json_internal.h"
#include "lightcone/io/printable.h"
#include "lightcone/models/blocks/activation.h"
#include "lightcone/models/files/config_file.h"
#include "lightcone/runtime/names.h"

namespace lc {
namespace {

namespace fs = std::filesystem;
using io::Json;

constexpr std::string_view kPoolings[] = {"cls", "max", "mean", "mean_sqrt_len", "weightedmean", "lasttoken"};
// The flags of 1_Pooling/config.json, in the order of the enumeration, which is that of the concatenation.
constexpr std::string_view kFlags[] = {"pooling_mode_cls_token",           "pooling_mode_max_tokens",
                                       "pooling_mode_mean_tokens",         "pooling_mode_mean_sqrt_len_tokens",
                                       "pooling_mode_weightedmean_tokens", "pooling_mode_lasttoken"};

bool is_file(const fs::path& p) {
  std::error_code wrong;
  return fs::is_regular_file(p, wrong);
}

// A module of modules.json.
struct Module {
  std::string type, folder;
};

std::vector<Module> modules_of(const std::string& folder, const ReadOptions& o) {
  const std::string file = (fs::path(folder) / "modules.json").string();
  Budget budget(o, file);
  const io::JsonDocument document = io::read_json(file, budget);
  const auto refuse = [&](const auto&... what) { throw file_error("load_model", file, what...); };
  if (!document.root().is(Json::Kind::Array)) refuse("it is not a list of modules");
  std::vector<Module> all;
  for (const auto& [unnamed, m] : document.root()) {
    const std::string_view type = m["type"].text(), path = m["path"].text();
    const fs::path within(path);
    if (type.empty()) refuse("a module has no type");
    if (within.is_absolute() || std::ranges::find(within, "..") != within.end())
      refuse("the path ", in_quotes(path), " of a module leads out of the folder");
    all.push_back({std::string(type.substr(type.rfind('.') + 1)), (fs::path(folder) / within).string()});
  }
  return all;
}

std::vector<Pooling> read_pooling(const std::string& folder, const std::vector<std::string>& ignore,
                                  const ReadOptions& o) {
  const ConfigFile c((fs::path(folder) / "config.json").string(), o, ignore);
  c.neutral({"word_embedding_dimension", "embedding_dimension"});
  if (!c.flag("include_prompt", true))
    c.fail("include_prompt is false, which is not supported: name it among the keys to ignore");
  std::vector<Pooling> all;
  for (std::size_t k = 0; k < std::size(kFlags); ++k)
    if (c.flag(kFlags[k], false)) all.push_back(static_cast<Pooling>(k));
  if (const std::string mode = c.text("pooling_mode"); !mode.empty()) all = {pooling_named(mode)};
  c.require_all_known("a Pooling");
  if (all.empty()) c.fail("no mode of pooling is true");
  return all;
}

// torch's classes of activations, by our names.
std::string activation_of(const ConfigFile& c) {
  const std::string given = c.text("activation_function", "torch.nn.modules.activation.Tanh");
  const std::string name = given.substr(given.rfind('.') + 1);
  for (const auto& [theirs, ours] : {std::pair("Tanh", "tanh"),
                                     {"Identity", "linear"},
                                     {"ReLU", "relu"},
                                     {"GELU", "gelu"},
                                     {"Sigmoid", "sigmoid"},
                                     {"SiLU", "silu"}})
    if (name == theirs) return ours;
  c.fail("activation_function ", in_quotes(given), " is not supported (Tanh, Identity, ReLU, GELU, Sigmoid, SiLU)");
}

SentenceDense read_dense(const std::string& folder, const std::vector<std::string>& ignore, const ReadOptions& o) {
  const ConfigFile c((fs::path(folder) / "config.json").string(), o, ignore);
  SentenceDense d{.folder = folder,
                  .in = c.size("in_features"),
                  .out = c.size("out_features"),
                  .bias = c.flag("bias", true),
                  .activation = activation_of(c)};
  c.require_all_known("a Dense");
  return d;
}

// Older versions called the file by the encoder.
void read_transformer(SentenceConfig& s, const std::vector<std::string>& ignore, const ReadOptions& o) {
  for (const char* name :
       {"sentence_bert_config.json", "sentence_roberta_config.json", "sentence_distilbert_config.json",
        "sentence_camembert_config.json", "sentence_xlm-roberta_config.json"}) {
    const fs::path file = fs::path(s.encoder) / name;
    if (!is_file(file)) continue;
    const ConfigFile c(file.string(), o, ignore);
    s.length = c.size("max_seq_length", 0);
    c.lacks({"do_lower_case"});
    c.require_all_known("a Transformer");
    return;
  }
}

void read_prompts(SentenceConfig& s, const std::string& folder, const std::vector<std::string>& ignore,
                  const ReadOptions& o) {
  const fs::path file = fs::path(folder) / "config_sentence_transformers.json";
  if (!is_file(file)) return;
  const ConfigFile c(file.string(), o, ignore);
  for (const auto& [name, text] : c.map("prompts")) s.prompts[name] = text;
  s.prompt = c.text("default_prompt_name");
  if (!s.prompt.empty() && !s.prompts.contains(s.prompt))
    c.fail("default_prompt_name is ", in_quotes(s.prompt), ", and no prompt has this name");
}

}  // namespace

const std::vector<std::string_view>& pooling_names() {
  static const std::vector<std::string_view> names(std::begin(kPoolings), std::end(kPoolings));
  return names;
}

Pooling pooling_named(std::string_view name) {
  const auto at = std::ranges::find(kPoolings, name);
  if (at == std::end(kPoolings))
    throw Error("load_model", str_cat("there is no pooling ", in_quotes(name), "; the nearest is ",
                                      nearest_name(name, pooling_names())));
  return static_cast<Pooling>(at - std::begin(kPoolings));
}

SentenceConfig SentenceConfig::from(const std::string& folder, const std::vector<std::string>& ignore,
                                    const ReadOptions& o) {
  SentenceConfig s;
  s.encoder = folder;
  if (is_file(fs::path(folder) / "modules.json")) {
    bool pooled = false;
    for (const Module& m : modules_of(folder, o)) {
      if (m.type == "Transformer") s.encoder = m.folder;
      else if (m.type == "Pooling" && !pooled) s.pooling = read_pooling(m.folder, ignore, o), pooled = true;
      else if (m.type == "Dense" && pooled && !s.normalize) s.dense.push_back(read_dense(m.folder, ignore, o));
      else if (m.type == "Normalize") s.normalize = true;
      else
        throw file_error("load_model", folder, "modules.json: a module ", in_quotes(m.type),
                         " at this place is not supported (Transformer, Pooling, Dense, Normalize are, in this order)");
    }
  }
  read_transformer(s, ignore, o);
  read_prompts(s, folder, ignore, o);
  return s;
}

}  // namespace lc
