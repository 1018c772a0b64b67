#include "lightcone/backends/cpu/jit/c_flags.h"

#include <algorithm>
#include <filesystem>

namespace lc::backends::cpu {
namespace {

// Detects clang by the file name or the name of the file it links to, without starting a process. A clang under another
// name is detected later, when it refuses GCC's options.
bool is_clang(const std::string& compiler) {
  std::error_code none;
  const std::filesystem::path file = std::filesystem::canonical(compiler, none);
  return (std::filesystem::path(compiler).filename().string() + file.filename().string()).find("clang") !=
         std::string::npos;
}

// The vector width is set explicitly because -march=native also selects the processor's tuning, and the tuning of GCC
// and LLVM for Intel processors with AVX-512 halves the vectors of every loop.
std::vector<std::string> target_flags(int vector, Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::Generic) return {};
  std::vector<std::string> flags;
  if (isa > detect_isa()) flags = {isa == Isa::Avx512 ? "-march=x86-64-v4" : "-march=x86-64-v3"};  // cross-compilation
  else flags = {"-march=native"};
  if (isa == Isa::Avx2) flags.push_back("-mno-avx512f");
  const int most = isa == Isa::Avx512 ? 64 : 32;
  // With narrower vectors, 16 numbers take several of them; without this option GCC keeps the loop over them and spills
  // its sums to memory.
  if (std::min(vector, most) < 64) flags.push_back("-fpeel-loops");
  flags.push_back("-mprefer-vector-width=" + std::to_string(8 * std::min(vector, most)));
  return flags;
#else
  (void)vector, (void)isa;
  return {"-march=native"};
#endif
}

}  // namespace

std::vector<std::string> c_flags(const std::string& compiler, int vector, Isa isa) {
  // -O3 is not used: GCC 12 then unrolls short inner loops and vectorizes the outer loop with conditional loads of the
  // wrong elements.
  std::vector<std::string> flags{"-x",
                                 "c",
                                 "-std=gnu11",
                                 "-O2",
                                 "-ftree-vectorize",
                                 "-fPIC",
                                 "-shared",
                                 "-fno-math-errno",
                                 "-fno-trapping-math",
                                 "-ffp-contract=off",
                                 "-w",
                                 "-pipe",
                                 "-DLC_VECTOR=" + std::to_string(vector)};
  for (const std::string& f : target_flags(vector, isa)) flags.push_back(f);
  if (!is_clang(compiler)) flags.insert(flags.end(), kGccOptions.begin(), kGccOptions.end());
  return flags;
}

}  // namespace lc::backends::cpu
