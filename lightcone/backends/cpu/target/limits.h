// What this machine can do, measured: the limits that speeds are compared with.
#pragma once

#include <cstddef>

#include "lightcone/device/parallel.h"

namespace lc::backends::cpu {

// Bytes a second, the best of several passes over memory far larger than the caches.
double read_bandwidth(Parallel& parallel, std::size_t bytes = 256u << 20, double seconds = 0.15);
double copy_bandwidth(Parallel& parallel, std::size_t bytes = 256u << 20,
                      double seconds = 0.3);  // bytes read + written

// Operations a second of f32 fused multiply-adds that never wait for memory, two operations each.
double fma_rate(Parallel& parallel, double seconds = 0.1);

}  // namespace lc::backends::cpu
