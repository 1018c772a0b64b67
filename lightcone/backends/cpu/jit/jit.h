// Kernels' text to callable functions: the system compiler, in batches, with a cache on disk.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lightcone/backends/cpu/target/isa.h"
#include "lightcone/core/error.h"

namespace lc::backends::cpu {

struct Source {
  std::string name;  // the function the text defines
  std::string text;  // "": that of an earlier source of this name
};
using KernelFunction = void (*)(const void* const* in, void* out, const long* n, long begin, long end);

struct JitOptions {
  // "": $LIGHTCONE_CC, else cc, gcc or clang, else LLVM's library; "llvm": that library; "none": nothing
  std::string compiler = "";
  std::string cache_dir = "";   // "": $LIGHTCONE_CACHE, else $XDG_CACHE_HOME/lightcone or ~/.cache/lightcone; "off"
  std::string llvm = "";        // "": $LIGHTCONE_LLVM, else libLLVM of any version from 13 on
  std::optional<Isa> isa = {};  // the instruction set; none: this processor's
  int vector = 64;              // bytes of the widest vectors of generated loops, where $LIGHTCONE_ISA allows them
  std::size_t cache_size = 0;   // bytes the cache may have; 0: $LIGHTCONE_CACHE_SIZE, else 512 MB
};
struct Jitted {
  std::vector<KernelFunction> functions;         // in the order of the sources
  std::vector<std::shared_ptr<void>> libraries;  // keep the code alive
  int compiled = 0, cached = 0;                  // units
  std::string cache_problem;                     // why nothing was kept although it was asked for, as a sentence
};

// The Error of a compiler that does not work here, whatever the text: another one may.
class CompilerUnfit : public Error {
 public:
  using Error::Error;
};

inline constexpr std::string_view kLlvm = "llvm";
// Was a compiler, or none, asked for by its name?
bool compiler_named(const JitOptions& options = {});
// The one that was named, else the first that is there: a C compiler's path, kLlvm for LLVM's library (llvm.h), "" for
// none. Error when one was named and cannot be run.
std::string find_compiler(const JitOptions& options = {});
// Throws CompilerUnfit when the compiler fails, and another Error when it is the text that it refuses; both with the
// compiler's own first words.
Jitted jit(std::span<const Source> sources, const JitOptions& options = {});

}  // namespace lc::backends::cpu
