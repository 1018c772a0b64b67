// Metal's shading language as C++: what it has and C++ has not is the words for address spaces, attributes of
// parameters, and float as the type of 1.0. The rest is a library (shim/msl.h).
#pragma once

#include <string>

namespace fake {

enum class Target {
  Cpu,    // C++ with functions that a scheduler of fibers calls (shim/msl.h); there is one address space
  Check,  // C++ that clang checks, in which address spaces are attributes (tests/metal/msl_check.h)
};
struct Translation {
  std::string cpp;
  std::string error;  // "program_source:3: error: ...", or "" where there is none
};
Translation translate(const std::string& msl, Target target);

constexpr unsigned kBuffers = 31;  // of a kernel; what it has in [[threadgroup(0)]] comes behind them

}  // namespace fake
