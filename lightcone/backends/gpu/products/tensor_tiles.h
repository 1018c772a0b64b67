// Tiles by CUDA's tensor cores.
#pragma once

#include <string>
#include <string_view>

#include "lightcone/backends/gpu/products/kernels.h"

namespace lc::backends::gpu {

// In what numbers the cores multiply. Sums are f32, of bytes 32 bits; of floats of 8 bits some of Hopper's sums keep 14
// bits of what f32 would.
enum class Cores : std::uint8_t { None, Bf16, F16, Tf32, I8, F8 };

// What the cores take of an operand: one that is stored so is copied as it is.
WeightType taken(Cores c, WeightType stored);
std::string f8_name(WeightType t);  // as the instructions call it: e4m3
KernelText tensor_tiles(const ProductTexts& t, Cores cores, int side);

}  // namespace lc::backends::gpu
