#include "lightcone/io/text/tokenizer_json.h"

#include <algorithm>
#include <filesystem>
#include <limits>

#include "lightcone/io/json_internal.h"
#include "lightcone/io/printable.h"
#include "lightcone/io/text/tokenizer_kinds.h"
#include "lightcone/io/checkpoints/weights_internal.h"

namespace lc {
namespace {

using io::Json;
using Type = Vocabulary::Type;

class Reader {
 public:
  Reader(const MappedFile& file, Budget& budget)
      : path_(file.path()),
        budget_(budget),
        text_({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()}, path_, budget),
        root_(text_.root()) {
    if (!root_["model"].is(Json::Kind::Object)) fail("it has no model");
  }
  Vocabulary read();

 private:
  template <class... Ts>
  [[noreturn]] void fail(const Ts&... what) const {
    throw file_error("tokenizer", path_, what...);
  }
  // A member that may be left out or null, and otherwise is what it should be.
  Json member(const Json& j, std::string_view key, Json::Kind kind, const char* words) const {
    const Json m = j[key];
    if (!m.absent() && !m.is(kind)) fail(in_quotes(key), " is not ", words);
    return m;
  }
  std::string_view text(const Json& j, std::string_view key) const {
    return member(j, key, Json::Kind::String, "a string").text();
  }
  bool flag(const Json& j, std::string_view key, bool otherwise = false) const {
    return member(j, key, Json::Kind::Bool, "true or false").flag().value_or(otherwise);
  }
  Json list(const Json& j, std::string_view key) const { return member(j, key, Json::Kind::Array, "a list"); }
  // A component, or the members of a Sequence of them.
  std::vector<Json> parts(std::string_view key, std::string_view members) const {
    const Json j = member(root_, key, Json::Kind::Object, "an object");
    if (j.absent()) return {};
    if (text(j, "type") != "Sequence") return {j};
    std::vector<Json> all;
    const Json many = list(j, members);
    budget_.take(many.size(), 2 * sizeof(Json));
    for (const auto& [unnamed, part] : many) all.push_back(part);
    return all;
  }
  void pieces(const Json& model);
  void added();
  void merges(const Json& model);
  void splits();
  void sentencepiece();
  void wordpiece();
  void specials();
  int id_of(std::string_view piece) const {
    const auto it = piece.empty() ? ids_.end() : ids_.find(piece);
    return it == ids_.end() ? -1 : it->second;
  }
  void put(std::int64_t id, std::string_view piece, Type t);
  void index();

