// Measures what generated loops and streams of weights run best with on this machine.
#pragma once

#include <functional>
#include <string_view>

#include "lightcone/codegen/machine.h"

namespace lc {

struct TuneOptions {
  int threads = 0;                                  // as CpuOptions
  int rounds = 3;                                   // how often every candidate takes its turn
  std::int64_t elements = 0;                        // of the tensors that are timed; 0: more than the caches hold
  std::function<void(std::string_view)> said = {};  // is told each step, before it begins
};

// Starts from the profile that the processor's family has and decides one thing after the other, by what a GELU, a
// softmax and a layer norm of tensors larger than the caches take, and a row times quantised weights: candidates run in turn, so that a machine that drifts
// drifts for all, the fastest time of each counts, and what is not faster by 2 % changes nothing. Some seconds; needs a
// C compiler or LLVM, and memory for a dozen such tensors. Nothing is kept: see keep_profile().
Machine tune(const TuneOptions& options = {});

}  // namespace lc
