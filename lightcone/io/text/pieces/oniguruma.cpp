// Translates the syntax of Oniguruma (its documentation's doc/RE) to PCRE2: contents of named character classes, nested
// classes and their intersections, and quantifiers with another meaning.
#include <initializer_list>
#include <utility>
#include <vector>

#include "lightcone/base/error.h"
#include "lightcone/io/printable.h"
#include "lightcone/io/text/pieces/pattern.h"
#include "lightcone/io/utf8.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace lc {
namespace {

// Members of character classes in PCRE2's syntax between brackets.
constexpr std::string_view kSpaces = "\\t-\\r\\x{85}\\p{Z}";
constexpr std::string_view kDigits = "\\p{Nd}", kHexDigits = "0-9A-Fa-f";
constexpr std::string_view kCircled =
    "\\x{24B6}-\\x{24E9}\\x{1F130}-\\x{1F149}\\x{1F150}-\\x{1F169}\\x{1F170}-\\x{1F189}";
#if PCRE2_MAJOR > 10 || PCRE2_MINOR >= 40
constexpr std::string_view kAlphabetic = "\\p{Alphabetic}", kUpper = "\\p{Uppercase}", kLower = "\\p{Lowercase}";
constexpr std::string_view kScript = "sc:";  // the characters of a script, without its extensions
#else
constexpr std::string_view kAlphabetic = "\\p{L}\\p{Nl}", kUpper = "\\p{Lu}", kLower = "\\p{Ll}";
constexpr std::string_view kScript = "";
#endif
// Latin-1's fractions and superscript digits, which \w and \b count as word characters, but not within brackets.
constexpr std::string_view kFractions = "\\x{B2}\\x{B3}\\x{B9}\\x{BC}-\\x{BE}";
std::string words() { return str_cat("\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}", kCircled); }

// Returns the members of a named class such as alpha; "" for an unknown name.
std::string named_class(std::string_view name) {
  if (name == "alpha") return str_cat(kAlphabetic);
  if (name == "upper") return str_cat(kUpper);
  if (name == "lower") return str_cat(kLower);
  if (name == "digit") return str_cat(kDigits);
  if (name == "alnum") return str_cat(kAlphabetic, kDigits);
  if (name == "word") return words();
  if (name == "space") return str_cat(kSpaces);
  if (name == "blank") return "\\t\\p{Zs}";
  if (name == "cntrl") return "\\p{Cc}";
  if (name == "punct") return "\\p{P}\\p{S}";
  if (name == "xdigit") return str_cat(kHexDigits);
  if (name == "ascii") return "\\x{0}-\\x{7F}";
  if (name == "any") return "\\x{0}-\\x{10FFFF}";
  return "";
}

// A set of characters: members within brackets, and an expression for one character that brackets cannot express.
struct Set {
  std::string members, other;
  std::string expression() const {
    const std::string brackets = members.empty() ? "" : "[" + members + "]";
    if (other.empty()) return brackets.empty() ? "(?!)" : brackets;
    return "(?:" + brackets + (brackets.empty() ? "" : "|") + other + ")";
  }
  void join(const std::string& expression) { other += (other.empty() ? "" : "|") + expression; }
  static std::string without(const std::string& expression) { return "(?:(?!" + expression + ")(?s:.))"; }
};

class Translator {
 public:
  explicit Translator(std::string_view pattern) : in_(pattern) {}
  std::string run() {
    while (at_ < in_.size()) item();
    return std::move(out_);
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    throw Error("tokenizer", str_cat("the pattern ", in_quotes(in_), " is not supported at ", at_, ": ", what));
  }
  bool more() const { return at_ < in_.size(); }
  char peek() const { return more() ? in_[at_] : '\0'; }
  bool take(std::string_view s) {
    const bool is = in_.substr(at_).starts_with(s);
    if (is) at_ += s.size();
    return is;
  }
  std::string_view until(char end, const char* what) {
    const std::size_t n = in_.find(end, at_);
    if (n == in_.npos) fail(what);
    const std::string_view s = in_.substr(at_, n - at_);
    at_ = n + 1;
    return s;
  }
  void atom(const std::string& s) {
    last_ = out_.size();
    out_ += s;
  }
  void item();
  void group();
  void quantifier();
  void escape();
  std::string character();
  bool character_type(char c, Set& set, bool in_class);
  bool property(Set& set);
  std::string one_class();
  Set class_members();

