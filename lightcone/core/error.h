// Error: the one exception type of the library.
//
// Everything a caller can get wrong (a shape, a file, a missing input) and everything we can get
// wrong ourselves arrives as an Error. The library never aborts and never prints. An Error says
// what was wrong, where in the user's code, and what to do about it.
//
// Beside it only std::bad_alloc passes through, from `new`, as everywhere in C++: a sentence would need memory, too.
// The large blocks (values in flight, states, packed weights) come from the system, and there a shortage is an Error
// with figures. After either, what was there before the call can be used on.
#pragma once

#include "lightcone/macros_off.h"

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace lc {

// Where a call stands: std::source_location, which clang before 16 cannot compile. Whoever has one of those may pass
// it.
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

// A line of the user's program. `op` is the operation called there ("softmax"); both strings
// have static storage.
struct Location {
  const char* file = "";
  std::uint32_t line = 0;
  const char* op = "";

  static Location here(const SourceLocation& at, const char* op = "") { return {at.file, at.line, op}; }
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
  // `op` is the operation that failed, `problem` the sentence after "op: ". Where an OpScope names what the user
  // called, that name is said instead of a function's; a class names itself.
  Error(std::string_view op, std::string_view problem, Location where = OpScope::current());

  const std::string& op() const { return op_; }
  const std::string& problem() const { return problem_; }
  const Location& where() const { return where_; }

 private:
  std::string op_, problem_;
  Location where_;
};

// Texts, numbers and what has a str(), joined: str_cat("rank ", 3, " is too high"). Numbers look as a stream writes
// them; a stream in a header would be compiled by every file that has something to say.
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

// A broken invariant of ours. It throws like any other Error, because a library inside somebody
// else's program has no right to end it.
void check(bool invariant, const char* what, const SourceLocation& at = SourceLocation::current());

}  // namespace lc
#include "lightcone/macros_on.h"
