// Compiles kernel text to callable functions with the system's C compiler, in batches, with a cache on disk.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lightcone/backends/cpu/target/isa.h"
#include "lightcone/base/error.h"

namespace lc::backends::cpu {

// The source text of one kernel.
struct Source {
  std::string name;  // name of the function that `text` defines
  std::string text;  // "": the text of an earlier source with this name
};
// Signature of a compiled kernel: operand pointers, result pointer, sizes, and the range of iterations.
using KernelFunction = void (*)(const void* const* in, void* out, const long* n, long begin, long end);

// Options of the just-in-time compiler.
struct JitOptions {
  // "": $LIGHTCONE_CC, else cc, gcc or clang, else LLVM's library. "llvm": LLVM's library. "none": no compiler.
  std::string compiler = "";
  // The cache directory. "": $LIGHTCONE_CACHE, else $XDG_CACHE_HOME/lightcone, else ~/.cache/lightcone. "off": no
  // cache.
  std::string cache_dir = "";
  std::string llvm = "";        // "": $LIGHTCONE_LLVM, else the newest libLLVM from version 13 on
  std::optional<Isa> isa = {};  // the instruction set; unset: this processor's
  int vector = 64;              // widest vectors of generated loops, in bytes, if $LIGHTCONE_ISA allows them
  std::size_t cache_size = 0;   // limit of the cache in bytes; 0: $LIGHTCONE_CACHE_SIZE, else 512 MB
};
// Compiled kernels.
struct Jitted {
  std::vector<KernelFunction> functions;         // in the order of the sources
  std::vector<std::shared_ptr<void>> libraries;  // own the code of `functions`
  int compiled = 0, cached = 0;                  // number of compilation units
  std::string cache_problem;  // why nothing was cached although it was requested, as a sentence; else ""
};

// Thrown if a compiler does not work on this machine, whatever the source text; another compiler may work.
class CompilerUnfit : public Error {
 public:
  using Error::Error;
};

// The name that stands for LLVM's library in place of a compiler's path.
inline constexpr std::string_view kLlvm = "llvm";
// Returns whether the user named a compiler, or "none".
bool compiler_named(const JitOptions& options = {});
// Returns the named compiler, else the first one available: the path of a C compiler, kLlvm for LLVM's library
// (llvm.h), or "" if there is none. Throws Error if the named compiler cannot be run.
std::string find_compiler(const JitOptions& options = {});
// Compiles `sources`. Throws CompilerUnfit if the compiler fails, and Error if it rejects the source text; both carry
// the first part of the compiler's output.
Jitted jit(std::span<const Source> sources, const JitOptions& options = {});

}  // namespace lc::backends::cpu
