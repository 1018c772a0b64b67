// Error: the one exception type of the library.
//
// User mistakes (a shape, a file, a missing input) and internal failures are all reported as an Error. The library
// never aborts and never prints. The message names the problem, the line of the user's code, and the remedy.
//
// The only other exception is std::bad_alloc from `new`, because building a message needs memory too. Large blocks
// (values in flight, states, packed weights) come from the system; a shortage there is an Error with sizes. After
// either, everything that existed before the call remains usable.
#pragma once

#include "lightcone/macros_off.h"

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace lc {

// The position of a call: std::source_location, which clang before 16 cannot compile. Converts from it.
struct SourceLocation {
  const char* file;
  std::uint32_t line;
  constexpr SourceLocation(const char* f, std::uint32_t l) : file(f), line(l) {}
  template <class T>
    requires requires(const T& standard) { standard.function_name(); }
  constexpr SourceLocation(const T& standard) : SourceLocation(standard.file_name(), standard.line()) {}
  static constexpr SourceLocation current(const char* f = __builtin_FILE(), std::uint32_t l = __builtin_LINE()) {
    return {f, l};
  }
};

// A line of the user's program. `op` is the operation called there ("softmax"). Both strings need static storage.
struct Location {
  const char* file = "";
  std::uint32_t line = 0;
  const char* op = "";

  static Location here(const SourceLocation& at, const char* op = "") { return {at.file, at.line, op}; }
  bool known() const { return line != 0; }
  std::string str() const;  // "main.cpp:12", or "" when unknown
};

// While an OpScope lives, nodes and errors made by this thread carry its location. The outermost scope wins, so that
// users see "softmax at model.cpp:12" and not a line of the library.
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
  // `op` is the operation that failed, `problem` the sentence after "op: ". If an OpScope names the operation the user
  // called, that name replaces `op`, unless `op` is a class.
  Error(std::string_view op, std::string_view problem, Location where = OpScope::current());

  const std::string& op() const { return op_; }
  const std::string& problem() const { return problem_; }
  const Location& where() const { return where_; }

 private:
  std::string op_, problem_;
  Location where_;
};

// Concatenates texts, numbers and objects with a str(): str_cat("rank ", 3, " is too high"). Numbers are formatted as
// by std::ostream, whose header would slow down every compilation.
void append_number(std::string& to, long long n);
void append_number(std::string& to, unsigned long long n);
void append_number(std::string& to, double x);
template <class T>
void append_part(std::string& to, const T& part) {
  if constexpr (std::is_convertible_v<const T&, std::string_view> || std::is_same_v<T, char>) to += part;
  else if constexpr (std::is_floating_point_v<T>) append_number(to, static_cast<double>(part));
  else if constexpr (std::is_signed_v<T>) append_number(to, static_cast<long long>(part));
  else if constexpr (std::is_integral_v<T>) append_number(to, static_cast<unsigned long long>(part));
  else to += part.str();
}
template <class T>
concept Part =
    std::is_convertible_v<const T&, std::string_view> || std::is_arithmetic_v<T> || requires(const T& t) { t.str(); };
template <Part... Ts>
std::string str_cat(const Ts&... parts) {
  std::string s;
  (append_part(s, parts), ...);
  return s;
}

// Throws an "internal error" if an invariant of the library is broken. It does not abort, because a library must not
// end the program that uses it.
void check(bool invariant, const char* what, const SourceLocation& at = SourceLocation::current());

}  // namespace lc
#include "lightcone/macros_on.h"
