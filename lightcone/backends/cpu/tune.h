// Measures which settings of generated loops and of weight streaming are fastest on this machine.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "lightcone/codegen/machine.h"

namespace lc {

// Options of tune().
struct TuneOptions {
  int threads = 0;                                  // as in CpuOptions
  int rounds = 5;                                   // runs of every candidate
  std::int64_t elements = 0;                        // size of the timed tensors; 0: more than the caches hold
  std::function<void(std::string_view)> said = {};  // called with a description before each step
  double seconds = 8;                               // time limit; settings not decided by then keep their values
};

// Tunes the machine profile. Starts from default_machine() and decides one setting after another by timing GELU,
// softmax and layer norm of tensors larger than the caches, and a row times quantized weights that no cache holds.
// Candidates run in turn, so clock drift affects all of them equally, and each candidate's fastest time counts. The
// current profile runs twice per turn; the difference between its own times is the noise. A candidate is adopted only
// if it is faster by more than the noise and by more than 2 % (weight streams: 5 %), and slower nowhere. Takes about
// ten seconds at most, needs a C compiler or LLVM, and needs memory for a dozen of the tensors. Nothing is stored: see
// keep_profile().
Machine tune(const TuneOptions& options = {});

namespace backends::cpu {

// The workloads that candidates are timed with.
enum class TuneWork : std::uint8_t { Gelu, Softmax, LayerNorm, Q8Weights, Q4Weights };
// The measurements behind tune(). tune() measures this machine; tests supply their own.
struct TuneBench {
  // Runs every candidate once, in turn, and returns their times in seconds.
  using Turn = std::function<std::vector<double>()>;
  // Prepares a workload for each candidate.
  std::function<Turn(TuneWork work, const std::vector<Machine>& candidates)> prepare;
  std::function<double()> now;  // clock, in seconds
  bool wide = false;            // the processor has 64-byte vectors
};
// Decides the profile with the measurements of `bench`.
Machine choose_profile(const Machine& built_in, const TuneOptions& options, const TuneBench& bench);

}  // namespace backends::cpu
}  // namespace lc
