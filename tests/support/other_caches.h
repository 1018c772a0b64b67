// Pretends small caches if several threads work: neither cache sizes nor threads may change a bit of a result.
#pragma once

#include "lightcone/backends/cpu/target/blocking.h"
#include "lightcone/device/parallel.h"

namespace lc::test {

inline backends::cpu::Blocking blocking(const Parallel& pool) {
  return backends::cpu::Blocking(pool.workers() > 1 ? Machine{.l1 = 8 << 10, .l2 = 64 << 10} : Machine{});
}

}  // namespace lc::test
