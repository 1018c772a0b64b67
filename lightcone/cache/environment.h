// What the environment says, where it may be trusted.
#pragma once

#include <cstdlib>
#include <string>

namespace lc {

// "" when it is not set. A program with more rights than its caller (setuid, file capabilities) is told nothing: the
// caller would choose which compiler and which compiled code it runs.
inline std::string env(const char* name) {
  const char* v = ::secure_getenv(name);
  return v ? v : "";
}

}  // namespace lc
