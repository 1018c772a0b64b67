#include "lightcone/models/whisper/ggml_vocabulary.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "lightcone/base/error.h"
#include "lightcone/io/printable.h"
#include "lightcone/io/text/pieces/characters.h"

namespace lc {
namespace {

// The languages in the order of their tokens (openai/whisper, tokenizer.py).
constexpr std::string_view kLanguages[] = {
    "en", "zh", "de", "es", "ru", "ko", "fr", "ja", "pt",  "tr", "pl", "ca", "nl", "ar", "sv", "it", "id",
    "hi", "fi", "vi", "he", "uk", "el", "ms", "cs", "ro",  "da", "hu", "ta", "no", "th", "ur", "hr", "bg",
    "lt", "la", "mi", "ml", "cy", "sk", "te", "fa", "lv",  "bn", "sr", "az", "sl", "kn", "et", "mk", "br",
    "eu", "is", "hy", "ne", "mn", "bs", "kk", "sq", "sw",  "gl", "mr", "pa", "si", "km", "sn", "yo", "so",
    "af", "oc", "ka", "be", "tg", "sd", "gu", "am", "yi",  "lo", "uz", "fo", "ht", "ps", "tk", "nn", "mt",
    "sa", "lb", "my", "bo", "tl", "mg", "as", "tt", "haw", "ln", "ha", "ba", "jw", "su", "yue"};
constexpr std::int64_t kText = 50256;        // ordinary tokens of GPT-2, which the English models have
constexpr std::int64_t kTimestamps = 1501;   // 0 s to 30 s
constexpr std::size_t kLongestJoined = 128;  // bytes of a token; none of OpenAI's is longer

using Ranks = std::unordered_map<std::string_view, int>;

// The two parts that are joined last to make a token, if pairs with the smallest ids are joined first.
std::optional<std::pair<std::string_view, std::string_view>> last_pair(std::string_view token, const Ranks& ranks,
                                                                       int rank) {
  std::vector<std::size_t> begins;
  for (std::size_t i = 0; i <= token.size(); ++i) begins.push_back(i);
  const auto id_of = [&](std::size_t i) {  // parts i and i + 1 together; `rank` if they are no earlier token
    const auto at = ranks.find(token.substr(begins[i], begins[i + 2] - begins[i]));
    return at == ranks.end() ? rank : std::min(at->second, rank);
  };
  std::vector<int> ids;
  for (std::size_t i = 0; i + 2 < begins.size(); ++i) ids.push_back(id_of(i));
  while (ids.size() > 1) {
    const auto best = std::ranges::min_element(ids);
    if (*best == rank) return {};
    const auto i = best - ids.begin();
    begins.erase(begins.begin() + i + 1);
    ids.erase(best);
    if (i > 0) ids[static_cast<std::size_t>(i) - 1] = id_of(static_cast<std::size_t>(i) - 1);
    if (i < std::ssize(ids)) ids[static_cast<std::size_t>(i)] = id_of(static_cast<std::size_t>(i));
  }
  return std::pair(token.substr(0, begins[1]), token.substr(begins[1]));
}

std::string spelled(std::string_view bytes) {
  std::string s;
  for (const char c : bytes) s += byte_alphabet().character[static_cast<unsigned char>(c)];
  return s;
}

void add_specials(Vocabulary& v, std::int64_t text, std::size_t languages) {
  const auto add = [&](std::string piece) {
    v.pieces.push_back(std::move(piece));
    v.types.push_back(Vocabulary::Type::Control);
  };
  v.pieces.resize(static_cast<std::size_t>(text));
  v.types.assign(v.pieces.size(), Vocabulary::Type::Normal);
  v.eos = v.bos = static_cast<int>(text);
  add("<|endoftext|>"), add("<|startoftranscript|>");
  for (std::size_t k = 0; k < languages; ++k) add(str_cat("<|", kLanguages[k], "|>"));
  for (const char* name : {"translate", "transcribe", "startoflm", "startofprev", "nospeech", "notimestamps"})
    add(str_cat("<|", name, "|>"));
  for (std::int64_t k = 0; k < kTimestamps; ++k) {
    const std::string hundredths = std::to_string(100 + 2 * k % 100);
    add(str_cat("<|", 2 * k / 100, ".", hundredths.substr(1), "|>"));
  }
}

}  // namespace

std::shared_ptr<const Tokenizer> ggml_tokenizer(const std::vector<std::string>& bytes, std::int64_t vocabulary,
                                                const std::string& path, Budget& budget) {
  const std::int64_t text = kText + (vocabulary >= kWhisperMultilingual ? 1 : 0);
  if (std::ssize(bytes) < text)
    throw file_error("load_model", path, "it has ", bytes.size(), " tokens, and a Whisper of ", vocabulary, " ids has ",
                     text);
  Vocabulary v;
  v.kind = Vocabulary::Kind::ByteBpe;
  v.split = split_patterns("gpt-2");
  Ranks ranks;
  for (std::int64_t k = 0; k < text; ++k) {
    const std::string& token = bytes[static_cast<std::size_t>(k)];
    budget.take(2 * token.size(), 12);
    // several may be empty, and a vocabulary has each piece once
    v.pieces.push_back(token.empty() ? str_cat("<|empty ", k, "|>") : spelled(token));
    if (!token.empty()) ranks.emplace(token, static_cast<int>(k));
  }
  for (std::int64_t k = 0; k < text; ++k) {
    const std::string& token = bytes[static_cast<std::size_t>(k)];
    if (token.size() < 2 || token.size() > kLongestJoined) continue;
    if (const auto pair = last_pair(token, ranks, static_cast<int>(k)))
      v.merges.emplace_back(spelled(pair->first), spelled(pair->second));
  }
  add_specials(v, text, vocabulary >= kWhisperMost ? 100 : 99);
  if (std::ssize(v.pieces) != vocabulary)
    throw file_error("load_model", path, "it has ", vocabulary, " ids, and a Whisper would have ", v.pieces.size());
  try {
    return make_tokenizer(std::move(v));
  } catch (const Error& e) {
    throw file_error("load_model", path, e.problem());
  }
}

std::vector<double> silenced_tokens(const Tokenizer& tokenizer) {
  static constexpr std::string_view kSigns[] = {
      "\"",  "#",  "(",  ")",  "*",   "+",  "/",  ":",   ";",   "<",  "=",  ">",  "@",  "[",   "\\",  "]",
      "^",   "_",  "`",  "{",  "|",   "}",  "~",  "「",  "」",  "『", "』", "<<", ">>", "<<<", ">>>", "--",
      "---", "-(", "-[", "('", "(\"", "((", "))", "(((", ")))", "[[", "]]", "{{", "}}", "♪♪",  "♪♪♪"};
  static constexpr std::string_view kNotes[] = {"♩", "♪", "♫", "♬", "♭", "♮", "♯"};
  std::set<int> ids;
  const auto add = [&](const std::string& text, bool first_of_several) {
    const std::vector<int> all = tokenizer.encode(text, false);
    if (!all.empty() && (all.size() == 1 || first_of_several)) ids.insert(all.front());
  };
  add(" -", true), add(" '", true);
  for (const std::string_view sign : kSigns) add(std::string(sign), false), add(str_cat(" ", sign), false);
  for (const std::string_view note : kNotes) add(std::string(note), true), add(str_cat(" ", note), true);
  const std::vector<std::string>& pieces = tokenizer.vocabulary().pieces;
  for (std::size_t k = kText; k < pieces.size(); ++k)
    for (const std::string_view name : {"<|startoftranscript|>", "<|translate|>", "<|transcribe|>", "<|startoflm|>",
                                        "<|startofprev|>", "<|nospeech|>"})
      if (pieces[k] == name) ids.insert(static_cast<int>(k));
  return {ids.begin(), ids.end()};
}

}  // namespace lc
