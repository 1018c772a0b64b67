// Checks a Metal text as far as clang for C++ can: its syntax, and the address spaces of pointers (`device`,
// `threadgroup`, `constant`), which running it on a CPU does not show.
#pragma once

#include <string>

namespace lc::test {

bool can_check_msl();  // Returns true if clang is installed.
// Returns the compiler's errors, or "".
std::string check_msl(const std::string& text);

}  // namespace lc::test
