// How the C compiler is told what generated loops are to become: nothing that matters is left to its tuning.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "lightcone/backends/cpu/target/isa.h"

namespace lc::backends::cpu {

// Options of GCC alone; whatever is not called clang is given them, and may refuse (jit.cpp). Arrays of a vector are
// not copied by memcpy(), which is done in pieces of 16 or 32 bytes.
inline constexpr std::array<std::string_view, 2> kGccOptions = {"-fvect-cost-model=dynamic",
                                                                "-fno-tree-loop-distribute-patterns"};

// The options of one call, between the compiler's name and the files. `vector`: bytes of the widest vectors.
std::vector<std::string> c_flags(const std::string& compiler, int vector, Isa isa);

}  // namespace lc::backends::cpu
