// Identifies everything that compiled code depends on besides its source text and options.
#pragma once

#include <string>

namespace lc::backends::cpu {

// The compiler's file (path, size, time) and the processor. "" if the system does not report them; the code must then
// not be cached.
std::string identity(const std::string& compiler);

}  // namespace lc::backends::cpu
