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

#include <cstdint>
#include <source_location>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace lc {

// A line of the user's program. `op` is the operation called there ("softmax"); both strings
// have static storage.
struct Location {
  const char* file = "";
  std::uint32_t line = 0;
  const char* op = "";

  static Location here(const std::source_location& at, const char* op = "") { return {at.file_name(), at.line(), op}; }
  bool known() const { return line != 0; }
  std::string str() const;  // "main.cpp:12", or "" when unknown
};

// While an OpScope lives, nodes and errors made by this thread carry its location. The outermost
// scope wins, so that a user sees "softmax at model.cpp:12" and not a line of ours.
class OpScope {
 public:
  explicit OpScope(const Location& where);
  OpScope(const char* op, const std::source_location& at) : OpScope(Location::here(at, op)) {}
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

// Joins anything that can be written to a stream: cat("rank ", 3, " is too high").
template <class... Ts>
std::string cat(const Ts&... parts) {
  std::ostringstream s;
  s.exceptions(std::ios_base::badbit);  // without memory a stream would cut the text off and say nothing
  (s << ... << parts);
  return std::move(s).str();
}

// A broken invariant of ours. It throws like any other Error, because a library inside somebody
// else's program has no right to end it.
void check(bool invariant, const char* what, const std::source_location& at = std::source_location::current());

}  // namespace lc
