// Byte-level BPE (Radford et al. 2019): a text is split by patterns, its bytes are mapped to printable characters, and
// these are joined in the order of the merges.
#include <algorithm>

#include "lightcone/io/printable.h"
#include "lightcone/io/text/pieces/characters.h"
#include "lightcone/io/text/pieces/joins.h"
#include "lightcone/io/text/pieces/merge.h"
#include "lightcone/io/text/pieces/pattern.h"
#include "lightcone/io/text/tokenizer_kinds.h"
#include "lightcone/io/utf8.h"

namespace lc {
namespace {

constexpr std::size_t kMostPatterns = 64;

class ByteBpe final : public CutTokenizer {
 public:
  explicit ByteBpe(Vocabulary v);

 private:
  std::string bytes_of(int id) const override;
  void encode_text(std::string_view text, bool first, std::vector<int>& out) const override;
  void encode_word(std::string_view word, std::vector<int>& out) const;
  void index();
  StringMap ids_;
  // Symbols of joins_: the bytes, then the results of the merges.
  Joins joins_;            // value: index of the merge
  std::vector<int> made_;  // result of each merge
  std::vector<Pattern> patterns_;
};

ByteBpe::ByteBpe(Vocabulary v) : CutTokenizer(std::move(v)) {
  for (int i = 0; i < size(); ++i) ids_.try_emplace(v_.pieces[static_cast<std::size_t>(i)], i);
  index();
  if (v_.split.size() > kMostPatterns)
    throw Error("tokenizer", str_cat(v_.split.size(), " split patterns; at most ", kMostPatterns, " are supported"));
  for (const std::string& s : v_.split) patterns_.emplace_back(s);
}

// A merge of a symbol that is neither a byte nor the result of a merge never happens.
void ByteBpe::index() {
  constexpr int kBytes = 256;
  StringMap symbols;
  for (int b = 0; b < kBytes; ++b) symbols.try_emplace(byte_alphabet().character[static_cast<std::size_t>(b)], b);
  std::vector<std::string> texts;
  texts.reserve(v_.merges.size());  // the map refers to its elements
  made_.reserve(v_.merges.size());
  for (const auto& [left, right] : v_.merges)
    made_.push_back(
        symbols.try_emplace(texts.emplace_back(left + right), kBytes + static_cast<int>(made_.size())).first->second);
  std::vector<Joins::Join> joins;
  joins.reserve(v_.merges.size());
  for (std::size_t i = 0; i < v_.merges.size(); ++i) {
    const auto left = symbols.find(v_.merges[i].first), right = symbols.find(v_.merges[i].second);
    if (left != symbols.end() && right != symbols.end())
      joins.push_back({left->second, right->second, static_cast<int>(i)});
  }
  joins_ = Joins(std::move(joins), kBytes + v_.merges.size());
}

void ByteBpe::encode_text(std::string_view text, bool, std::vector<int>& out) const {
  const std::string composed = v_.nfc ? normal_form(text, NormalForm::C) : std::string();
  if (v_.nfc) text = composed;
  std::vector<std::string_view> words{text}, cut;
  for (const Pattern& p : patterns_) {
    cut.clear();
    Pattern::Matcher matcher(p);
    for (std::string_view w : words) {
      std::size_t done = 0;
      matcher.each(w, [&](std::size_t begin, std::size_t end) {
        if (begin == end) return;  // splits nothing
        if (begin > done) cut.push_back(w.substr(done, begin - done));
        cut.push_back(w.substr(begin, end - begin));
        done = end;
      });
      if (done < w.size()) cut.push_back(w.substr(done));
    }
    words.swap(cut);
  }
  for (std::string_view w : words) encode_word(w, out);
}

void ByteBpe::encode_word(std::string_view word, std::vector<int>& out) const {
  std::string s;
  for (char c : word) s += byte_alphabet().character[static_cast<unsigned char>(c)];
  if (v_.whole_words)
    if (const auto it = ids_.find(s); it != ids_.end()) {
      out.push_back(it->second);
      return;
    }
  const auto number = [&](std::string_view character) {
    std::size_t size;
    return byte_alphabet().byte_of(utf8_decode(character, 0, &size));
  };
  const auto join = [&](int left, int right) -> std::optional<Joined> {
    const int rank = joins_.find(left, right);
    if (rank < 0) return std::nullopt;
    return Joined{static_cast<double>(rank), made_[static_cast<std::size_t>(rank)]};
  };
  merge_characters(s, number, join, [&](std::string_view symbol) {
    if (const auto it = ids_.find(symbol); it != ids_.end()) {
      out.push_back(it->second);
      return;
    }
    for (std::size_t at = 0; at < symbol.size();) {
      const std::size_t n = std::max<std::size_t>(1, utf8_length(symbol, at));
      const auto one = ids_.find(symbol.substr(at, n));
      if (one != ids_.end()) out.push_back(one->second);
      else if (v_.unk >= 0) out.push_back(v_.unk);
      at += n;
    }
  });
}

std::string ByteBpe::bytes_of(int id) const {
  const Vocabulary::Type t = type(id);
  if (t == Vocabulary::Type::Control) return "";
  const std::string& p = v_.pieces[static_cast<std::size_t>(id)];
  if (t == Vocabulary::Type::UserDefined) return p;
  std::string s;
  for (std::size_t at = 0; at < p.size();) {
    std::size_t n;
    const std::uint32_t c = utf8_decode(p, at, &n);
    const int byte = byte_alphabet().byte_of(c);
    if (byte < 0) return p;  // not byte-level: an added token in plain text
    s += static_cast<char>(byte);
    at += n;
  }
  return s;
}

}  // namespace

std::shared_ptr<const Tokenizer> make_byte_bpe(Vocabulary v) { return std::make_shared<ByteBpe>(std::move(v)); }

std::vector<std::string> split_patterns(std::string_view pre) {
  // The patterns with which the models were trained, as in their tokenizer.json files.
  static const std::string gpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S))";
  const auto modern = [](const std::string& digits) {
    return R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|)" + digits +
           R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  };
  const auto is = [&](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), pre) != names.end();
  };
  if (is({"llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "dbrx", "smaug-bpe", "chatglm-bpe", "glm4",
          "pixtral", "midm-2.0", "lfm2"}))
    return {modern(R"(\p{N}{1,3})")};
  if (is({"qwen2", "stablelm2", "deepseek-r1-qwen", "hunyuan", "megrez", "grok-2"})) return {modern(R"(\p{N})")};
  if (is({"starcoder", "refact", "command-r", "smollm", "codeshell", "exaone", "minerva-7b"}))
    return {R"(\p{N})", gpt2};
  if (is({"deepseek-coder"}))
    return {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)", R"([\x{4E00}-\x{9FA5}\x{0800}-\x{4E00}\x{AC00}-\x{D7FF}]+)",
            R"(\p{N})"};
  if (is({"deepseek-llm"}))
    return {
        R"([\r\n])",
        R"(\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ\x{10400}-\x{1044F}𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+)",
        R"(\s?[!-/:-~！-／：-～‘-‟　-。]+)",
        R"(\s+$)",
        R"([\x{4E00}-\x{9FA5}\x{0800}-\x{4E00}\x{AC00}-\x{D7FF}]+)",
        R"(\p{N}+)"};
  if (is({"deepseek-v3", "hunyuan-dense", "joyai-llm"}))
    return {
        R"(\p{N}{1,3})", R"([\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)",
        R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
  if (is({"gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"}))
    return {
        R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
  if (is({"bloom", "poro-chat", "gpt3-finnish"})) return {R"( ?[^(\s|.,!?…。，、।۔،)]+)"};
  if (is({"viking"})) return {R"( ?[^(\s|.,!?…。，、।۔،)]+)", R"(\p{N})"};
  if (is({"falcon"})) return {R"([\p{P}\$\+<=>\^~\|`]+)", gpt2, R"([0-9][0-9][0-9])"};
  if (is({"tekken"}))
    return {
        R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
  if (is({"gpt-2", "gpt2", "mpt", "olmo", "jais", "phi-2", "roberta-bpe", "jina-es", "jina-de", "a.x-4.0", "mellum",
          "trillion", "granite-docling", "exaone4", "jina-v2-code", "jina-v2-de", "jina-v2-es"}))
    return {gpt2};
  if (is({"", "default"})) return {R"([\p{P}\$\+<=>\^~\|]+)", gpt2, R"(\p{N}+)", R"([0-9][0-9][0-9])"};
  throw Error("tokenizer", str_cat("the pre-tokenizer ", in_quotes(pre), " is not known"));
}

}  // namespace lc
