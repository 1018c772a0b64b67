// Random words on this CPU: random/random_bits.h says which they are.
#pragma once

#include <cstdint>
#include <memory>

#include "lightcone/backends/cpu/target/isa.h"
#include "lightcone/device/host_kernel.h"
#include "lightcone/random/random_bits.h"

namespace lc::backends::cpu {

std::shared_ptr<HostKernel> random_bits_kernel(const Node& n, Isa isa);

// Blocks of a step and a key, from this one on.
struct RandomBlocks {
  std::uint32_t key[2];
  std::uint64_t step, first;
};
// One instruction set's functions.
struct RandomTable {
  // The first `words` words of the blocks.
  void (*blocks)(const RandomBlocks& r, std::int64_t words, std::int32_t* to);
};
extern const RandomTable kRandomGeneric, kRandomAvx2, kRandomAvx512, kRandomNeon;
const RandomTable& random_table(Isa isa);

}  // namespace lc::backends::cpu
