// Tiles by CUDA's tensor cores.
#pragma once

#include <string_view>

#include "lightcone/backends/gpu/products/kernels.h"

namespace lc::gpu {

// In what numbers the cores multiply. Sums are f32, of bytes 32 bits.
enum class Cores : std::uint8_t { None, Bf16, F16, Tf32, I8 };

KernelText tensor_tiles(const ProductTexts& t, Cores cores, int side);
std::string_view tensor_primitives();

}  // namespace lc::gpu
