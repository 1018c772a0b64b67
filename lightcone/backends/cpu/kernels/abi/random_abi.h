// The interface of the microkernels that draw random words. random/random_bits.h defines their values.
#pragma once

#include <cstdint>

namespace lc::backends::cpu {

// A counter range of the generator: the blocks from `first` on for one key and step.
struct RandomBlocks {
  std::uint32_t key[2];
  std::uint64_t step, first;
};

// Functions per instruction set.
struct RandomTable {
  // Writes the first `words` words of the blocks.
  void (*blocks)(const RandomBlocks* r, std::int64_t words, std::int32_t* to);
};
extern const RandomTable kRandomGeneric, kRandomAvx2, kRandomAvx512, kRandomNeon;

}  // namespace lc::backends::cpu
