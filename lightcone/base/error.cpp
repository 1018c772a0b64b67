#include "lightcone/base/error.h"

#include <charconv>

namespace lc {
namespace {

void append_chars(std::string& to, auto... number) {
  char text[32];
  to.append(text, std::to_chars(text, text + sizeof text, number...).ptr);
}

// Returns the name of the operation the user called, if known: "embedding", not "gather". A class (a layer of a model,
// an optimiser) keeps its own name, because that is what the user has to fix.
std::string_view called(std::string_view op, const Location& where) {
  const bool is_class = !op.empty() && op[0] >= 'A' && op[0] <= 'Z';
  return *where.op && !is_class ? where.op : op;
}

std::string sentence(std::string_view op, std::string_view problem, const Location& where) {
  std::string s;
  if (!op.empty()) s = std::string(op) + ": ";
  s += problem;
  if (where.known()) s += " (at " + where.str() + ")";
  return s;
}

thread_local Location current_location;

}  // namespace

OpScope::OpScope(const Location& where) : outermost_(!current_location.known()) {
  if (outermost_) current_location = where;
}
OpScope::~OpScope() {
  if (outermost_) current_location = {};
}
Location OpScope::current() { return current_location; }

std::string Location::str() const {
  if (!known()) return "";
  std::string_view name = file;
  if (const auto slash = name.find_last_of('/'); slash != name.npos) name.remove_prefix(slash + 1);
  return std::string(name) + ":" + std::to_string(line);
}

void append_number(std::string& to, long long n) { append_chars(to, n); }
void append_number(std::string& to, unsigned long long n) { append_chars(to, n); }
void append_number(std::string& to, double x) { append_chars(to, x, std::chars_format::general, 6); }

Error::Error(std::string_view op, std::string_view problem, Location where)
    : std::runtime_error(sentence(called(op, where), problem, where)),
      op_(called(op, where)),
      problem_(problem),
      where_(where) {}

void check(bool invariant, const char* what, const SourceLocation& at) {
  if (!invariant) throw Error("internal error", what, Location::here(at));
}

}  // namespace lc
