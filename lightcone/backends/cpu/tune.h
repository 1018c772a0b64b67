// Measures what generated loops and streams of weights run best with on this machine.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "lightcone/codegen/machine.h"

namespace lc {

struct TuneOptions {
  int threads = 0;                                  // as CpuOptions
  int rounds = 5;                                   // how often every candidate takes its turn
  std::int64_t elements = 0;                        // of the tensors that are timed; 0: more than the caches hold
  std::function<void(std::string_view)> said = {};  // is told each step, before it begins
  double seconds = 8;                               // when they are over, what is not decided yet stays as it is
};

// Starts from the profile that the processor's family has and decides one thing after the other, by what a GELU, a
// softmax and a layer norm of tensors larger than the caches take, and a row times quantised weights that no cache
// holds. Candidates run in turn, so that a machine that drifts drifts for all, and the fastest time of each counts.
// The profile that there is runs twice in every turn: what its own times differ by is noise, and only what is faster
// by more than that, and by 2 % (streams of weights: 5 %), and nowhere slower, changes anything. Some ten seconds at
// most; needs a C compiler or LLVM, and memory for a dozen such tensors. Nothing is kept: see keep_profile().
Machine tune(const TuneOptions& options = {});

namespace backends::cpu {

enum class TuneWork : std::uint8_t { Gelu, Softmax, LayerNorm, Q8Weights, Q4Weights };
// What is tuned. tune() has this machine, tests have others.
struct TuneBench {
  // Prepares this work for each candidate; what it returns runs each of them once, in turn, and gives the seconds.
  using Turn = std::function<std::vector<double>()>;
  std::function<Turn(TuneWork work, const std::vector<Machine>& candidates)> prepare;
  std::function<double()> now;  // in seconds
  bool wide = false;            // are there vectors of 64 bytes to choose from?
};
Machine choose_profile(const Machine& built_in, const TuneOptions& options, const TuneBench& bench);

}  // namespace backends::cpu
}  // namespace lc
