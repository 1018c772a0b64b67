#include "lightcone/models/whisper/whisper_tokens.h"

#include <algorithm>
#include <filesystem>
#include <unordered_map>

#include "lightcone/io/json_internal.h"
#include "lightcone/io/printable.h"
#include "lightcone/runtime/names.h"

namespace lc {
namespace {

namespace fs = std::filesystem;
using io::Json;
constexpr std::int64_t kMultilingual = 51865;  // entries of the smallest vocabulary with languages

// What generation_config.json or config.json says, with the name of the file for Errors.
struct Source {
  std::string path;
  Json root;

  int id(const Json& j, std::string_view key, std::int64_t below) const {
    const auto n = j.integer();
    if (!n || *n < 0 || *n >= below)
      throw file_error("load_model", path, key, " holds what is no whole number from 0 to ", below - 1);
    return static_cast<int>(*n);
  }
  std::vector<int> ids(std::string_view key, std::int64_t vocabulary) const {
    std::vector<int> all;
    for (const auto& [unnamed, value] : root[key]) all.push_back(id(value, key, vocabulary));
    return all;
  }
};

void read(const Source& s, std::int64_t vocabulary, std::int64_t layers, std::int64_t heads, WhisperTokens& t) {
  t.suppressed = s.ids("suppress_tokens", vocabulary);
  t.suppressed_first = s.ids("begin_suppress_tokens", vocabulary);
  for (const auto& [unnamed, pair] : s.root["alignment_heads"])
    t.alignment_heads.emplace_back(s.id(pair[std::size_t{0}], "alignment_heads", layers),
                                   s.id(pair[1], "alignment_heads", heads));
}

// "en" of "<|en|>"; "" for a token that is none of a language.
std::string language_of(std::string_view piece) {
  if (!piece.starts_with("<|") || !piece.ends_with("|>") || piece.size() < 6 || piece.size() > 7) return "";
  const std::string_view code = piece.substr(2, piece.size() - 4);
  return std::ranges::all_of(code, [](char c) { return c >= 'a' && c <= 'z'; }) ? std::string(code) : "";
}

}  // namespace

int WhisperTokens::language(std::string_view code) const {
  std::vector<std::string_view> known;
  for (const auto& [name, id] : languages) {
    if (name == code) return id;
    known.push_back(name);
  }
  if (known.empty())
    throw Error("transcribe", str_cat("the language ", in_quotes(code), ": this model knows English alone"));
  throw Error("transcribe", str_cat("the model has no language ", in_quotes(code), ": it has codes of two or three ",
                                    "letters, such as en, de and yue; ", names_near(code, known)));
}

WhisperTokens WhisperTokens::from(const Weights& w, const Tokenizer& tokenizer, std::int64_t vocabulary,
                                  std::int64_t layers, std::int64_t heads) {
  std::unordered_map<std::string_view, int> ids;
  const std::vector<std::string>& pieces = tokenizer.vocabulary().pieces;
  for (std::size_t k = 0; k < pieces.size(); ++k)
    if (pieces[k].starts_with("<|")) ids.emplace(pieces[k], static_cast<int>(k));
  const auto find = [&](std::string_view piece) {
    const auto at = ids.find(piece);
    return at == ids.end() || at->second >= vocabulary ? -1 : at->second;
  };
  WhisperTokens t;
  t.end = find("<|endoftext|>"), t.start = find("<|startoftranscript|>");
  t.transcribe = find("<|transcribe|>"), t.translate = find("<|translate|>"), t.previous = find("<|startofprev|>");
  t.no_speech = std::max(find("<|nospeech|>"), find("<|nocaptions|>"));
  t.start_of_words = find("<|startoflm|>"), t.no_timestamps = find("<|notimestamps|>");
  t.first_timestamp = t.no_timestamps + 1;
  if (t.end < 0 || t.start <= t.end || t.no_timestamps <= t.start)
    throw file_error(
        "load_model", w.path(),
        "the tokenizer is not Whisper's: it lacks <|endoftext|>, <|startoftranscript|> or <|notimestamps|>");
  if (vocabulary >= kMultilingual && t.transcribe >= 0)
    for (int id = t.start + 1; id < std::min({t.transcribe, t.translate < 0 ? t.transcribe : t.translate}); ++id)
      if (const std::string code = language_of(pieces[static_cast<std::size_t>(id)]); !code.empty())
        t.languages.emplace_back(code, id);
  const fs::path folder = fs::is_directory(w.path()) ? fs::path(w.path()) : fs::path(w.path()).parent_path();
  const fs::path file = folder / "generation_config.json";
  Budget budget(w.options(), file.string());
  std::error_code wrong;
  const bool own = w.format() != "ggml" && fs::is_regular_file(file, wrong);
  const io::JsonDocument document = own ? io::read_json(file.string(), budget)
                                        : io::JsonDocument(w.config_json(), w.path() + ": config.json", budget);
  read({own ? file.string() : w.path() + ": config.json", document.root()}, vocabulary, layers, heads, t);
  return t;
}

}  // namespace lc
