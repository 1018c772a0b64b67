// Byte-level BPE (Radford et al. 2019): text is split by patterns, its bytes are written as
// printable characters, and characters are joined in the order of the merges.
#include <algorithm>
#include <array>
#include <cstring>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <utf8proc.h>

#include "lightcone/io/text/joins.h"
#include "lightcone/io/printable.h"
#include "lightcone/io/text/tokenizer_kinds.h"
#include "lightcone/io/utf8.h"

namespace lc {
namespace {

// GPT-2's bytes as characters: printable Latin-1 stays, the rest moves above U+0100.
struct ByteAlphabet {
  std::array<std::string, 256> character;
  std::unordered_map<std::uint32_t, int> byte;
  ByteAlphabet() {
    std::uint32_t next = 256;
    for (int b = 0; b < 256; ++b) {
      const bool plain = (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
      const std::uint32_t c = plain ? static_cast<std::uint32_t>(b) : next++;
      utf8_append(character[static_cast<std::size_t>(b)], c);
      byte[c] = b;
    }
  }
};
const ByteAlphabet& alphabet() {
  static const ByteAlphabet a;
  return a;
}

constexpr std::size_t kMostPatterns = 64, kLongestPattern = 1u << 14;

std::string pcre2_words(int error) {
  PCRE2_UCHAR message[160];
  return pcre2_get_error_message(error, message, sizeof message) > 0 ? reinterpret_cast<const char*>(message)
                                                                     : "it cannot be used";
}

// A compiled pattern; safe to use from many threads. It came from a file: what it may cost has bounds.
class Pattern {
 public:
  explicit Pattern(std::string text) : text_(std::move(text)) {
    if (text_.size() > kLongestPattern)
      throw Error("tokenizer", str_cat("the split pattern ", in_quotes(text_), " is ", text_.size(), " bytes long"));
    int error = 0;
    PCRE2_SIZE at = 0;
    code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text_.data()), text_.size(),
                              PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &at, nullptr));
    if (!code_)
      throw Error("tokenizer",
                  str_cat("the split pattern ", in_quotes(text_), " is wrong at ", at, ": ", pcre2_words(error)));
    pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE);  // where it cannot, matching interprets
  }

  // Calls piece(begin, end) for matches and for what lies between them.
  template <class Piece>
  void split(std::string_view text, const Piece& piece) const {
    const Match match(text.size(), code_.get());
    std::size_t done = 0;
    for (std::size_t at = 0; at <= text.size();) {
      int rc = match.find(code_.get(), text, at, PCRE2_NO_UTF_CHECK);
      if (rc == PCRE2_ERROR_JIT_STACKLIMIT)  // the interpreter keeps what it has to come back to on the heap
        rc = match.find(code_.get(), text, at, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT);
      if (rc == PCRE2_ERROR_NOMATCH) break;
      if (rc < 0)
        throw Error("tokenizer", str_cat("the tokenizer's split pattern ", in_quotes(text_),
                                         " gives up on the text at byte ", at, ": ", pcre2_words(rc)));
      const PCRE2_SIZE* v = pcre2_get_ovector_pointer(match.data.get());
      if (v[1] <= v[0]) {  // an empty match cuts nothing; \K in a look-ahead puts the end before the beginning
        at = std::max(at, v[1]);
        at += std::max<std::size_t>(1, at < text.size() ? utf8_length(text, at) : 1);
        continue;
      }
      if (v[0] < done) throw Error("tokenizer", str_cat("the split pattern ", in_quotes(text_), " goes backwards"));
      if (v[0] > done) piece(done, v[0]);
      piece(v[0], v[1]);
      at = done = v[1];
    }
    if (done < text.size()) piece(done, text.size());
  }

 private:
  struct Match {
    Match(std::size_t bytes, const pcre2_code* code)
        : data(pcre2_match_data_create_from_pattern(code, nullptr), pcre2_match_data_free),
          limits(pcre2_match_context_create(nullptr), pcre2_match_context_free) {
      if (!data || !limits) throw std::bad_alloc();
      // An honest pattern goes back a few times over the run of characters it is in, not many times over the text.
      constexpr std::size_t kSteps = 100'000, kStepsEach = 16, kMost = 1u << 30;
      pcre2_set_match_limit(limits.get(), static_cast<std::uint32_t>(std::min(kSteps + kStepsEach * bytes, kMost)));
      pcre2_set_heap_limit(limits.get(), 64 << 10);  // KB
    }
    int find(const pcre2_code* code, std::string_view text, std::size_t at, std::uint32_t options) const {
      return pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), at, options, data.get(),
                         limits.get());
    }
    std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> data;
    std::unique_ptr<pcre2_match_context, decltype(&pcre2_match_context_free)> limits;
  };
  struct Free {
    void operator()(pcre2_code* c) const { pcre2_code_free(c); }
  };
  std::string text_;
  std::unique_ptr<pcre2_code, Free> code_;
};

class ByteBpe final : public Tokenizer {
 public:
  explicit ByteBpe(Vocabulary v);

 private:
  std::string bytes_of(int id) const override;
  void encode_text(std::string_view text, bool first, std::vector<int>& out) const override;
  void encode_word(std::string_view word, std::vector<int>& out) const;
  void index();
  StringMap ids_;
  // What symbols are joined by: bytes, then what merges make.
  Joins joins_;            // of these, by the merge
  std::vector<int> made_;  // by each merge
  std::vector<Pattern> patterns_;
};

