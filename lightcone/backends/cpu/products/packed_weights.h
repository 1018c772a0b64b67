// Kernels that repack weights for streaming: kernels/abi/weight_formats.h describes the layout.
//
// A product then reads one stream per thread and needs no horizontal sums. Packing happens once, when a parameter is
// loaded.
#pragma once

#include <memory>

#include "lightcone/backends/cpu/kernels/abi/weight_formats.h"
#include "lightcone/backends/cpu/products/gemm.h"

namespace lc {
class HostKernel;
}  // namespace lc

namespace lc::backends::cpu {

// Packs a weight [n, k] as stored in the checkpoint, or f32 stored as [k, n] (`transposed`), into packed_bytes() bytes.
// `to` equals `from`, or is bf16 for f32.
std::shared_ptr<HostKernel> pack_kernel(WeightType from, WeightType to, std::int64_t n, std::int64_t k,
                                        bool transposed);

// Packs a weight of f32 or bytes as a microkernel's pack_b does: Gemm::for_unit.
std::shared_ptr<HostKernel> pack_for_unit_kernel(const Microkernel& unit, WeightType from, std::int64_t n,
                                                 std::int64_t k, bool transposed);

}  // namespace lc::backends::cpu
