#include "lightcone/models/files/config_file.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "lightcone/io/json_internal.h"
#include "lightcone/io/printable.h"
#include "lightcone/runtime/names.h"

namespace lc {
namespace {

using io::Json;
constexpr double kMost = 1e9;               // the largest size or id
constexpr std::int64_t kClasses = 1 << 16;  // most classes

// What transformers writes into any config.json, and what training, generation and tokenizers read there.
constexpr std::string_view kNeutral[] = {
    "architectures", "model_type", "transformers_version", "dtype", "torch_dtype", "torchscript", "use_bfloat16",
    "id2label", "label2id", "num_labels", "problem_type", "finetuning_task", "task_specific_params", "return_dict",
    "output_hidden_states", "output_attentions", "output_past", "use_cache", "chunk_size_feed_forward", "auto_map",
    "custom_pipelines", "gradient_checkpointing", "initializer_range", "initializer_factor", "tokenizer_class",
    "model_max_length", "prefix", "name_or_path", "language", "sentence_transformers",
    "sbert_ce_default_activation_function",
    // dropout acts in training only
    "hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout", "classifier_dropout_prob", "dropout",
    "attention_dropout", "activation_dropout", "hidden_dropout",
    // these are ids of tokens
    "bos_token_id", "eos_token_id", "sep_token_id", "cls_token_id", "mask_token_id", "unk_token_id", "pad_token_id",
    "decoder_start_token_id",
    // these steer generation
    "bad_words_ids", "begin_suppress_tokens", "diversity_penalty", "do_sample", "early_stopping",
    "encoder_no_repeat_ngram_size", "exponential_decay_length_penalty", "forced_bos_token_id", "forced_eos_token_id",
    "length_penalty", "max_length", "min_length", "no_repeat_ngram_size", "num_beam_groups", "num_beams",
    "num_return_sequences", "remove_invalid_values", "repetition_penalty", "return_dict_in_generate", "suppress_tokens",
    "temperature", "tf_legacy_loss", "top_k", "top_p", "typical_p", "output_scores"};

// True for a value that turns nothing on.
bool says_nothing(const Json& j) {
  switch (j.kind()) {
    case Json::Kind::Missing:
    case Json::Kind::Null: return true;
    case Json::Kind::Bool: return !*j.flag();
    case Json::Kind::String: return j.text().empty();
    case Json::Kind::Array:
    case Json::Kind::Object: return j.size() == 0;
    default: return false;
  }
}

std::string shown(const Json& j) {
  if (j.number()) return str_cat(*j.number());
  if (j.flag()) return *j.flag() ? "true" : "false";
  if (j.is(Json::Kind::String)) return in_quotes(j.text());
  return j.is(Json::Kind::Array) ? "[...]" : "{...}";
}

// The number that a key such as "12" spells; -1: none.
std::int64_t index_of(std::string_view text) {
  if (text.empty() || text.size() > 7) return -1;
  std::int64_t n = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return -1;
    n = 10 * n + (c - '0');
  }
  return n;
}

// Python writes infinities, which JSON has not, for a bound that is none. -Infinity becomes null, and Infinity a number
// beyond all others, of the same length.
std::string without_infinities(std::string text) {
  const auto replace = [&](std::string_view from, std::string_view to) {
    for (std::size_t at = 0; (at = text.find(from, at)) != text.npos;) text.replace(at, from.size(), to);
  };
  replace(": -Infinity", ":       null");
  for (const std::string_view before : {": ", ", ", "[", "  "})
    replace(str_cat(before, "Infinity"), str_cat(before, "1.0e+308"));
  return text;
}

// The number of a value; transformers 5 writes {"__float__": "Infinity"} for one that JSON has not.
std::optional<double> number_of(const Json& j) {
  constexpr double kBeyond = 1e308;
  const bool infinite = j.is(Json::Kind::Object) && j.size() == 1 && j["__float__"].text() == "Infinity";
  return infinite ? kBeyond : j.number();
}

}  // namespace

struct ConfigFile::Shared {
  Shared(std::string where, std::string_view text, const ReadOptions& o, std::vector<std::string> neutral)
      : path(std::move(where)),
        budget(counted(path, text, o)),
        document(text, path, budget),
        ignore(std::move(neutral)) {}
  static Budget counted(const std::string& path, std::string_view text, const ReadOptions& o) {
    Budget budget(o, path);
    budget.parsed(text.size());
    return budget;
  }
  std::string path;
  Budget budget;
  io::JsonDocument document;
  std::vector<std::string> ignore;
};

