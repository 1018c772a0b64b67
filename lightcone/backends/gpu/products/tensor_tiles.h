// Tiles by CUDA's tensor cores.
#pragma once

#include <string>
#include <string_view>

#include "lightcone/backends/gpu/products/kernels.h"

namespace lc::backends::gpu {

// The type in which the cores multiply. Sums are f32, or 32-bit integers of bytes; for floats of 8 bits some of
// Hopper's sums keep 14 of the bits that f32 would keep.
enum class Cores : std::uint8_t { None, Bf16, F16, Tf32, I8, F8 };

// Returns the type that the cores take for an operand; an operand stored in that type is copied as it is.
WeightType taken(Cores c, WeightType stored);
std::string f8_name(WeightType t);  // as the instructions name it: e4m3
KernelText tensor_tiles(const ProductTexts& t, Cores cores, int side);

}  // namespace lc::backends::gpu