  const std::string& path_;
  Budget& budget_;
  const io::JsonDocument text_;
  const Json root_;
  Vocabulary v_;
  StringMap ids_;  // of the pieces as the file spells them
  bool byte_level_ = false;
};

// Ids may leave gaps, as far as the budget for a file of this size goes.
void Reader::put(std::int64_t id, std::string_view piece, Type t) {
  if (id < 0 || id >= std::numeric_limits<int>::max()) fail("the token id ", id, " is out of range");
  const auto i = static_cast<std::size_t>(id);
  if (i >= v_.pieces.size()) {
    budget_.take(i + 1 - v_.pieces.size(), piece_bytes(0));
    v_.pieces.resize(i + 1), v_.types.resize(i + 1, Type::Unused);
  }
  budget_.take(piece.size() + 1);
  v_.pieces[i] = piece, v_.types[i] = t;
}

void Reader::index() {
  budget_.take(v_.pieces.size(), kIndexBytes);
  for (std::size_t i = 0; i < v_.pieces.size(); ++i) ids_.try_emplace(v_.pieces[i], static_cast<int>(i));
}

void Reader::pieces(const Json& model) {
  const Json all = model["vocab"];
  if (!all.is(Json::Kind::Object)) fail("the model has no vocab");
  for (const auto& [piece, number] : all) {
    const std::optional<std::int64_t> id = number.integer();
    if (!id) fail("the id of ", in_quotes(piece), " is not a whole number");
    put(*id, piece, Type::Normal);
  }
}

void Reader::added() {
  for (const auto& [unnamed, token] : list(root_, "added_tokens")) {
    const std::optional<std::int64_t> id = token["id"].integer();
    if (!id) fail("an added token has no id");
    put(*id, text(token, "content"), flag(token, "special") ? Type::Control : Type::UserDefined);
  }
}

void Reader::merges(const Json& model) {
  const Json all = model["merges"];
  if (!all.is(Json::Kind::Array)) fail("the model has no merges");
  for (const auto& [unnamed, m] : all) {
    std::string_view left = m[0].text(), right = m[1].text();
    if (m.is(Json::Kind::String)) {
      const std::string_view s = m.text();
      const std::size_t space = s.find(' ', 1);
      if (space != s.npos) left = s.substr(0, space), right = s.substr(space + 1);
      if (space == s.npos) fail("the merge ", in_quotes(s), " is not a pair");
    } else if (m.size() != 2 || !m[0].is(Json::Kind::String) || !m[1].is(Json::Kind::String)) {
      fail("a merge is not a pair");
    }
    budget_.take(piece_bytes(left.size()) + piece_bytes(right.size()));
    v_.merges.emplace_back(left, right);
  }
}

void Reader::splits() {
  for (const Json& p : parts("pre_tokenizer", "pretokenizers")) {
    const std::string_view type = text(p, "type");
    budget_.take(piece_bytes(512));  // the longest of our own
    if (type == "ByteLevel") {
      byte_level_ = true;
      if (flag(p, "use_regex", true)) v_.split.push_back(split_patterns("gpt2").front());
    } else if (type == "Split" && !p["pattern"].absent()) {
      std::string regex(text(p["pattern"], "Regex"));
      budget_.take(2 * piece_bytes(regex.size()));
      if (regex.empty()) regex = "\\Q" + std::string(text(p["pattern"], "String")) + "\\E";
      if (text(p, "behavior") == "Isolated" || text(p, "behavior") == "Removed") v_.split.push_back(regex);
    } else if (type == "Digits") {
      v_.split.push_back(flag(p, "individual_digits") ? "\\p{N}" : "\\p{N}+");
    } else if (type == "Punctuation") {
      v_.split.push_back("\\p{P}");
    } else if (type == "Metaspace") {
      const std::string_view scheme = text(p, "prepend_scheme");
      v_.space_prefix = scheme.empty() ? flag(p, "add_prefix_space", true) : scheme != "never";
      v_.prefix = scheme == "first" ? Vocabulary::Prefix::Text : Vocabulary::Prefix::Unspaced;
    }
  }
}

// A piece's score is the rank of the merge that makes it.
void Reader::sentencepiece() {
  std::vector<std::string> joined;
  joined.reserve(v_.merges.size());  // the map refers to them
  StringMap rank;
  for (std::size_t i = 0; i < v_.merges.size(); ++i) {
    budget_.take(kIndexBytes + piece_bytes(v_.merges[i].first.size() + v_.merges[i].second.size()));
    rank.try_emplace(joined.emplace_back(v_.merges[i].first + v_.merges[i].second), static_cast<int>(i));
  }
  bool prepend = false, metaspace = false;
  for (const Json& p : parts("normalizer", "normalizers")) prepend = prepend || text(p, "type") == "Prepend";
  for (const Json& p : parts("pre_tokenizer", "pretokenizers")) metaspace = metaspace || text(p, "type") == "Metaspace";
  if (!metaspace) v_.space_prefix = prepend;
  for (std::size_t i = 0; i < v_.pieces.size(); ++i) {
    const auto it = rank.find(v_.pieces[i]);
    v_.scores.push_back(it == rank.end() ? -1e9f : -static_cast<float>(it->second));
    if (v_.types[i] == Type::Normal && v_.pieces[i].size() == 6 && v_.pieces[i].starts_with("<0x"))
      v_.types[i] = Type::Byte;
    // HF merges only what its merges make; a longer piece without one is never joined
    if (it == rank.end() && v_.types[i] == Type::Normal) {
      std::size_t characters = 0;
      for (char c : v_.pieces[i]) characters += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
      if (characters > 1) v_.types[i] = Type::Unused;
    }
  }
  v_.merges.clear();
}

// As GGUF spells it: a word begins with U+2581, what continues it has no mark.
void Reader::wordpiece() {
  for (std::size_t i = 0; i < v_.pieces.size(); ++i) {
    std::string& p = v_.pieces[i];
    if (v_.types[i] != Type::Normal || p.empty()) continue;
    if (p.starts_with("##")) p.erase(0, 2);
    else if (!(p.front() == '[' && p.back() == ']' && p.size() > 2)) p = std::string(kSpace) + p;
  }
}

// <s> and </s> from tokenizer_config.json, or by their usual names; what surrounds a text from the
// post-processor.
void Reader::specials() {
  constexpr const char* kConfig[] = {"tokenizer_config.json"};
  const std::string file = io::first_in(std::filesystem::path(path_).parent_path().string(), kConfig);
  const io::JsonDocument config = file.empty() ? io::JsonDocument("{}", path_, budget_) : io::read_json(file, budget_);
  const auto named = [&](const char* key, std::initializer_list<const char*> usual) {
    const Json token = config.root()[key];
    if (const int id = id_of(token.is(Json::Kind::Object) ? text(token, "content") : text(config.root(), key)); id >= 0)
      return id;
    for (const char* name : usual)
      if (const int id = id_of(name); id >= 0) return id;
    return -1;
  };
  v_.bos = named("bos_token", {"<s>", "<|begin_of_text|>", "[CLS]"});
  v_.eos = named("eos_token", {"</s>", "<|end_of_text|>", "<|endoftext|>", "<|im_end|>", "[SEP]"});
  for (const Json& p : parts("post_processor", "processors")) {
    const Json around = text(p, "type") == "TemplateProcessing" ? list(p, "single") : Json();
    if (around.size() == 0) continue;
    const auto special = [&](std::size_t i) { return id_of(text(around[i]["SpecialToken"], "id")); };
    if (const int id = special(0); id >= 0) v_.bos = id, v_.add_bos = true;
    if (const int id = special(around.size() - 1); id >= 0) v_.eos = id, v_.add_eos = true;
  }
}

Vocabulary Reader::read() {
  const Json model = root_["model"];
  const std::string_view type = text(model, "type");
  if (!type.empty() && type != "BPE" && type != "WordPiece")
    fail("a model of type ", in_quotes(type), " is not supported (BPE and WordPiece are)");
  pieces(model);
  added();
  if (v_.pieces.empty()) fail("the vocabulary is empty");
  index();
  v_.unk = id_of(text(model, "unk_token"));
  splits();
  specials();
  if (type == "WordPiece") {
    v_.kind = Vocabulary::Kind::WordPiece;
    const Json longest = model["max_input_chars_per_word"];  // what its own reader takes when it is left out
    const std::int64_t characters = longest.absent() ? 100 : longest.integer().value_or(0);
    if (characters < 1) fail("'max_input_chars_per_word' is not a number of characters");
    v_.longest_word = static_cast<int>(std::min<std::int64_t>(characters, std::numeric_limits<int>::max()));
    wordpiece();
    return std::move(v_);
  }
  merges(model);
  if (!byte_level_) {
    sentencepiece();
    return std::move(v_);
  }
  v_.kind = Vocabulary::Kind::ByteBpe;
  v_.whole_words = flag(model, "ignore_merges");
  for (const Json& p : parts("normalizer", "normalizers")) v_.nfc = v_.nfc || text(p, "type") == "NFC";
  return std::move(v_);
}

}  // namespace

Vocabulary vocabulary_from_json(const MappedFile& file, Budget& budget) { return Reader(file, budget).read(); }

}  // namespace lc
