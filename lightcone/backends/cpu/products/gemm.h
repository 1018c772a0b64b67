// Dense matrix product C = A * B: packed and register-blocked for many rows, streaming for few.
//
// A is f32 with any strides. B is f32 with any strides, or a weight W[N, K] with contiguous rows in a storage type,
// which is converted while it is packed. Sums over K are never split between threads, and tiles depend on the shape
// alone, so results have the same bits for any thread count.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "lightcone/backends/cpu/kernels/abi/gemm_abi.h"
#include "lightcone/backends/cpu/target/blocking.h"
#include "lightcone/backends/cpu/target/target.h"
#include "lightcone/device/parallel.h"

namespace lc::backends::cpu {

// Bytes of scratch for this product and for every smaller one of the same kind. Only the sizes and the layout of B
// count.
std::size_t gemm_scratch_bytes(const Gemm& g, int workers);
// A batch of `count` products. The pointers a, b and c advance by these steps (elements; bytes for a quantized b).
struct GemmBatch {
  std::int64_t count = 1, a = 0, b = 0, c = 0;
};
// Computes the product, or the batch. `scratch` has gemm_scratch_bytes() bytes, aligned to 64.
void gemm(const Gemm& g, const GemmBatch& batch, Parallel& parallel, std::byte* scratch, Isa isa);

}  // namespace lc::backends::cpu
