#include "lightcone/models/seq2seq/generation.h"

#include <algorithm>
#include <filesystem>
#include <limits>

#include "lightcone/io/json_internal.h"
#include "lightcone/io/printable.h"

namespace lc {
namespace {

namespace fs = std::filesystem;
using io::Json;
constexpr float kNever = -std::numeric_limits<float>::infinity();

// Reads one JSON file, and throws Errors that name its keys.
class Reader {
 public:
  Reader(std::string path, const Json& root, std::int64_t vocab) : path_(std::move(path)), root_(root), vocab_(vocab) {}

  int id(const Json& j, std::string_view key) const {
    const auto n = j.integer();
    if (!n || *n < 0 || *n >= vocab_)
      throw file_error("load_model", path_, key, " holds what is no whole number from 0 to ", vocab_ - 1);
    return static_cast<int>(*n);
  }
  std::vector<int> ids(const Json& j, std::string_view key) const {
    if (!j.is(Json::Kind::Array)) return {id(j, key)};
    std::vector<int> all;
    for (const auto& [unnamed, value] : j) all.push_back(id(value, key));
    return all;
  }
  std::optional<int> one(std::string_view key) const {
    const Json j = root_[key];
    if (j.absent()) return {};
    const std::vector<int> all = ids(j, key);
    if (all.size() != 1) throw file_error("load_model", path_, key, " holds ", all.size(), " ids, and not one");
    return all.front();
  }
  double number(std::string_view key, double least, double otherwise) const {
    const Json j = root_[key];
    if (j.absent()) return otherwise;
    const auto n = j.number();
    if (!n || !(*n >= least && *n <= 1e9))
      throw file_error("load_model", path_, key, " is no number from ", least, " on");
    return *n;
  }
  const Json& root() const { return root_; }

 private:
  std::string path_;
  Json root_;
  std::int64_t vocab_;
};

bool ends_with(std::span<const int> text, std::span<const int> part) {
  return part.size() <= text.size() && std::ranges::equal(text.last(part.size()), part);
}

void forbid_all_but(std::span<float> logits, int id) {
  std::ranges::fill(logits, kNever);
  logits[static_cast<std::size_t>(id)] = 0;
}

// Forbids each token behind which the last n tokens would occur for the second time.
void forbid_repeated(std::span<float> logits, std::span<const int> text, std::size_t n) {
  if (text.size() + 1 < n) return;
  const std::span<const int> last = text.last(n - 1);
  for (std::size_t k = 0; k + n <= text.size(); ++k)
    if (std::ranges::equal(text.subspan(k, n - 1), last)) logits[static_cast<std::size_t>(text[k + n - 1])] = kNever;
}

}  // namespace

Seq2SeqGeneration Seq2SeqGeneration::from(const Weights& w, const Seq2SeqConfig& c) {
  const fs::path folder = fs::is_directory(w.path()) ? fs::path(w.path()) : fs::path(w.path()).parent_path();
  const fs::path file = folder / "generation_config.json";
  Budget budget(w.options(), file.string());
  std::error_code wrong;
  const bool own = fs::is_regular_file(file, wrong);
  const std::string path = own ? file.string() : w.path() + ": config.json";
  const io::JsonDocument document = own ? io::read_json(path, budget) : io::JsonDocument(w.config_json(), path, budget);
  const Reader r(path, document.root(), c.vocab);
  Seq2SeqGeneration g;
  g.start = r.one("decoder_start_token_id").value_or(c.start);
  g.ends = r.root()["eos_token_id"].absent() ? c.ends : r.ids(r.root()["eos_token_id"], "eos_token_id");
  g.forced_first = r.one("forced_bos_token_id"), g.forced_last = r.one("forced_eos_token_id");
  for (const auto& [unnamed, words] : r.root()["bad_words_ids"])
    if (auto ids = r.ids(words, "bad_words_ids"); !ids.empty()) g.bad_words.push_back(std::move(ids));
  g.no_repeat = static_cast<std::int64_t>(r.number("no_repeat_ngram_size", 0, 0));
  g.repetition_penalty = r.number("repetition_penalty", 1e-3, 1);
  g.min_length = static_cast<std::int64_t>(r.number("min_length", 0, 0));
  g.max_length = static_cast<std::int64_t>(r.number("max_length", 0, 0));
  g.beams = std::clamp<std::int64_t>(static_cast<std::int64_t>(r.number("num_beams", 1, 1)), 1, 64);
  g.length_penalty = r.number("length_penalty", -1e9, 1);
  g.early_stopping = r.root()["early_stopping"].flag().value_or(false);
  return g;
}

void apply_rules(const Seq2SeqGeneration& g, std::span<float> logits, std::span<const int> generated,
                 std::int64_t most) {
  std::vector<int> text{g.start};
  text.insert(text.end(), generated.begin(), generated.end());
  if (g.repetition_penalty != 1) {
    std::vector<int> seen = text;
    std::ranges::sort(seen);
    seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
    for (const int id : seen) {
      float& x = logits[static_cast<std::size_t>(id)];
      x = static_cast<float>(x > 0 ? x / g.repetition_penalty : x * g.repetition_penalty);
    }
  }
  if (g.no_repeat > 0) forbid_repeated(logits, text, static_cast<std::size_t>(g.no_repeat));
  for (const std::vector<int>& words : g.bad_words)
    if (ends_with(text, std::span(words).first(words.size() - 1)))
      logits[static_cast<std::size_t>(words.back())] = kNever;
  if (std::ssize(text) < g.min_length)
    for (const int id : g.ends) logits[static_cast<std::size_t>(id)] = kNever;
  if (g.forced_first && generated.empty()) forbid_all_but(logits, *g.forced_first);
  if (g.forced_last && std::ssize(generated) + 1 == most) forbid_all_but(logits, *g.forced_last);
}

}  // namespace lc
