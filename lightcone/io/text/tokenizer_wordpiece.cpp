// BERT's WordPiece: texts are converted to lower case without accents and split at spaces and punctuation. Each word is
// covered by the longest pieces from the left, or is unknown as a whole.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include <utf8proc.h>

#include "lightcone/base/error.h"
#include "lightcone/io/text/pieces/characters.h"
#include "lightcone/io/text/pieces/clean_up.h"
#include "lightcone/io/text/pieces/longest_match.h"
#include "lightcone/io/text/tokenizer_kinds.h"
#include "lightcone/io/utf8.h"

namespace lc {
namespace {

class WordPiece final : public CutTokenizer {
 public:
  explicit WordPiece(Vocabulary v) : CutTokenizer(std::move(v)), pieces_(all_pieces(), false) {
    if (v_.unk < 0) throw Error("tokenizer", "a WordPiece vocabulary needs an unknown token");
  }
  std::string bytes_of(int id) const override {
    const std::string& p = v_.pieces[static_cast<std::size_t>(id)];
    if (type(id) == Vocabulary::Type::Control) return "";
    return p.starts_with(kSpace) ? " " + p.substr(kSpace.size()) : p;
  }
  std::string text_of(std::span<const int> ids) const override {
    return cleaned_up(CutTokenizer::text_of(ids), CleanUp::Llama);
  }

 private:
  void encode_text(std::string_view text, bool first, std::vector<int>& out) const override;
  void encode_word(const std::string& word, std::vector<int>& out) const;
  std::vector<std::pair<std::string_view, int>> all_pieces() const {
    std::vector<std::pair<std::string_view, int>> all;
    for (int i = 0; i < size(); ++i) all.emplace_back(v_.pieces[static_cast<std::size_t>(i)], i);
    return all;
  }
  LongestMatch pieces_;
};

enum class Class { Letter, Space, Drop, Alone };
Class classify(std::uint32_t c, bool strip_accents) {
  const auto code = static_cast<utf8proc_int32_t>(c);
  switch (utf8proc_category(code)) {
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP: return Class::Space;
    case UTF8PROC_CATEGORY_CC:
      return c == '\t' || c == '\n' || c == '\r' || c == 11 || c == 12 || c == 0x85 ? Class::Space : Class::Drop;
    case UTF8PROC_CATEGORY_CF: return Class::Drop;
    case UTF8PROC_CATEGORY_MN: return strip_accents ? Class::Drop : Class::Letter;
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO: return Class::Alone;
    case UTF8PROC_CATEGORY_SM:
    case UTF8PROC_CATEGORY_SC:
    case UTF8PROC_CATEGORY_SK:
    case UTF8PROC_CATEGORY_SO: return c < 0x7F ? Class::Alone : Class::Letter;
    default: break;
  }
  if (c == 0 || c == 0xFFFD) return Class::Drop;
  return is_chinese(c) ? Class::Alone : Class::Letter;
}

void WordPiece::encode_text(std::string_view text, bool, std::vector<int>& out) const {
  utf8proc_uint8_t* made = nullptr;
  const auto n =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
                   &made, static_cast<utf8proc_option_t>(v_.strip_accents ? UTF8PROC_STABLE | UTF8PROC_DECOMPOSE : 0));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(made, std::free);
  if (n < 0) throw Error("tokenizer", str_cat("cannot normalise the text: ", utf8proc_errmsg(n)));
  const std::string_view s(reinterpret_cast<const char*>(made), static_cast<std::size_t>(n));
  std::string word;
  const auto flush = [&] {
    if (!word.empty()) encode_word(word, out), word.clear();
  };
  for (std::size_t at = 0; at < s.size();) {
    std::size_t length;
    const std::uint32_t c = utf8_decode(s, at, &length);
    at += length;
    const Class k = classify(c, v_.strip_accents);
    if (k == Class::Drop) continue;
    if (k != Class::Letter) flush();
    if (k != Class::Space)
      utf8_append(word,
                  v_.lowercase ? static_cast<std::uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))) : c);
    if (k == Class::Alone) flush();
  }
  flush();
}

void WordPiece::encode_word(const std::string& word, std::vector<int>& out) const {
  const std::size_t before = out.size();
  const auto characters =
      std::count_if(word.begin(), word.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
  const bool too_long = v_.longest_word > 0 && characters > v_.longest_word;
  if (!too_long && pieces_.cover(std::string(kSpace) + word, [&](int id, std::size_t) { out.push_back(id); })) return;
  out.resize(before);
  out.push_back(v_.unk);
}

}  // namespace

std::shared_ptr<const Tokenizer> make_wordpiece(Vocabulary v) { return std::make_shared<WordPiece>(std::move(v)); }

}  // namespace lc
