// What compiled code depends on besides its text and the options.
#pragma once

#include <string>

namespace lc::backends::cpu {

// The compiler's file and the processor. "" when the system does not say; then nothing may be kept.
std::string identity(const std::string& compiler);

}  // namespace lc::backends::cpu