ConfigFile::ConfigFile(std::shared_ptr<Shared> shared, const Json& root, std::string within)
    : shared_(std::move(shared)), root_(std::make_shared<const Json>(root)), within_(std::move(within)) {
  if (!root_->is(Json::Kind::Object)) refuse("it is not an object");
}
ConfigFile::ConfigFile(const Weights& w, std::vector<std::string> ignore) {
  if (w.config_json().empty())
    throw file_error("load_model", w.path(), "there is no config.json beside it, which says what model it is");
  const auto shared = std::make_shared<Shared>(w.path() + ": config.json", without_infinities(w.config_json()),
                                               w.options(), std::move(ignore));
  *this = ConfigFile(shared, shared->document.root(), "");
}
ConfigFile::ConfigFile(const std::string& file, const ReadOptions& o, std::vector<std::string> ignore) {
  const auto shared = std::make_shared<Shared>(file, without_infinities(read_text_file(file)), o, std::move(ignore));
  *this = ConfigFile(shared, shared->document.root(), "");
}
ConfigFile ConfigFile::from_text(const std::string& where, const std::string& text, const ReadOptions& o,
                                 std::vector<std::string> ignore) {
  const auto shared = std::make_shared<Shared>(where, text, o, std::move(ignore));
  return {shared, shared->document.root(), ""};
}

const std::string& ConfigFile::path() const { return shared_->path; }

void ConfigFile::refuse(const std::string& what) const { throw file_error("load_model", shared_->path, what); }

Json ConfigFile::get(std::string_view key) const {
  known_->emplace(key);
  return (*root_)[key];
}

bool ConfigFile::has(std::string_view key) const { return !(*root_)[key].absent(); }

double ConfigFile::whole(std::string_view key, const Json& j, double least) const {
  const auto n = j.number();
  if (!n || !(*n >= least && *n <= kMost) || *n != std::floor(*n))
    refuse(str_cat(within_, key, " is ", shown(j), ", and not a whole number from ", least, " to ", kMost));
  return *n;
}
std::int64_t ConfigFile::size(std::string_view key) const {
  const Json j = get(key);
  if (j.absent()) {
    std::vector<std::string_view> keys;
    for (const auto& [name, value] : *root_)
      if (value.number()) keys.push_back(name);
    const std::string_view near = nearest_name(key, keys);
    refuse(str_cat("there is no ", within_, key, near.empty() ? "" : "; the number nearest to it is ",
                   printable(near, 80)));
  }
  return static_cast<std::int64_t>(whole(key, j, 1));
}
std::int64_t ConfigFile::size(std::string_view key, std::int64_t otherwise) const {
  const Json j = get(key);
  return j.absent() ? otherwise : static_cast<std::int64_t>(whole(key, j, 1));
}
std::int64_t ConfigFile::id(std::string_view key, std::int64_t otherwise) const {
  const Json j = get(key);
  return j.absent() ? otherwise : static_cast<std::int64_t>(whole(key, j, 0));
}
double ConfigFile::number(std::string_view key, double otherwise) const {
  const Json j = get(key);
  if (!j.absent() && !(j.number() && std::isfinite(*j.number())))
    refuse(str_cat(within_, key, " is ", shown(j), ", and not a number"));
  return j.number().value_or(otherwise);
}
std::string ConfigFile::text(std::string_view key, std::string_view otherwise) const {
  const Json j = get(key);
  if (!j.absent() && !j.is(Json::Kind::String)) refuse(str_cat(within_, key, " is ", shown(j), ", and not a text"));
  return std::string(j.absent() ? otherwise : j.text());
}
bool ConfigFile::flag(std::string_view key, bool otherwise) const {
  const Json j = get(key);
  if (!j.absent() && !j.flag()) refuse(str_cat(within_, key, " is ", shown(j), ", and not true or false"));
  return j.flag().value_or(otherwise);
}
std::vector<std::int64_t> ConfigFile::sizes(std::string_view key) const {
  const Json j = get(key);
  std::vector<std::int64_t> all;
  if (j.absent()) return all;
  if (!j.is(Json::Kind::Array)) return {static_cast<std::int64_t>(whole(key, j, 1))};
  for (const auto& [unnamed, value] : j) all.push_back(static_cast<std::int64_t>(whole(key, value, 1)));
  return all;
}
std::vector<double> ConfigFile::numbers(std::string_view key) const {
  const Json j = get(key);
  std::vector<double> all;
  if (j.absent()) return all;
  if (!j.is(Json::Kind::Array)) return {number(key, 0)};
  for (const auto& [unnamed, value] : j) {
    const std::optional<double> n = number_of(value);
    if (!n || !std::isfinite(*n)) refuse(str_cat(within_, key, " holds ", shown(value), ", and not numbers"));
    all.push_back(*n);
  }
  return all;
}
std::vector<std::string> ConfigFile::texts(std::string_view key) const {
  const Json j = get(key);
  if (!j.absent() && !j.is(Json::Kind::Array)) refuse(str_cat(within_, key, " is ", shown(j), ", and not a list"));
  std::vector<std::string> all;
  if (j.absent()) return all;
  for (const auto& [unnamed, value] : j) {
    if (!value.is(Json::Kind::String)) refuse(str_cat(within_, key, " holds ", shown(value), ", and not texts"));
    all.emplace_back(value.text());
  }
  return all;
}
std::vector<std::pair<std::string, std::string>> ConfigFile::map(std::string_view key) const {
  const Json j = get(key);
  if (!j.absent() && !j.is(Json::Kind::Object)) refuse(str_cat(within_, key, " is ", shown(j), ", and not an object"));
  std::vector<std::pair<std::string, std::string>> all;
  if (j.absent()) return all;
  for (const auto& [name, value] : j) {
    if (!value.is(Json::Kind::String)) refuse(str_cat(within_, key, " holds ", shown(value), ", and not texts"));
    all.emplace_back(name, value.text());
  }
  return all;
}

