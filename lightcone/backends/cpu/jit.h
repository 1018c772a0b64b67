// Kernels' text to callable functions: the system compiler, in batches, with a cache on disk.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace lc::host {

struct Source {
  std::string name;  // the function the text defines
  std::string text;
};
using KernelFunction = void (*)(const void* const* in, void* out, const long* n, long begin, long end);

struct JitOptions {
  // "": $LIGHTCONE_CC, else cc, gcc or clang, else LLVM's library; "llvm": that library; "none": nothing
  std::string compiler = "";
  std::string cache_dir = "";  // "": $LIGHTCONE_CACHE, else $XDG_CACHE_HOME/lightcone or ~/.cache/lightcone; "off"
  std::string llvm = "";       // "": $LIGHTCONE_LLVM, else libLLVM of any version from 13 on
  int vector = 64;             // bytes of the widest vectors of generated loops, where $LIGHTCONE_ISA allows them
};
struct Jitted {
  std::vector<KernelFunction> functions;         // in the order of the sources
  std::vector<std::shared_ptr<void>> libraries;  // keep the code alive
  int compiled = 0, cached = 0;                  // units
};

inline constexpr std::string_view kLlvm = "llvm";
// The compiler's path, kLlvm for LLVM's library (llvm.h), "" when there is none; Error when one was named and
// cannot be run.
std::string find_compiler(const JitOptions& options = {});
// Throws an Error with the compiler's own first lines when it fails.
Jitted jit(std::span<const Source> sources, const JitOptions& options = {});

// The functions generated code calls, put before every unit.
std::string_view c_prelude();

}  // namespace lc::host
