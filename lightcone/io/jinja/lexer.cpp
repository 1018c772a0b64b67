#include "lightcone/io/jinja/lexer.h"

#include <algorithm>

#include "lightcone/io/jinja/texts.h"
#include "lightcone/io/printable.h"
#include "lightcone/io/utf8.h"

namespace lc::jinja {
namespace {

using TokenKind = Token::Kind;

bool digit(char c) { return c >= '0' && c <= '9'; }
bool begins_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : s_(with_plain_line_ends(source)) {}
  std::vector<Token> run();

 private:
  static std::string with_plain_line_ends(std::string_view source);
  template <class... Ts>
  [[noreturn]] void fail(const Ts&... what) const {
    throw SyntaxFault{str_cat(what...), line_};
  }
  char at(std::size_t i) const { return i < s_.size() ? s_[i] : '\0'; }
  bool here(std::string_view what) const { return std::string_view(s_).substr(at_).starts_with(what); }
  void add(TokenKind kind, std::string text) { out_.push_back({kind, line_, std::move(text)}); }
  void move_to(std::size_t end) {
    line_ += static_cast<std::uint32_t>(
        std::count(s_.begin() + static_cast<std::ptrdiff_t>(at_), s_.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
    line_begins_ = end > at_ ? s_[end - 1] == '\n' : line_begins_;
    at_ = end;
  }
  std::size_t after_space(std::size_t i) const {
    for (std::size_t bytes; i < s_.size(); i += bytes) {
      bytes = std::max<std::size_t>(1, utf8_length(s_, i));
      if (!is_space(bytes == 1 ? static_cast<unsigned char>(s_[i]) : utf8_decode(s_, i, &bytes))) break;
    }
    return i;
  }
  void data(std::size_t end, char sign, bool block);
  std::size_t end_of_tag(std::size_t i, char close, bool trims) const;
  bool raw();
  void comment();
  void tag(char open);
  void token();
  void number();
  void string();
  void escape(std::string& out);

  std::string s_;
  std::size_t at_ = 0;
  std::uint32_t line_ = 1;
  bool line_begins_ = true;
  std::vector<Token> out_;
  std::string open_;  // closing brackets that are expected, innermost last
};

// Jinja reads every line end as \n and drops the last one.
std::string Lexer::with_plain_line_ends(std::string_view source) {
  std::string s;
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r' && i + 1 < source.size() && source[i + 1] == '\n') continue;
    s += source[i] == '\r' ? '\n' : source[i];
  }
  if (s.ends_with('\n')) s.pop_back();
  return s;
}

// Adds the text up to `end`, where a tag begins. With the sign '-', white space before the tag is removed. Without '+',
// the indentation of a block or comment that begins its line is removed.
void Lexer::data(std::size_t end, char sign, bool block) {
  std::string text = s_.substr(at_, end - at_);
  if (sign == '-') {
    Meter free({.steps = ~std::size_t{0}, .bytes = ~std::size_t{0}});
    text = std::string(strip(free, text, {}, false, true));
  } else if (sign != '+' && block) {
    const std::size_t newline = text.rfind('\n'), begin = newline == text.npos ? 0 : newline + 1;
    const bool whole_line = newline != text.npos || line_begins_;
    if (whole_line && begin < text.size() && after_space(at_ + begin) >= end) text.resize(begin);
  }
  if (!text.empty()) add(TokenKind::Data, std::move(text));
  move_to(end);
}

// Returns the position after the end of a tag if position i is at its closing "%}", "-%}" or "+%}" (or with '}' or '#'
// for '%'); 0 otherwise.
std::size_t Lexer::end_of_tag(std::size_t i, char close, bool trims) const {
  const bool minus = at(i) == '-', plus = at(i) == '+' && close != '}';
  if (minus || plus) ++i;
  if (at(i) != close || at(i + 1) != '}') return 0;
  i += 2;
  if (minus) return after_space(i);
  return trims && !plus && at(i) == '\n' ? i + 1 : i;
}

// Handles {% raw %} ... {% endraw %}. Returns false if the tag is another one.
bool Lexer::raw() {
  // Returns the position after "{% name"; 0 for another tag.
  const auto word = [&](std::size_t i, std::string_view name) -> std::size_t {
    i += 2 + (at(i + 2) == '-' || at(i + 2) == '+');
    i = after_space(i);
    return std::string_view(s_).substr(i).starts_with(name) ? after_space(i + name.size()) : 0;
  };
  const std::size_t inside = word(at_, "raw"), begin = inside ? end_of_tag(inside, '%', false) : 0;
  if (!begin) return false;
  move_to(begin);
  for (std::size_t i = s_.find("{%", at_); i != s_.npos; i = s_.find("{%", i + 2))
    if (const std::size_t behind = word(i, "endraw"), end = behind ? end_of_tag(behind, '%', true) : 0; end) {
      data(i, at(i + 2), true);
      move_to(end);
      return true;
    }
  fail("{% raw %} is not closed");
}

void Lexer::comment() {
  const std::size_t begin = at_ + 2 + (at(at_ + 2) == '-' || at(at_ + 2) == '+'), close = s_.find("#}", begin);
  if (close == s_.npos) fail("a comment is not closed");
  const bool sign = close > begin && (s_[close - 1] == '-' || s_[close - 1] == '+');
  move_to(end_of_tag(close - (sign ? 1 : 0), '#', true));
}

void Lexer::tag(char open) {
  const bool block = open == '%';
  add(block ? TokenKind::BlockBegin : TokenKind::PrintBegin, "");
  move_to(at_ + 2 + (at(at_ + 2) == '-' || at(at_ + 2) == '+'));
  for (;;) {
    move_to(after_space(at_));
    if (at_ >= s_.size()) fail("a ", block ? "{%" : "{{", " is not closed");
    if (open_.empty())
      if (const std::size_t end = end_of_tag(at_, block ? '%' : '}', block)) {
        add(block ? TokenKind::BlockEnd : TokenKind::PrintEnd, "");
        move_to(end);
        return;
      }
    token();
  }
}

void Lexer::token() {
  const char c = at(at_);
  if (digit(c)) return number();
  if (c == '\'' || c == '"') return string();
  if (begins_name(c)) {
    std::size_t end = at_;
    while (begins_name(at(end)) || digit(at(end))) ++end;
    add(TokenKind::Name, s_.substr(at_, end - at_));
    return move_to(end);
  }
  static constexpr std::string_view signs[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
                                               "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ","};
  const auto* sign = std::find_if(std::begin(signs), std::end(signs), [&](std::string_view s) { return here(s); });
  if (sign == std::end(signs)) fail("unexpected character ", in_quotes(std::string_view(s_).substr(at_, 1)));
  if (c == '(' || c == '[' || c == '{') open_ += c == '(' ? ')' : c == '[' ? ']' : '}';
  if (c == ')' || c == ']' || c == '}') {
    if (open_.empty() || open_.back() != c) fail("unexpected '", c, "'");
    open_.pop_back();
  }
  add(TokenKind::Sign, std::string(*sign));
  move_to(at_ + sign->size());
}

void Lexer::number() {
  std::string text;
  std::size_t i = at_;
  const auto digits = [&] {
    while (digit(at(i)) || (at(i) == '_' && digit(at(i + 1)))) text += at(i) == '_' ? "" : std::string(1, at(i)), ++i;
  };
  bool is_real = false;
  digits();
  const bool after_dot = !out_.empty() && out_.back().kind == TokenKind::Sign && out_.back().text == ".";
  if (!after_dot && at(i) == '.' && digit(at(i + 1))) is_real = true, text += '.', ++i, digits();
  if (const std::size_t sign = at(i + 1) == '-' || at(i + 1) == '+' ? 1 : 0;
      !after_dot && (at(i) == 'e' || at(i) == 'E') && digit(at(i + 1 + sign))) {
    is_real = true;
    text += s_.substr(i, 1 + sign), i += 1 + sign;
    digits();
  }
  add(is_real ? TokenKind::Real : TokenKind::Whole, text);
  move_to(i);
}

void Lexer::string() {
  const char quote = at(at_);
  std::size_t end = at_ + 1;
  while (end < s_.size() && s_[end] != quote) end += s_[end] == '\\' ? 2 : 1;
  if (end >= s_.size()) fail("a text is not closed");
  std::string out;
  const std::size_t begin = at_ + 1;
  for (std::size_t i = begin; i < end;) {
    if (s_[i] != '\\') {
      out += s_[i++];
      continue;
    }
    // Python's escapes. An unknown escape stays as it is.
    static constexpr std::string_view escaped = "\\'\"abfnrtv", as = "\\'\"\a\b\f\n\r\t\v";
    const char c = s_[i + 1];
    const std::size_t longest = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : c >= '0' && c <= '7' ? 3 : 0;
    if (const std::size_t k = escaped.find(c); k != escaped.npos) {
      out += as[k], i += 2;
    } else if (c == '\n') {
      i += 2;
    } else if (longest == 0) {
      out += '\\', ++i;
    } else {
      const bool octal = longest == 3;
      std::size_t n = i + (octal ? 1 : 2);
      const std::size_t first = n;
      std::uint32_t code = 0;
      for (; n < std::min(end, first + longest); ++n) {
        const char d = s_[n];
        const int v = digit(d)               ? d - '0'
                      : d >= 'a' && d <= 'f' ? d - 'a' + 10
                      : d >= 'A' && d <= 'F' ? d - 'A' + 10
                                             : 99;
        if (v >= (octal ? 8 : 16)) break;
        code = code * (octal ? 8u : 16u) + static_cast<std::uint32_t>(v);
      }
      if ((!octal && n - first != longest) || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
        fail("a text holds an escape that is no character");
      utf8_append(out, code);
      i = n;
    }
  }
  add(TokenKind::String, std::move(out));
  move_to(end + 1);
}

std::vector<Token> Lexer::run() {
  while (at_ < s_.size()) {
    std::size_t next = s_.find('{', at_);
    while (next != s_.npos && at(next + 1) != '{' && at(next + 1) != '%' && at(next + 1) != '#')
      next = s_.find('{', next + 1);
    if (next == s_.npos) {
      add(TokenKind::Data, s_.substr(at_));
      move_to(s_.size());
      break;
    }
    const char open = s_[next + 1];
    data(next, at(next + 2), open != '{');
    if (open == '#') comment();
    else if (open == '{' || !raw()) tag(open);
  }
  add(TokenKind::End, "");
  return std::move(out_);
}

}  // namespace

std::vector<Token> tokens_of(std::string_view source) { return Lexer(source).run(); }

}  // namespace lc::jinja