  std::string_view in_;
  std::string out_;
  std::size_t at_ = 0, last_ = 0;  // last_: beginning of the last atom in out_
  std::vector<std::size_t> open_;  // beginnings of the open groups in out_
  int depth_ = 0;
};

void Translator::item() {
  const char c = peek();
  if (c == '\\') return escape();
  if (c == '[') return atom(one_class());
  if (c == '(') return group();
  if (c == '*' || c == '+' || c == '?' || c == '{') return quantifier();
  if (c == ')') {
    if (open_.empty()) fail("a ) that nothing opens");
    last_ = open_.back();
    open_.pop_back();
    out_ += c, ++at_;
    return;
  }
  const std::size_t n = std::max<std::size_t>(1, utf8_length(in_, at_));
  atom(std::string(in_.substr(at_, n)));
  at_ += n;
}

void Translator::group() {
  open_.push_back(out_.size());
  ++at_;
  out_ += '(';
  if (take("?#")) {
    until(')', "a comment without an end");
    out_.pop_back(), open_.pop_back();
    return;
  }
  for (const std::string_view plain : {"?:", "?=", "?!", "?<=", "?<!", "?>"})
    if (take(plain)) {
      out_ += plain;
      return;
    }
  if (!take("?")) return;
  if (peek() == '<' || peek() == '\'') fail("a group with a name");
  out_ += '?';
  for (; peek() != ':' && peek() != ')'; ++at_) {  // m of Oniguruma is s of PCRE2
    const char c = peek();
    if (c == 'm') out_ += 's';
    else if (c == 'i' || c == 'x' || c == '-') out_ += c;
    else fail("an option of a group");
  }
  if (peek() == ')') open_.pop_back();
  out_ += in_[at_++];
}

// {,n} means 0 to n, and a + after braces repeats them (in PCRE2 it is possessive).
void Translator::quantifier() {
  const char c = peek();
  if (c != '{') {
    out_ += c, ++at_;
    if (peek() == '?' || peek() == '+') out_ += in_[at_++];
    return;
  }
  std::size_t end = at_ + 1;
  std::string low, high;
  bool comma = false;
  for (; end < in_.size() && in_[end] != '}'; ++end) {
    if (in_[end] == ',' && !comma) comma = true;
    else if (in_[end] >= '0' && in_[end] <= '9') (comma ? high : low) += in_[end];
    else end = in_.size();
  }
  if (end >= in_.size() || (low.empty() && high.empty())) {  // not a quantifier
    atom("\\{");
    ++at_;
    return;
  }
  at_ = end + 1;
  out_ += "{" + (low.empty() ? "0" : low) + (comma ? "," : "") + high + "}";
  if (peek() == '+') out_.insert(last_, "(?:"), out_ += ")+", ++at_;
  else if (peek() == '?' && comma) out_ += '?', ++at_;
  else if (peek() == '?') out_.insert(last_, "(?:"), out_ += ")?", ++at_;
}

// Translates one escaped character to a form that PCRE2 accepts anywhere.
std::string Translator::character() {
  const char c = peek();
  ++at_;
  constexpr std::string_view kLetters = "tnrfae";
  if (kLetters.find(c) != kLetters.npos) return {'\\', c};
  if (c == 'v') return "\\x{0B}";
  if (c == 'x' && take("{")) return "\\x{" + std::string(until('}', "\\x{ without }")) + "}";
  if (c == 'x' || c == 'u') {
    std::string digits;
    const std::size_t most = c == 'x' ? 2 : 4;
    while (digits.size() < most && more() &&
           std::string_view("0123456789abcdefABCDEF").find(peek()) != std::string::npos)
      digits += in_[at_++];
    if (digits.empty() || (c == 'u' && digits.size() < most)) fail("a number without digits");
    return "\\x{" + digits + "}";
  }
  const bool letter = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
  if (letter) --at_, fail("a backslash before it");
  if (static_cast<unsigned char>(c) >= 0x80) {
    const std::size_t n = std::max<std::size_t>(1, utf8_length(in_, at_ - 1));
    at_ += n - 1;
    return std::string(in_.substr(at_ - n, n));
  }
  return {'\\', c};
}

// Translates \s, \W and similar escapes. Returns false for others.
bool Translator::character_type(char c, Set& set, bool in_class) {
  const char small = static_cast<char>(c | 0x20);
  std::string members;
  if (small == 's') members = kSpaces;
  else if (small == 'd') members = kDigits;
  else if (small == 'h') members = kHexDigits;
  else if (small == 'w') members = words() + (in_class ? "" : std::string(kFractions));
  else return false;
  ++at_;
  if (c == small) set.members += members;
  else set.join("[^" + members + "]");
  return true;
}

// Translates \p{...}, \P{...} and \p{^...}. Returns false for others.
bool Translator::property(Set& set) {
  const char c = peek();
  if (c != 'p' && c != 'P') return false;
  ++at_;
  if (!take("{")) fail("a property without {");
  bool negated = c == 'P';
  if (take("^")) negated = !negated;
  std::string name;
  for (const char k : until('}', "a property without }"))
    if (k != ' ' && k != '_' && k != '-') name += static_cast<char>(k >= 'A' && k <= 'Z' ? k + 32 : k);
  std::string members = named_class(name);
  static constexpr std::pair<const char*, const char*> kLong[] = {{"letter", "L"},
                                                                  {"mark", "M"},
                                                                  {"number", "N"},
                                                                  {"punctuation", "P"},
                                                                  {"symbol", "S"},
                                                                  {"separator", "Z"},
                                                                  {"other", "C"},
                                                                  {"uppercaseletter", "Lu"},
                                                                  {"lowercaseletter", "Ll"},
                                                                  {"titlecaseletter", "Lt"},
                                                                  {"modifierletter", "Lm"},
                                                                  {"otherletter", "Lo"},
                                                                  {"nonspacingmark", "Mn"},
                                                                  {"spacingmark", "Mc"},
                                                                  {"enclosingmark", "Me"},
                                                                  {"decimalnumber", "Nd"},
                                                                  {"letternumber", "Nl"},
                                                                  {"othernumber", "No"},
                                                                  {"spaceseparator", "Zs"},
                                                                  {"lineseparator", "Zl"},
                                                                  {"paragraphseparator", "Zp"},
                                                                  {"control", "Cc"},
                                                                  {"format", "Cf"},
                                                                  {"mathsymbol", "Sm"},
                                                                  {"currencysymbol", "Sc"},
                                                                  {"modifiersymbol", "Sk"},
                                                                  {"othersymbol", "So"},
                                                                  {"dashpunctuation", "Pd"},
                                                                  {"openpunctuation", "Ps"},
                                                                  {"closepunctuation", "Pe"},
                                                                  {"initialpunctuation", "Pi"},
                                                                  {"finalpunctuation", "Pf"},
                                                                  {"connectorpunctuation", "Pc"},
                                                                  {"otherpunctuation", "Po"}};
  for (const auto& [word, category] : kLong)
    if (name == word) members = str_cat("\\p{", category, "}");
  constexpr std::string_view kGroups = "lmnpszc";
  if (members.empty() && !name.empty() && name.size() <= 2 && kGroups.find(name[0]) != kGroups.npos) {
    name[0] = static_cast<char>(name[0] - 32);
    members = "\\p{" + name + "}";
  }
  if (members.empty()) members = str_cat("\\p{", kScript, name, "}");
  negated ? set.join("[^" + members + "]") : void(set.members += members);
  return true;
}

void Translator::escape() {
  ++at_;
  if (!more()) fail("a backslash at the end");
  const char c = peek();
  Set set;
  if (character_type(c, set, false) || property(set)) return atom(set.expression());
  const std::string w = str_cat("[", words(), kFractions, "]");
  if (c == 'b') return ++at_, atom("(?:(?<=" + w + ")(?!" + w + ")|(?<!" + w + ")(?=" + w + "))");
  if (c == 'B') return ++at_, atom("(?:(?<=" + w + ")(?=" + w + ")|(?<!" + w + ")(?!" + w + "))");
  if (c == 'N') return ++at_, atom("[^\\n]");
  if (c == 'O') return ++at_, atom("(?s:.)");
  constexpr std::string_view kSame = "AzZGRXK";
  const bool reference = c >= '1' && c <= '9';
  if (kSame.find(c) != kSame.npos || reference) return ++at_, atom({'\\', c});
  atom(character());
}

// Translates a class from [ to its ] to an expression for one character.
std::string Translator::one_class() {
  if (++depth_ > 32) fail("classes within classes");
  ++at_;
  const bool negated = take("^");
  std::vector<Set> sets;  // a character must be in all of them
  do sets.push_back(class_members());
  while (take("&&"));
  if (!take("]")) fail("a class without ]");
  --depth_;
  if (sets.size() == 1) {
    if (!negated) return sets[0].expression();
    return sets[0].other.empty() ? "[^" + sets[0].members + "]" : Set::without(sets[0].expression());
  }
  std::string all = "(?:";
  for (std::size_t i = 0; i + 1 < sets.size(); ++i) all += "(?=" + sets[i].expression() + ")";
  all += sets.back().expression() + ")";
  return negated ? Set::without(all) : all;
}

Set Translator::class_members() {
  Set set;
  for (bool first = true; more(); first = false) {
    if (in_.substr(at_).starts_with("&&") || (peek() == ']' && !first)) break;
    if (take("[:")) {
      const bool negated = take("^");
      const std::string_view name = until(':', "a class without :]");
      const std::string members = named_class(name);
      if (!take("]") || members.empty()) fail("a class with a name that is not known");
      negated ? set.join("[^" + members + "]") : void(set.members += members);
      continue;
    }
    if (peek() == '[') {
      set.join(one_class());
      continue;
    }
    if (take("\\")) {
      if (!more()) fail("a backslash at the end");
      if (character_type(peek(), set, true) || property(set)) continue;
      set.members += take("b") ? "\\x{08}" : character();
    } else {
      const std::size_t n = std::max<std::size_t>(1, utf8_length(in_, at_));
      const std::string_view c = in_.substr(at_, n);
      constexpr std::string_view kEscaped = "[]^\\&~#";  // a hyphen in a range, or alone, keeps its meaning
      if (n == 1 && kEscaped.find(c[0]) != kEscaped.npos) set.members += '\\';
      set.members += c;
      at_ += n;
    }
  }
  return set;
}

}  // namespace

std::string pcre2_of_oniguruma(std::string_view pattern) { return Translator(pattern).run(); }

}  // namespace lc
