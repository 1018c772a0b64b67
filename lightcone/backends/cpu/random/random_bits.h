// Random words on this CPU: core/random_bits.h says which they are.
#pragma once

#include <cstdint>
#include <memory>

#include "lightcone/backends/cpu/target/isa.h"
#include "lightcone/core/random_bits.h"
#include "lightcone/device/host_kernel.h"

namespace lc::host {

std::shared_ptr<HostKernel> random_bits_kernel(const Node& n, Isa isa);

// One instruction set's functions.
struct RandomTable {
  // Blocks [first, first + count) of a step, four words each.
  void (*blocks)(Philox::Key key, std::int64_t step, std::int64_t first, std::int64_t count, std::int32_t* to);
};
extern const RandomTable kRandomGeneric, kRandomAvx2, kRandomAvx512, kRandomNeon;
const RandomTable& random_table(Isa isa);

}  // namespace lc::host
