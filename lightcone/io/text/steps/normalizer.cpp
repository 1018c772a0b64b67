#include "lightcone/io/text/steps/normalizer.h"

#include <algorithm>
#include <memory>

#include <utf8proc.h>

#include "lightcone/io/text/pieces/characters.h"
#include "lightcone/io/text/pieces/charsmap.h"
#include "lightcone/io/text/pieces/pattern.h"
#include "lightcone/io/text/steps/fields.h"

namespace lc {
namespace {

// Calls each(character, its text, to) for each character; it appends the replacement to `to`.
template <class Each>
void by_character(NormalText& t, const Each& each) {
  std::string out;
  out.reserve(t.text.size());
  std::size_t from_start = 0;
  each_character(t.text, [&](std::uint32_t c, std::size_t begin, std::size_t end) {
    each(c, std::string_view(t.text).substr(begin, end - begin), out);
    if (end <= t.from_start) from_start = out.size();
  });
  t.text = std::move(out), t.from_start = from_start;
}

void strip(NormalText& t, bool left, bool right) {
  std::size_t begin = t.text.size(), end = 0;
  each_character(t.text, [&](std::uint32_t c, std::size_t b, std::size_t e) {
    if (is_white_space(c)) return;
    begin = std::min(begin, b), end = e;
  });
  if (!left) begin = 0;
  if (!right) end = t.text.size();
  t.text = end > begin ? t.text.substr(begin, end - begin) : "";
  t.from_start = std::min(t.from_start > begin ? t.from_start - begin : 0, t.text.size());
}

void to_form(NormalText& t, NormalForm form) {
  std::size_t from_start = 0;
  std::string made = normal_form(t.text, form);
  if (t.from_start > 0) {
    const std::string begin = normal_form(std::string_view(t.text).substr(0, t.from_start), form);
    from_start = made.starts_with(begin) ? begin.size() : std::max<std::size_t>(1, utf8_length(made, 0));
  }
  t.text = std::move(made), t.from_start = std::min(from_start, t.text.size());
}

void remove_accents(NormalText& t, bool (*accent)(std::uint32_t)) {
  by_character(t, [&](std::uint32_t c, std::string_view s, std::string& to) {
    if (!accent(c)) to += s;
  });
}

void lower(NormalText& t) {
  by_character(t, [](std::uint32_t c, std::string_view, std::string& to) { append_lower(to, c); });
}

void spell_bytes(NormalText& t) {
  by_character(t, [](std::uint32_t, std::string_view s, std::string& to) {
    for (const char b : s) to += byte_alphabet().character[static_cast<unsigned char>(b)];
  });
}

// Applies SentencePiece's nmt rules, which drop some characters and replace others by a space.
void nmt(NormalText& t) {
  by_character(t, [](std::uint32_t c, std::string_view s, std::string& to) {
    if ((c >= 1 && c <= 8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F) return;
    const bool space = c == 9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 || (c >= 0x200B && c <= 0x200F) ||
                       c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
    to += space ? std::string_view(" ") : s;
  });
}

struct BertOptions {
  bool clean, chinese, accents, lowercase;
};

void bert(NormalText& t, const BertOptions& o) {
  if (o.clean)
    by_character(t, [](std::uint32_t c, std::string_view s, std::string& to) {
      if (c != 0 && c != 0xFFFD && !is_control(c)) to += is_white_space(c) ? std::string_view(" ") : s;
    });
  if (o.chinese)
    by_character(t, [](std::uint32_t c, std::string_view s, std::string& to) {
      if (is_chinese(c)) to += ' ', to += s, to += ' ';
      else to += s;
    });
  if (o.accents) to_form(t, NormalForm::D), remove_accents(t, is_nonspacing_mark);
  if (o.lowercase) lower(t);
}

// Applies SentencePiece's table as Hugging Face does: first to whole grapheme clusters of less than six bytes, where
// the shortest rule for a prefix replaces the whole cluster, then to characters.
void map_graphemes(NormalText& t, const CharsMap& map) {
  std::string out;
  std::size_t from_start = 0;
  const std::size_t limit = most_bytes_of(t.text.size());
  const auto grapheme = [&](std::string_view g, std::size_t begin) {
    if (out.size() > limit) throw Error("tokenizer", "the tokenizer's table of characters makes too much of the text");
    const std::optional<CharsMap::Rule> whole = g.size() < 6 ? map.shortest(g) : std::nullopt;
    if (whole) out += whole->by;
    else
      each_character(g, [&](std::uint32_t, std::size_t b, std::size_t e) {
        const std::string_view one = g.substr(b, e - b);
        const std::optional<CharsMap::Rule> rule = map.shortest(one);
        out += rule ? rule->by : one;
        if (begin + e <= t.from_start) from_start = out.size();
      });
    if (begin + g.size() <= t.from_start) from_start = out.size();
    else if (whole && begin < t.from_start && !whole->by.empty())  // its first character is from the start
      from_start = out.size() - whole->by.size() + std::max<std::size_t>(1, utf8_length(whole->by, 0));
  };
  std::size_t begin = 0;
  utf8proc_int32_t before = -1, state = 0;
  each_character(t.text, [&](std::uint32_t c, std::size_t b, std::size_t) {
    const auto code = static_cast<utf8proc_int32_t>(c);
    if (before >= 0 && utf8proc_grapheme_break_stateful(before, code, &state)) {
      grapheme(std::string_view(t.text).substr(begin, b - begin), begin);
      begin = b;
    }
    before = code;
  });
  if (begin < t.text.size()) grapheme(std::string_view(t.text).substr(begin), begin);
  t.text = std::move(out), t.from_start = from_start;
}

std::string from_base64(std::string_view text, const Fields& f) {
  std::string out;
  std::uint32_t bits = 0;
  int held = 0;
  for (const char c : text) {
    if (c == '=') break;
    const int v = c >= 'A' && c <= 'Z'   ? c - 'A'
                  : c >= 'a' && c <= 'z' ? c - 'a' + 26
                  : c >= '0' && c <= '9' ? c - '0' + 52
                  : c == '+'             ? 62
                  : c == '/'             ? 63
                                         : -1;
    if (v < 0) f.fail("'precompiled_charsmap' is not base64");
    bits = bits << 6 | static_cast<std::uint32_t>(v), held += 6;
    if (held >= 8) held -= 8, out += static_cast<char>(bits >> held & 0xFF);
  }
  return out;
}

std::function<void(NormalText&)> normalizing_step(io::Json j, Budget& budget) {
  const std::string_view type = type_of(j, "the normalizer");
  const std::string what = str_cat("the normalizer ", in_quotes(type));
  const auto plain = [&](void (*step)(NormalText&)) -> std::function<void(NormalText&)> {
    return Fields(j, what, {"type"}), step;
  };
  const auto form = [&](NormalForm n) -> std::function<void(NormalText&)> {
    return Fields(j, what, {"type"}), [n](NormalText& t) { to_form(t, n); };
  };
  if (type == "NFC") return form(NormalForm::C);
  if (type == "NFD") return form(NormalForm::D);
  if (type == "NFKC") return form(NormalForm::KC);
  if (type == "NFKD") return form(NormalForm::KD);
  if (type == "Lowercase") return plain(lower);
  if (type == "Nmt") return plain(nmt);
  if (type == "ByteLevel") return plain(spell_bytes);
  if (type == "StripAccents") return plain([](NormalText& t) { remove_accents(t, is_mark); });
  if (type == "Strip") {
    const Fields f(j, what, {"type", "strip_left", "strip_right"});
    return [left = f.flag("strip_left", true), right = f.flag("strip_right", true)](NormalText& t) {
      strip(t, left, right);
    };
  }
  if (type == "BertNormalizer") {
    const Fields f(j, what, {"type", "clean_text", "handle_chinese_chars", "strip_accents", "lowercase"});
    const bool lowercase = f.flag("lowercase", true);
    const BertOptions o{f.flag("clean_text", true), f.flag("handle_chinese_chars", true),
                        f.flag("strip_accents", lowercase), lowercase};
    return [o](NormalText& t) { bert(t, o); };
  }
  if (type == "Prepend") {
    const std::string before(Fields(j, what, {"type", "prepend"}).required_text("prepend"));
    budget.take(2 * before.size());
    return [before](NormalText& t) {
      if (t.text.empty()) return;
      if (t.from_start > 0) t.from_start += before.size();
      t.text.insert(0, before);
    };
  }
  if (type == "Replace") {
    const Fields f(j, what, {"type", "pattern", "content"});
    const PatternField p = pattern_field(f);
    budget.take(2 * (p.text.size() + f.text("content").size()) + 4096);
    return [r = Replacement(p.text, p.regex, f.required_text("content"))](NormalText& t) { r.apply(t); };
  }
  if (type == "Precompiled") {
    const Fields f(j, what, {"type", "precompiled_charsmap"});
    const std::string_view text = f.required_text("precompiled_charsmap");
    budget.take(2 * text.size());
    return [map = std::make_shared<const CharsMap>(from_base64(text, f))](NormalText& t) { map_graphemes(t, *map); };
  }
  throw Error("tokenizer", str_cat("the normalizer ", in_quotes(type), " is not known"));
}

}  // namespace

std::size_t most_bytes_of(std::size_t text) { return (1u << 20) + 256 * text; }

Replacement::Replacement(std::string_view pattern, bool regex, std::string_view by) {
  // Most files replace one text by another, which needs no regular expression.
  const auto literal = [from = std::string(pattern), to = std::string(by)](NormalText& t) {
    std::string out;
    std::size_t done = 0, from_start = 0;
    const std::size_t limit = most_bytes_of(t.text.size());
    const auto kept = [&](std::size_t end) {
      out.append(t.text, done, end - done);
      if (done < t.from_start) from_start = out.size() - (end > t.from_start ? end - t.from_start : 0);
    };
    for (std::size_t at; (at = t.text.find(from, done)) != std::string::npos; done = at + from.size()) {
      kept(at);
      out += to;
      if (at + from.size() <= t.from_start) from_start = out.size();
      if (out.size() > limit) throw Error("tokenizer", "the tokenizer's replacements make too much of the text");
    }
    kept(t.text.size());
    t.text = std::move(out), t.from_start = from_start;
  };
  if (!regex && !pattern.empty()) {
    apply_ = literal;
    return;
  }
  const auto p = std::make_shared<const Pattern>(std::string(pattern),
                                                 regex ? Pattern::Syntax::Oniguruma : Pattern::Syntax::Literal);
  apply_ = [p, to = std::string(by)](NormalText& t) {
    if (t.text.empty()) return;
    std::string out;
    std::size_t done = 0, from_start = 0;
    const std::size_t limit = most_bytes_of(t.text.size());
    const auto kept = [&](std::size_t end) {
      out.append(t.text, done, end - done);
      if (done < t.from_start) from_start = out.size() - (end > t.from_start ? end - t.from_start : 0);
    };
    Pattern::Matcher(*p).each(t.text, [&](std::size_t begin, std::size_t end) {
      kept(begin);
      out += to;
      done = end;
      if (end <= t.from_start) from_start = out.size();
      if (out.size() > limit) throw Error("tokenizer", "the tokenizer's replacements make too much of the text");
    });
    kept(t.text.size());
    t.text = std::move(out), t.from_start = from_start;
  };
}

void Replacement::apply(NormalText& t) const { apply_(t); }

Normalizer::Normalizer(io::Json normalizer, Budget& budget) {
  for (const io::Json& j : components(normalizer, "the normalizer", "normalizers")) {
    budget.take(256);
    steps_.push_back(normalizing_step(j, budget));
  }
}

void Normalizer::apply(NormalText& t) const {
  const std::size_t limit = most_bytes_of(t.text.size());
  for (const Step& s : steps_) {
    s(t);
    if (t.text.size() > limit) throw Error("tokenizer", "the tokenizer's normalizers make too much of the text");
  }
}

std::string Normalizer::operator()(std::string_view text) const {
  NormalText t{std::string(text), 0};
  apply(t);
  return std::move(t.text);
}

}  // namespace lc
