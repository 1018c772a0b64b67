#include "lightcone/runtime/default_compiler.h"

#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/passes/passes.h"

namespace lc {

Compiler default_compiler(const DefaultCompilerOptions& o) {
  return generic() | cpu({.threads = o.threads, .precision = o.precision});
}

}  // namespace lc
