// Options for the C compiler of generated loops. They fix everything that the compiler's tuning could change.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "lightcone/backends/cpu/target/isa.h"

namespace lc::backends::cpu {

// Options that only GCC accepts. They are passed to every compiler not recognized as clang, and dropped if it refuses
// them (jit.cpp). The second one prevents copies of vector-sized arrays from becoming memcpy() calls, which copy in
// pieces of 16 or 32 bytes.
inline constexpr std::array<std::string_view, 2> kGccOptions = {"-fvect-cost-model=dynamic",
                                                                "-fno-tree-loop-distribute-patterns"};

// Options of one compiler call, between the compiler's name and the files. `vector` is the widest vector, in bytes.
std::vector<std::string> c_flags(const std::string& compiler, int vector, Isa isa);

}  // namespace lc::backends::cpu
