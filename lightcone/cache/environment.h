// Environment variables, read only if they can be trusted.
#pragma once

#include <cstdlib>
#include <string>

namespace lc {

// Returns a variable, or "" if it is not set. A program with more rights than its caller (setuid, file capabilities)
// gets "", because the caller would otherwise choose which compiler and which compiled code it runs.
inline std::string env(const char* name) {
  const char* v = ::secure_getenv(name);
  return v ? v : "";
}

}  // namespace lc