std::vector<std::string> ConfigFile::labels() const {
  const auto named = map("id2label");
  const std::int64_t count = size("num_labels", named.empty() ? 2 : std::ssize(named));
  if (count > kClasses) refuse(str_cat("num_labels is ", count, ", more than the ", kClasses, " that are supported"));
  std::vector<std::string> all;
  for (std::int64_t k = 0; k < count; ++k) all.push_back(str_cat("LABEL_", k));
  if (std::ssize(named) != count) return all;  // as transformers, which then writes names of its own
  for (const auto& [key, name] : named) {
    const std::int64_t k = index_of(key);
    if (k < 0 || k >= count) refuse(str_cat("id2label has the key ", in_quotes(key), " and ", count, " classes"));
    all[static_cast<std::size_t>(k)] = name;
  }
  return all;
}

ConfigFile ConfigFile::section(std::string_view key) const {
  const Json j = get(key);
  if (!j.is(Json::Kind::Object)) refuse(str_cat(within_, key, j.absent() ? " is missing" : " is not an object"));
  return {shared_, j, str_cat(within_, key, ".")};
}

std::vector<ConfigFile> ConfigFile::sections(std::string_view key) const {
  const Json j = get(key);
  std::vector<ConfigFile> all;
  if (j.absent()) return all;
  if (!j.is(Json::Kind::Array)) refuse(str_cat(within_, key, " is ", shown(j), ", and not a list"));
  for (const auto& [unnamed, value] : j) all.push_back({shared_, value, str_cat(within_, key, ".", all.size(), ".")});
  return all;
}
std::vector<std::string> ConfigFile::repeated_texts(std::string_view key) const {
  constexpr std::size_t kLongest = 1 << 16;
  std::vector<std::string> all;
  for (const auto& [unnamed, part] : get(key)) {
    const Json pattern = part[std::size_t{0}], times = part[std::size_t{1}];
    const auto n = times.integer();
    if (part.size() != 2 || !pattern.is(Json::Kind::Array) || !n || *n < 0 || *n > (1 << 16) ||
        static_cast<std::size_t>(*n) * pattern.size() > kLongest)
      refuse(str_cat(within_, key, " is no list of pairs of a list and how often it is repeated"));
    for (std::int64_t k = 0; k < *n; ++k)
      for (const auto& [also_unnamed, value] : pattern) all.emplace_back(value.text());
  }
  return all;
}
bool ConfigFile::is_object(std::string_view key) const { return (*root_)[key].is(Json::Kind::Object); }
bool ConfigFile::is_text(std::string_view key) const { return (*root_)[key].is(Json::Kind::String); }
bool ConfigFile::is_null(std::string_view key) const { return get(key).is(Json::Kind::Null); }

void ConfigFile::neutral(std::initializer_list<std::string_view> keys) const {
  for (const std::string_view key : keys) known_->emplace(key);
}
void ConfigFile::lacks(std::initializer_list<std::string_view> flags) const {
  for (const std::string_view key : flags)
    if (const Json j = get(key); !says_nothing(j))
      refuse(str_cat(within_, key, " is ", shown(j), ", which is not supported for this type of model"));
}
void ConfigFile::only(std::string_view key, std::string_view value) const {
  if (const std::string given = text(key, value); given != value)
    refuse(str_cat(within_, key, " is ", in_quotes(given), ", and only ", in_quotes(value), " is supported"));
}

void ConfigFile::require_all_known(std::string_view model) const {
  for (const auto& [key, value] : *root_) {
    if (known_->contains(key) || key.starts_with('_') || says_nothing(value)) continue;
    if (std::ranges::find(kNeutral, key) != std::end(kNeutral)) continue;
    const std::string name = str_cat(within_, key);
    if (std::ranges::find(shared_->ignore, name) != shared_->ignore.end()) continue;
    const std::vector<std::string_view> known(known_->begin(), known_->end());
    const std::string_view near = nearest_name(key, known);
    refuse(str_cat(printable(name, 80), " is ", shown(value), ", and no key of this name is known of ", model,
                   near.empty() ? "" : str_cat(" (the nearest is ", near, ")"),
                   "; if it changes nothing of what the model computes, name it among the keys to ignore"));
  }
}

}  // namespace lc
