#include "lightcone/io/tokenizer_json.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include <nlohmann/json.hpp>

#include "lightcone/core/error.h"
#include "lightcone/io/weights_internal.h"

namespace lc {
namespace {

using Json = nlohmann::json;
using Type = Vocabulary::Type;
constexpr std::string_view kSpace = "\xE2\x96\x81";

class Reader {
 public:
  Reader(const MappedFile& file) : path_(file.path()), root_(io::parse_json(file.path())) {
    if (!root_.is_object() || !root_.contains("model") || !root_["model"].is_object()) fail("it has no model");
  }
  Vocabulary read();

 private:
  [[noreturn]] void fail(const std::string& what) const { throw Error("tokenizer", cat(path_, ": ", what)); }
  static std::string text(const Json& j, const char* key) {
    return j.is_object() && j.contains(key) && j[key].is_string() ? j[key].get<std::string>() : "";
  }
  static bool flag(const Json& j, const char* key, bool otherwise = false) {
    return j.is_object() && j.contains(key) && j[key].is_boolean() ? j[key].get<bool>() : otherwise;
  }
  // A component, or the members of a Sequence of them.
  std::vector<Json> parts(const char* key, const char* list) const {
    if (!root_.contains(key) || !root_[key].is_object()) return {};
    const Json& j = root_[key];
    if (text(j, "type") != "Sequence") return {j};
    return j.contains(list) && j[list].is_array() ? j[list].get<std::vector<Json>>() : std::vector<Json>();
  }
  void pieces(const Json& model);
  void added();
  void merges(const Json& model);
  void splits();
  void sentencepiece();
  void wordpiece();
  void specials();
  int id_of(const std::string& piece) const {
    const auto it = std::find(v_.pieces.begin(), v_.pieces.end(), piece);
    return it == v_.pieces.end() || piece.empty() ? -1 : static_cast<int>(it - v_.pieces.begin());
  }
  void put(std::int64_t id, const std::string& piece, Type t);

