// Reads characters of a text, with lines and columns, for hand-written parsers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lightcone/stablehlo/module.h"

namespace lc::stablehlo {

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) { skip(); }

  Place place() const;
  [[noreturn]] void fail(const std::string& problem) const { fail_at(place(), problem); }
  [[noreturn]] static void fail_at(Place at, const std::string& problem);
  [[noreturn]] void expected(std::string_view what) const;

  std::size_t size() const { return text_.size(); }
  bool done() const { return at_ >= text_.size(); }
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  bool sees(std::string_view s) const { return text_.substr(at_).starts_with(s); }
  bool sees_word(std::string_view w) const;  // with no letter after it

  bool eat(std::string_view s);  // punctuation and the white space after it
  bool eat_word(std::string_view w);
  void expect(std::string_view s);
  std::string_view word();  // letters, digits, _ . $ -; not empty
  std::string_view word_or_nothing();
  std::string suffix();    // after % @ # ! ^: a word or a quoted string
  std::string string();    // "...", unescaped
  std::int64_t integer();  // -12, 0x1F, in 64 bits; wraps above INT64_MAX
  bool sees_number() const;
  std::string_view number();                         // as written: 1, -1.5e+00, 0x7FC00000
  std::string_view balanced(char open, char close);  // the text between two brackets; brackets in strings do not count
  void skip();                                       // skips white space and comments

  // Skips one character, and nothing after it.
  void take() { ++at_; }
  std::size_t at() const { return at_; }
  std::string_view since(std::size_t from) const { return text_.substr(from, at_ - from); }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
  // Lines are counted from the previous query on, because a text is read once, from front to back.
  mutable std::size_t counted_ = 0, line_start_ = 0;
  mutable int line_ = 1;
};

// Limits nesting to a depth that no compiler writes, before it can overflow the stack.
class Nested {
 public:
  Nested(int& depth, const Scanner& s) : depth_(depth) {
    if (++depth_ > 100) s.fail("brackets are nested more than 100 deep");
  }
  ~Nested() { --depth_; }
  Nested(const Nested&) = delete;
  Nested& operator=(const Nested&) = delete;

 private:
  int& depth_;
};

}  // namespace lc::stablehlo
