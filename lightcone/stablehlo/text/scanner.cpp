#include "lightcone/stablehlo/text/scanner.h"

#include <algorithm>
#include <charconv>

#include "lightcone/base/error.h"

namespace lc::stablehlo {
namespace {

bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$'; }
bool in_word(char c) { return is_letter(c) || is_digit(c) || c == '.'; }

int hex_value(char c) { return is_digit(c) ? c - '0' : (c | 0x20) - 'a' + 10; }

}  // namespace

Place Scanner::place() const {
  for (; counted_ < at_ && counted_ < text_.size(); ++counted_)
    if (text_[counted_] == '\n') ++line_, line_start_ = counted_ + 1;
  return {line_, static_cast<int>(at_ - line_start_) + 1};
}

void Scanner::fail_at(Place at, const std::string& problem) {
  throw Error("stablehlo", str_cat("line ", at.line, ", column ", at.column, ": ", problem));
}

void Scanner::expected(std::string_view what) const {
  if (done()) fail(str_cat("the text ends where ", what, " was expected"));
  std::string found;
  for (std::size_t k = 0; k < 20 && peek(k) > ' '; ++k) found += peek(k) > 126 ? '?' : peek(k);
  fail(str_cat(what, " was expected, not '", found, "'"));
}

void Scanner::skip() {
  while (!done()) {
    const char c = text_[at_];
    if (c == ' ' || c == '\n' || c == '\t' || c == '\r') ++at_;
    else if (c == '/' && peek(1) == '/') at_ = std::min(text_.find('\n', at_), text_.size());
    else break;
  }
}

bool Scanner::sees_word(std::string_view w) const { return sees(w) && !in_word(peek(w.size())); }

bool Scanner::eat(std::string_view s) {
  if (!sees(s)) return false;
  at_ += s.size();
  skip();
  return true;
}
bool Scanner::eat_word(std::string_view w) { return sees_word(w) && eat(w); }
void Scanner::expect(std::string_view s) {
  if (!eat(s)) expected(str_cat("'", s, "'"));
}

std::string_view Scanner::word_or_nothing() {
  const std::size_t from = at_;
  if (!done() && is_letter(peek()))
    while (!done() && in_word(peek())) ++at_;
  const std::string_view w = since(from);
  skip();
  return w;
}
std::string_view Scanner::word() {
  if (done() || !is_letter(peek())) expected("a word");
  return word_or_nothing();
}

std::string Scanner::suffix() {
  if (peek() == '"') return string();
  const std::size_t from = at_;
  while (!done() && (in_word(peek()) || (peek() == '-' && peek(1) != '>'))) ++at_;
  std::string s(since(from));
  if (s.empty()) expected("a name");
  skip();
  return s;
}

std::string Scanner::string() {
  if (peek() != '"') expected("a string");
  std::string s;
  for (++at_; !done() && peek() != '"'; ++at_) {
    if (peek() == '\n') fail("a string ends before its line does");
    if (peek() != '\\') {
      s += peek();
      continue;
    }
    ++at_;
    if (is_hex(peek()) && is_hex(peek(1))) s += static_cast<char>(hex_value(peek()) * 16 + hex_value(peek(1))), ++at_;
    else if (peek() == 'n') s += '\n';
    else if (peek() == 't') s += '\t';
    else s += peek();
  }
  if (done()) fail("a string does not end");
  ++at_;
  skip();
  return s;
}

bool Scanner::sees_number() const { return is_digit(peek()) || (peek() == '-' && is_digit(peek(1))); }

std::string_view Scanner::number() {
  if (!sees_number()) expected("a number");
  const std::size_t from = at_;
  if (peek() == '-') ++at_;
  if (peek() == '0' && peek(1) == 'x') {
    for (at_ += 2; is_hex(peek());) ++at_;
  } else {
    while (is_digit(peek())) ++at_;
    if (peek() == '.')
      for (++at_; is_digit(peek());) ++at_;
    if ((peek() == 'e' || peek() == 'E') &&
        (is_digit(peek(1)) || ((peek(1) == '+' || peek(1) == '-') && is_digit(peek(2)))))
      for (at_ += 2; is_digit(peek());) ++at_;
  }
  const std::string_view n = since(from);
  skip();
  return n;
}

std::int64_t Scanner::integer() {
  const Place at = place();
  std::string_view n = number();
  const bool negative = n.front() == '-';
  if (negative) n.remove_prefix(1);
  const bool hex = n.starts_with("0x");
  if (hex) n.remove_prefix(2);
  std::uint64_t v = 0;
  const auto [end, problem] = std::from_chars(n.data(), n.data() + n.size(), v, hex ? 16 : 10);
  if (problem != std::errc() || end != n.data() + n.size())
    fail_at(at, str_cat("'", n.substr(0, 40), "' is not a whole number of 64 bits"));
  return static_cast<std::int64_t>(negative ? 0 - v : v);
}

std::string_view Scanner::balanced(char open, char close) {
  if (peek() != open) expected(str_cat("'", std::string(1, open), "'"));
  const Place start = place();
  const std::size_t from = at_ + 1;
  int depth = 0;
  for (; !done(); ++at_) {
    const char c = peek();
    if (c == '"') {
      for (++at_; !done() && peek() != '"'; ++at_)
        if (peek() == '\\') ++at_;
    } else if (c == open) {
      ++depth;
    } else if (c == close && !(c == '>' && at_ > 0 && text_[at_ - 1] == '-') && --depth == 0) {
      const std::string_view inside = text_.substr(from, at_ - from);
      ++at_;
      skip();
      return inside;
    }
  }
  fail_at(start, str_cat("this '", std::string(1, open), "' is not closed"));
}

}  // namespace lc::stablehlo
