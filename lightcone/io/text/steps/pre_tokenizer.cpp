#include "lightcone/io/text/steps/pre_tokenizer.h"

#include <algorithm>
#include <memory>

#include "lightcone/io/text/pieces/characters.h"
#include "lightcone/io/text/pieces/pattern.h"
#include "lightcone/io/text/steps/fields.h"
#include "lightcone/io/text/steps/scripts.h"

namespace lc {
namespace {

using Piece = Pieces::Piece;

// The treatment of delimiters.
enum class Behavior { Removed, Isolated, MergedWithPrevious, MergedWithNext, Contiguous };

// A part of a text: a delimiter, or the text between two of them.
struct Part {
  std::size_t begin, end;
  bool match;
};

// Joins parts according to the behaviour. Parts to be removed keep `match`.
void join_parts(std::vector<Part>& parts, Behavior behavior) {
  if (behavior == Behavior::Removed) return;
  const auto fold = [&](auto begin, auto end, bool backwards) {
    std::vector<Part> made;
    bool before = false;
    for (auto at = begin; at != end; ++at) {
      const bool join = behavior == Behavior::Contiguous ? at->match == before : at->match && !before;
      before = at->match;
      if (join && !made.empty()) (backwards ? made.back().begin = at->begin : made.back().end = at->end);
      else made.push_back({at->begin, at->end, false});
    }
    return made;
  };
  if (behavior == Behavior::Isolated) {
    for (Part& p : parts) p.match = false;
  } else if (behavior == Behavior::MergedWithNext) {
    parts = fold(parts.rbegin(), parts.rend(), true);
    std::reverse(parts.begin(), parts.end());
  } else {
    parts = fold(parts.begin(), parts.end(), false);
  }
}

// Splits every piece. find(text, parts) returns the parts of one piece.
template <class Find>
void cut(Pieces& p, Behavior behavior, const Find& find) {
  std::vector<Piece> made;
  made.reserve(p.pieces.size());
  std::vector<Part> parts;
  for (const Piece& piece : p.pieces) {
    parts.clear();
    find(p.view(piece), parts);
    join_parts(parts, behavior);
    for (const Part& part : parts)
      if (!part.match && part.end > part.begin)
        made.push_back({piece.begin + part.begin, piece.begin + part.end,
                        piece.from_start > part.begin ? std::min(piece.from_start, part.end) - part.begin : 0});
  }
  p.pieces = std::move(made);
}

template <class Is>
void cut_at(Pieces& p, Behavior behavior, const Is& is) {
  cut(p, behavior, [&](std::string_view text, std::vector<Part>& parts) {
    std::size_t done = 0;
    each_character(text, [&](std::uint32_t c, std::size_t begin, std::size_t end) {
      if (!is(c)) return;
      if (done < begin) parts.push_back({done, begin, false});
      parts.push_back({begin, end, true});
      done = end;
    });
    if (done < text.size()) parts.push_back({done, text.size(), false});
  });
}

void cut_by(Pieces& p, const Pattern& pattern, Behavior behavior, bool invert) {
  Pattern::Matcher matcher(pattern);
  cut(p, behavior, [&](std::string_view text, std::vector<Part>& parts) {
    std::size_t done = 0;
    matcher.each(text, [&](std::size_t begin, std::size_t end) {
      if (done < begin) parts.push_back({done, begin, invert});
      parts.push_back({begin, end, !invert});
      done = end;
    });
    if (done < text.size()) parts.push_back({done, text.size(), invert});
  });
}

// Splits into words and runs of other characters, and drops white space.
void cut_words(Pieces& p) {
  cut(p, Behavior::Removed, [](std::string_view text, std::vector<Part>& parts) {
    int before = 0;
    each_character(text, [&](std::uint32_t c, std::size_t begin, std::size_t end) {
      const int kind = is_word_character(c) ? 1 : is_white_space(c) ? 0 : 2;
      if (kind != 0 && kind == before) parts.back().end = end;
      else if (kind != 0) parts.push_back({begin, end, false});
      before = kind;
    });
  });
}

// Splits at changes of the script. As in the reference, text before the first character with a script is dropped.
void cut_scripts(Pieces& p) {
  cut(p, Behavior::Isolated, [](std::string_view text, std::vector<Part>& parts) {
    int last = -1;
    each_character(text, [&](std::uint32_t c, std::size_t begin, std::size_t end) {
      const int script = script_of(c);
      if (script != kAnyScript && script != last) parts.push_back({begin, begin, false});
      if (script != kAnyScript) last = script;
      if (!parts.empty()) parts.back().end = end;
    });
  });
}

void cut_lengths(Pieces& p, std::size_t length) {
  cut(p, Behavior::Isolated, [&](std::string_view text, std::vector<Part>& parts) {
    std::size_t held = length;
    each_character(text, [&](std::uint32_t, std::size_t begin, std::size_t end) {
      if (held == length) parts.push_back({begin, begin, false}), held = 0;
      parts.back().end = end, ++held;
    });
  });
}

// Rewrites every piece. rewrite(piece, its text, to) appends the new text and returns the number of its bytes that are
// from the start.
template <class Rewrite>
void rewritten(Pieces& p, const Rewrite& rewrite) {
  std::string out;
  out.reserve(p.text.size() + p.pieces.size());
  for (Piece& piece : p.pieces) {
    const std::size_t begin = out.size();
    piece.from_start = rewrite(piece, p.view(piece), out);
    piece.begin = begin, piece.end = out.size();
  }
  p.text = std::move(out);
}

void byte_level(Pieces& p, bool prefix, const Pattern* words) {
  if (prefix)
    rewritten(p, [](const Piece& piece, std::string_view text, std::string& to) {
      const bool spaced = text.starts_with(' ');
      if (!spaced) to += ' ';
      to += text;
      return piece.from_start > 0 && !spaced ? piece.from_start + 1 : piece.from_start;
    });
  if (words) cut_by(p, *words, Behavior::Isolated, false);
  rewritten(p, [](const Piece& piece, std::string_view text, std::string& to) {
    const std::size_t begin = to.size();
    std::size_t from_start = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      to += byte_alphabet().character[static_cast<unsigned char>(text[i])];
      if (i < piece.from_start) from_start = to.size() - begin;
    }
    return from_start;
  });
}

struct Metaspace {
  std::string replacement;
  enum Scheme { Always, First, Never } scheme;
  bool split;
};

void metaspace(Pieces& p, const Metaspace& m) {
  rewritten(p, [&](const Piece& piece, std::string_view text, std::string& to) {
    const std::size_t begin = to.size();
    const bool spaced = text.starts_with(' ') || text.starts_with(m.replacement);
    const bool prefix = !spaced && !text.empty() &&
                        (m.scheme == Metaspace::Always || (m.scheme == Metaspace::First && piece.from_start > 0));
    std::size_t from_start = 0;
    if (prefix) to += m.replacement;
    for (std::size_t i = 0; i < text.size(); ++i) {
      text[i] == ' ' ? to.append(m.replacement) : to.append(1, text[i]);
      if (i < piece.from_start) from_start = to.size() - begin;
    }
    return from_start;
  });
  if (!m.split) return;
  std::size_t size;
  const std::uint32_t mark = utf8_decode(m.replacement, 0, &size);
  cut_at(p, Behavior::MergedWithNext, [mark](std::uint32_t c) { return c == mark; });
}

Metaspace metaspace_of(const Fields& f) {
  const int scheme = f.choice("prepend_scheme", {"always", "first", "never"}, Metaspace::Always);
  const bool prefix = f.flag("add_prefix_space", true);
  if (!prefix && f.has("prepend_scheme") && scheme != Metaspace::Never)
    f.fail("'add_prefix_space' is false and 'prepend_scheme' is ", in_quotes(f.text("prepend_scheme")));
  f.text("str_rep");  // repeats the replacement; the reference ignores it, too
  return {std::string(f.character("replacement")), prefix ? static_cast<Metaspace::Scheme>(scheme) : Metaspace::Never,
          f.flag("split", true)};
}

const std::shared_ptr<const Pattern>& gpt2_words() {
  static const auto p = std::make_shared<const Pattern>(
      R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", Pattern::Syntax::Oniguruma);
  return p;
}

Behavior behavior_of(const Fields& f) {
  return static_cast<Behavior>(
      f.choice("behavior", {"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"}, 1));
}

std::function<void(Pieces&)> splitting_step(const Fields& f, Budget& budget) {
  const PatternField p = pattern_field(f);
  budget.take(2 * p.text.size() + 8192);
  const auto pattern = std::make_shared<const Pattern>(std::string(p.text),
                                                       p.regex ? Pattern::Syntax::Oniguruma : Pattern::Syntax::Literal);
  if (!f.has("behavior")) f.fail("it has no 'behavior'");
  return [pattern, behavior = behavior_of(f), invert = f.flag("invert")](Pieces& t) {
    cut_by(t, *pattern, behavior, invert);
  };
}

std::function<void(Pieces&)> cutting_step(io::Json j, Budget& budget) {
  const std::string_view type = type_of(j, "the pre-tokenizer");
  const std::string what = str_cat("the pre-tokenizer ", in_quotes(type));
  const auto plain = [&](void (*step)(Pieces&)) -> std::function<void(Pieces&)> {
    return Fields(j, what, {"type"}), step;
  };
  if (type == "Whitespace") return plain(cut_words);
  if (type == "UnicodeScripts") return plain(cut_scripts);
  if (type == "WhitespaceSplit") return plain([](Pieces& p) { cut_at(p, Behavior::Removed, is_white_space); });
  if (type == "BertPreTokenizer")
    return plain([](Pieces& p) {
      cut_at(p, Behavior::Removed, is_white_space);
      cut_at(p, Behavior::Isolated, is_sign_or_punctuation);
    });
  if (type == "ByteLevel") {
    const Fields f(j, what, {"type", "add_prefix_space", "trim_offsets", "use_regex"});
    f.flag("trim_offsets");  // for offsets in the text, which are not computed
    return [prefix = f.flag("add_prefix_space"), words = f.flag("use_regex", true) ? gpt2_words() : nullptr](
               Pieces& p) { byte_level(p, prefix, words.get()); };
  }
  if (type == "Metaspace")
    return [m = metaspace_of(
                Fields(j, what, {"type", "replacement", "add_prefix_space", "prepend_scheme", "split", "str_rep"}))](
               Pieces& p) { metaspace(p, m); };
  if (type == "CharDelimiterSplit") {
    const std::string_view by = Fields(j, what, {"type", "delimiter"}).character("delimiter");
    std::size_t size;
    return [c = utf8_decode(by, 0, &size)](Pieces& p) {
      cut_at(p, Behavior::Removed, [c](std::uint32_t x) { return x == c; });
    };
  }
  if (type == "Digits") {
    const Fields f(j, what, {"type", "individual_digits"});
    return [b = f.flag("individual_digits") ? Behavior::Isolated : Behavior::Contiguous](Pieces& p) {
      cut_at(p, b, is_numeric);
    };
  }
  if (type == "Punctuation")
    return
        [b = behavior_of(Fields(j, what, {"type", "behavior"}))](Pieces& p) { cut_at(p, b, is_sign_or_punctuation); };
  if (type == "FixedLength") {
    const Fields f(j, what, {"type", "length"});
    return [n = static_cast<std::size_t>(f.number("length", 5, 1, 1 << 30))](Pieces& p) { cut_lengths(p, n); };
  }
  if (type == "Split") return splitting_step(Fields(j, what, {"type", "pattern", "behavior", "invert"}), budget);
  throw Error("tokenizer", str_cat("the pre-tokenizer ", in_quotes(type), " is not known"));
}

}  // namespace

PreTokenizer::PreTokenizer(io::Json pre_tokenizer, Budget& budget) {
  for (const io::Json& j : components(pre_tokenizer, "the pre-tokenizer", "pretokenizers")) {
    budget.take(256);
    steps_.push_back(cutting_step(j, budget));
  }
}

void PreTokenizer::apply(Pieces& p) const {
  const std::size_t limit = most_bytes_of(p.text.size());
  for (const Step& s : steps_) {
    s(p);
    if (p.text.size() > limit) throw Error("tokenizer", "the tokenizer's pre-tokenizers make too much of the text");
  }
}

}  // namespace lc
