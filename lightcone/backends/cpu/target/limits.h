// Measured limits of this machine, with which speeds are compared.
#pragma once

#include <cstddef>

#include "lightcone/device/parallel.h"

namespace lc::backends::cpu {

// Read bandwidth in bytes per second: the best of several passes over `bytes` of memory, which should far exceed the
// caches.
double read_bandwidth(Parallel& parallel, std::size_t bytes = 256u << 20, double seconds = 0.15);
// Copy bandwidth in bytes per second, counting bytes read and bytes written.
double copy_bandwidth(Parallel& parallel, std::size_t bytes = 256u << 20, double seconds = 0.3);

// Peak rate of f32 fused multiply-adds, in operations per second (two per multiply-add), without memory accesses.
double fma_rate(Parallel& parallel, double seconds = 0.1);

}  // namespace lc::backends::cpu
