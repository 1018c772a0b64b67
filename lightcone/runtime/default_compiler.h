// The compiler of models that are loaded without one.
#pragma once

#include "lightcone/passes/compiler.h"
#include "lightcone/passes/precision.h"

namespace lc {

// Options of default_compiler(), which every device has.
struct DefaultCompilerOptions {
  int threads = 0;  // 0: all cores that this process may use
  Precision precision = Precision::Highest;
};

// Returns generic() | cpu() with these options. The CPU's back end defines it, so that models need to include none.
Compiler default_compiler(const DefaultCompilerOptions& o = {});

}  // namespace lc