  std::string path_;
  Json root_;
  Vocabulary v_;
  bool byte_level_ = false;
};

void Reader::put(std::int64_t id, const std::string& piece, Type t) {
  if (id < 0 || id > 10'000'000) fail(cat("the token id ", id, " is out of range"));
  const auto i = static_cast<std::size_t>(id);
  if (i >= v_.pieces.size()) v_.pieces.resize(i + 1), v_.types.resize(i + 1, Type::Unused);
  v_.pieces[i] = piece, v_.types[i] = t;
}

void Reader::pieces(const Json& model) {
  if (!model.contains("vocab") || !model["vocab"].is_object()) fail("the model has no vocab");
  if (model["vocab"].size() > 5'000'000) fail("the vocabulary is too large");
  for (const auto& [piece, id] : model["vocab"].items()) {
    if (!id.is_number_integer()) fail(cat("the id of '", piece, "' is not a number"));
    put(id.get<std::int64_t>(), piece, Type::Normal);
  }
}

void Reader::added() {
  if (!root_.contains("added_tokens") || !root_["added_tokens"].is_array()) return;
  for (const Json& t : root_["added_tokens"]) {
    if (!t.is_object() || !t.contains("id") || !t["id"].is_number_integer()) fail("an added token has no id");
    put(t["id"].get<std::int64_t>(), text(t, "content"), flag(t, "special") ? Type::Control : Type::UserDefined);
  }
}

void Reader::merges(const Json& model) {
  if (!model.contains("merges") || !model["merges"].is_array()) fail("the model has no merges");
  for (const Json& m : model["merges"]) {
    if (m.is_array() && m.size() == 2 && m[0].is_string() && m[1].is_string()) {
      v_.merges.emplace_back(m[0].get<std::string>(), m[1].get<std::string>());
      continue;
    }
    const std::string s = m.is_string() ? m.get<std::string>() : "";
    const std::size_t space = s.find(' ', 1);
    if (space == std::string::npos) fail("a merge is not a pair");
    v_.merges.emplace_back(s.substr(0, space), s.substr(space + 1));
  }
}

void Reader::splits() {
  for (const Json& p : parts("pre_tokenizer", "pretokenizers")) {
    const std::string type = text(p, "type");
    if (type == "ByteLevel") {
      byte_level_ = true;
      if (flag(p, "use_regex", true)) v_.split.push_back(split_patterns("gpt2").front());
    } else if (type == "Split" && p.contains("pattern")) {
      std::string regex = text(p["pattern"], "Regex");
      if (regex.empty()) regex = "\\Q" + text(p["pattern"], "String") + "\\E";
      if (text(p, "behavior") == "Isolated" || text(p, "behavior") == "Removed") v_.split.push_back(regex);
    } else if (type == "Digits") {
      v_.split.push_back(flag(p, "individual_digits") ? "\\p{N}" : "\\p{N}+");
    } else if (type == "Punctuation") {
      v_.split.push_back("\\p{P}");
    } else if (type == "Metaspace") {
      const std::string scheme = text(p, "prepend_scheme");
      v_.space_prefix = scheme.empty() ? flag(p, "add_prefix_space", true) : scheme != "never";
    }
  }
}

// A piece's score is the rank of the merge that makes it.
void Reader::sentencepiece() {
  std::map<std::string, int> rank;
  for (std::size_t i = 0; i < v_.merges.size(); ++i)
    rank.try_emplace(v_.merges[i].first + v_.merges[i].second, static_cast<int>(i));
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
  const auto config_path = std::filesystem::path(path_).parent_path() / "tokenizer_config.json";
  std::error_code ec;
  const Json config = std::filesystem::exists(config_path, ec) ? io::parse_json(config_path.string()) : Json::object();
  const auto named = [&](const char* key, std::initializer_list<const char*> usual) {
    if (config.is_object() && config.contains(key)) {
      const int id = id_of(config[key].is_string() ? config[key].get<std::string>() : text(config[key], "content"));
      if (id >= 0) return id;
    }
    for (const char* name : usual)
      if (const int id = id_of(name); id >= 0) return id;
    return -1;
  };
  v_.bos = named("bos_token", {"<s>", "<|begin_of_text|>", "[CLS]"});
  v_.eos = named("eos_token", {"</s>", "<|end_of_text|>", "<|endoftext|>", "<|im_end|>", "[SEP]"});
  const auto surround = [&](const Json& template_) {
    if (!template_.is_array() || template_.empty()) return;
    const auto special = [&](const Json& j) {
      return j.is_object() && j.contains("SpecialToken") ? id_of(text(j["SpecialToken"], "id")) : -1;
    };
    if (const int id = special(template_.front()); id >= 0) v_.bos = id, v_.add_bos = true;
    if (const int id = special(template_.back()); id >= 0) v_.eos = id, v_.add_eos = true;
  };
  for (const Json& p : parts("post_processor", "processors"))
    if (text(p, "type") == "TemplateProcessing" && p.contains("single")) surround(p["single"]);
}

Vocabulary Reader::read() {
  const Json& model = root_["model"];
  const std::string type = text(model, "type");
  if (!type.empty() && type != "BPE" && type != "WordPiece")
    fail(cat("a model of type '", type, "' is not supported (BPE and WordPiece are)"));
  pieces(model);
  added();
  if (v_.pieces.empty()) fail("the vocabulary is empty");
  v_.unk = id_of(text(model, "unk_token"));
  splits();
  specials();
  if (type == "WordPiece") {
    v_.kind = Vocabulary::Kind::WordPiece;
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

Vocabulary vocabulary_from_json(const MappedFile& file) {
  try {
    return Reader(file).read();
  } catch (const Json::exception& e) {
    throw Error("tokenizer", cat(file.path(), ": ", e.what()));
  }
}

}  // namespace lc
