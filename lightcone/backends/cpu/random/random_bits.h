// Random bits on this CPU. random/random_bits.h defines their values.
#pragma once

#include <cstdint>
#include <memory>

#include "lightcone/backends/cpu/target/isa.h"
#include "lightcone/device/host_kernel.h"
#include "lightcone/random/random_bits.h"

namespace lc::backends::cpu {

// Makes the kernel of a random_bits node.
std::shared_ptr<HostKernel> random_bits_kernel(const Node& n, Isa isa);

// A counter range of the generator: the blocks from `first` on for one key and step.
struct RandomBlocks {
  std::uint32_t key[2];
  std::uint64_t step, first;
};
// Functions per instruction set.
struct RandomTable {
  // Writes the first `words` words of the blocks.
  void (*blocks)(const RandomBlocks& r, std::int64_t words, std::int32_t* to);
};
extern const RandomTable kRandomGeneric, kRandomAvx2, kRandomAvx512, kRandomNeon;
// The table of an instruction set.
const RandomTable& random_table(Isa isa);

}  // namespace lc::backends::cpu
