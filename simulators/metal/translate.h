// Translates Metal's shading language to C++. It replaces what C++ lacks: address-space keywords, attributes of
// parameters, and float as the type of 1.0. The rest is a library (shim/msl.h).
#pragma once

#include <string>

namespace lc::simulators::metal {

enum class Target {
  Cpu,    // C++ that the fiber scheduler runs (shim/msl.h), with one address space
  Check,  // C++ that clang checks, with address spaces as attributes (tests/metal/msl_check.h)
};
struct Translation {
  std::string cpp;
  std::string error;  // "program_source:3: error: ...", or "" on success
};
Translation translate(const std::string& msl, Target target);

constexpr unsigned kBuffers = 31;  // per kernel; [[threadgroup(0)]] has the next slot

}  // namespace lc::simulators::metal