ByteBpe::ByteBpe(Vocabulary v) : Tokenizer(std::move(v)) {
  for (int i = 0; i < size(); ++i) ids_.try_emplace(v_.pieces[static_cast<std::size_t>(i)], i);
  index();
  if (v_.split.size() > kMostPatterns)
    throw Error("tokenizer", str_cat(v_.split.size(), " split patterns; at most ", kMostPatterns, " are supported"));
  for (const std::string& s : v_.split) patterns_.emplace_back(s);
}

// A merge of what is neither a byte nor made by another merge never happens.
void ByteBpe::index() {
  constexpr int kBytes = 256;
  StringMap symbols;
  for (int b = 0; b < kBytes; ++b) symbols.try_emplace(alphabet().character[static_cast<std::size_t>(b)], b);
  std::vector<std::string> texts;
  texts.reserve(v_.merges.size());  // the map refers to them
  made_.reserve(v_.merges.size());
  for (const auto& [left, right] : v_.merges)
    made_.push_back(symbols.try_emplace(texts.emplace_back(left + right), kBytes + static_cast<int>(made_.size()))
                        .first->second);
  std::vector<Joins::Join> joins;
  joins.reserve(v_.merges.size());
  for (std::size_t i = 0; i < v_.merges.size(); ++i) {
    const auto left = symbols.find(v_.merges[i].first), right = symbols.find(v_.merges[i].second);
    if (left != symbols.end() && right != symbols.end())
      joins.push_back({left->second, right->second, static_cast<int>(i)});
  }
  joins_ = Joins(std::move(joins), kBytes + v_.merges.size());
}

std::string compose(std::string_view text) {
  utf8proc_uint8_t* made = nullptr;
  const auto n =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
                   &made, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(made, std::free);
  if (n < 0) throw Error("tokenizer", str_cat("cannot normalise the text: ", utf8proc_errmsg(n)));
  return {reinterpret_cast<const char*>(made), static_cast<std::size_t>(n)};
}

void ByteBpe::encode_text(std::string_view text, bool, std::vector<int>& out) const {
  const std::string composed = v_.nfc ? compose(text) : std::string();
  if (v_.nfc) text = composed;
  std::vector<std::string_view> words{text}, cut;
  for (const Pattern& p : patterns_) {
    cut.clear();
    for (std::string_view w : words)
      p.split(w, [&](std::size_t b, std::size_t e) { cut.push_back(w.substr(b, e - b)); });
    words.swap(cut);
  }
  for (std::string_view w : words) encode_word(w, out);
}

void ByteBpe::encode_word(std::string_view word, std::vector<int>& out) const {
  std::string s;
  for (char c : word) s += alphabet().character[static_cast<unsigned char>(c)];
  if (v_.whole_words)
    if (const auto it = ids_.find(s); it != ids_.end()) {
      out.push_back(it->second);
      return;
    }
  const auto number = [&](std::string_view character) {
    std::size_t size;
    return alphabet().byte.at(utf8_decode(character, 0, &size));
  };
  const auto join = [&](int left, int right) -> std::optional<Joined> {
    const int rank = joins_.find(left, right);
    if (rank < 0) return std::nullopt;
    return Joined{static_cast<double>(rank), made_[static_cast<std::size_t>(rank)]};
  };
  merge_symbols(s, number, join, [&](std::string_view symbol) {
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
    const auto it = alphabet().byte.find(c);
    if (it == alphabet().byte.end()) return p;  // not byte-level: a token added as it is
    s += static_cast<char>(it->second);
    at += n;
  }
  return s;
}

}  // namespace

std::shared_ptr<const Tokenizer> make_byte_bpe(Vocabulary v) { return std::make_shared<ByteBpe>(std::move(v)); }

std::vector<std::string> split_patterns(std::string_view pre) {
  // The patterns the models were trained with, as their tokenizer.json files give them.
  static const std::string gpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S))";
  const auto modern = [](const std::string& digits) {
    return R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|)" + digits +
           R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  };
  const auto is = [&](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), pre) != names.end();
  };
  if (is({"llama3", "llama-v3", "llama-bpe", "falcon3", "dbrx", "smaug-bpe", "chatglm-bpe", "glm4", "pixtral",
          "llama4"}))
    return {modern(R"(\p{N}{1,3})")};
  if (is({"qwen2", "stablelm2", "deepseek-r1-qwen", "hunyuan", "megrez"})) return {modern(R"(\p{N})")};
  if (is({"starcoder", "refact", "command-r", "smollm", "codeshell", "exaone", "minerva-7b"}))
    return {R"(\p{N})", gpt2};
  if (is({"deepseek-coder"}))
    return {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)", R"([\x{4E00}-\x{9FA5}\x{0800}-\x{4E00}\x{AC00}-\x{D7FF}]+)",
            R"(\p{N})"};
  if (is({"falcon"})) return {R"([\p{P}\$\+<=>\^~\|`]+)", gpt2, R"([0-9][0-9][0-9])"};
  if (is({"tekken"}))
    return {
        R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
  if (is({"gpt-2", "gpt2", "mpt", "olmo", "jais", "phi-2", "roberta-bpe", "jina-es", "jina-de", "a.x-4.0", "mellum"}))
    return {gpt2};
  if (is({"", "default"})) return {R"([\p{P}\$\+<=>\^~\|]+)", gpt2, R"(\p{N}+)", R"([0-9][0-9][0-9])"};
  throw Error("tokenizer", str_cat("the pre-tokenizer ", in_quotes(pre), " is not known"));
}

}  // namespace lc
