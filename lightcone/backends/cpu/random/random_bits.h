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

}  // namespace lc::backends::cpu
