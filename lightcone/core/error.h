// Error: the one exception type of the library.
//
// Everything a caller can get wrong (a shape, a file, a missing input) and everything we can get
// wrong ourselves arrives as an Error. The library never aborts and never prints. An Error says
// what was wrong, where in the user's code, and what to do about it.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>

namespace lc {

// Where a call stands: std::source_location, which clang before 16 cannot compile. Whoever has one of those may pass it.
class SourceLocation {
 public:
  static constexpr SourceLocation current(const char* file = __builtin_FILE(), std::uint32_t line = __builtin_LINE()) {
    return {file, line};
  }
  template <class T>
    requires requires(const T& standard) { static_cast<const char*>(standard.function_name()); }
  constexpr SourceLocation(const T& standard) : file_(standard.file_name()), line_(standard.line()) {}
  constexpr const char* file_name() const { return file_; }
  constexpr std::uint32_t line() const { return line_; }

 private:
  constexpr SourceLocation(const char* file, std::uint32_t line) : file_(file), line_(line) {}
  const char* file_;
  std::uint32_t line_;
};

// A line of the user's program. `op` is the operation called there ("softmax"); both strings
// have static storage.
struct Location {
  const char* file = "";
  std::uint32_t line = 0;
  const char* op = "";

  static Location here(const SourceLocation& at, const char* op = "") { return {at.file_name(), at.line(), op}; }
  bool known() const { return line != 0; }
  std::string str() const;  // "main.cpp:12", or "" when unknown
};

// While an OpScope lives, nodes and errors made by this thread carry its location. The outermost
// scope wins, so that a user sees "softmax at model.cpp:12" and not a line of ours.
class OpScope {
 public:
  explicit OpScope(const Location& where);
  OpScope(const char* op, const SourceLocation& at) : OpScope(Location::here(at, op)) {}
  ~OpScope();
  OpScope(const OpScope&) = delete;
  OpScope& operator=(const OpScope&) = delete;
  static Location current();

 private:
  bool outermost_;
};

class Error : public std::runtime_error {
 public:
  // `op` is the operation that failed, `problem` the sentence after "op: ".
  Error(std::string_view op, std::string_view problem, Location where = OpScope::current());

  const std::string& op() const { return op_; }
  const std::string& problem() const { return problem_; }
  const Location& where() const { return where_; }

 private:
  std::string op_, problem_;
  Location where_;
};

// A part of a sentence: a text, a number, or a value that has a str(). It refers to what it was made of, and is no
// template of streams: every file that writes a message would pay for those.
class Part {
 public:
  Part(std::string_view text) : text_(text), append_(append_text) {}
  Part(const std::string& text) : Part(std::string_view(text)) {}
  Part(const char* text) : Part(std::string_view(text)) {}
  template <std::integral T>
    requires std::same_as<T, char>
  Part(T letter) : letter_(letter), append_(append_letter) {}
  template <std::integral T>
    requires(!std::same_as<T, char> && std::signed_integral<T>)
  Part(T n) : signed_(n), append_(append_signed) {}
  template <std::integral T>
    requires(!std::same_as<T, char> && std::unsigned_integral<T>)
  Part(T n) : unsigned_(n), append_(append_unsigned) {}
  Part(std::floating_point auto x) : real_(static_cast<double>(x)), append_(append_real) {}
  template <class T>
    requires requires(const T& v) { std::string(v.str()); }
  Part(const T& value)
      : value_(&value), append_([](const Part& p, std::string& to) { to += static_cast<const T*>(p.value_)->str(); }) {}
  void append(std::string& to) const { append_(*this, to); }

 private:
  static void append_text(const Part& p, std::string& to);
  static void append_letter(const Part& p, std::string& to);
  static void append_signed(const Part& p, std::string& to);
  static void append_unsigned(const Part& p, std::string& to);
  static void append_real(const Part& p, std::string& to);  // six digits, as a stream writes them
  union {
    std::string_view text_;
    char letter_;
    long long signed_;
    unsigned long long unsigned_;
    double real_;
    const void* value_;
  };
  void (*append_)(const Part&, std::string&);
};
std::string join(std::initializer_list<Part> parts);

// cat("rank ", 3, " is too high")
template <class... Ts>
std::string cat(const Ts&... parts) {
  return join({Part(parts)...});
}

// A broken invariant of ours. It throws like any other Error, because a library inside somebody
// else's program has no right to end it.
void check(bool invariant, const char* what, const SourceLocation& at = SourceLocation::current());

}  // namespace lc
