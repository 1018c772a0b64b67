// Tiles by the matrix instructions of CUDA's compute capability 9.0, whose operands are in shared memory.
#pragma once

#include <string>
#include <string_view>

#include "lightcone/backends/gpu/products/tensor_tiles.h"

namespace lc::backends::gpu {

inline constexpr int kWarpgroupRows = 128, kWarpgroupColumns = 256;  // size of a tile; it may have half as many columns

// Returns true if both operands have layouts that the copies and the instructions take.
bool fits_warpgroups(const Product& p, Cores cores);
// Makes tiles of kWarpgroupRows x `columns`, which is kWarpgroupColumns or half of it.
KernelText warpgroup_tiles(const ProductTexts& t, Cores cores, int columns);

std::string_view warpgroup_primitives();
// Defines lc_wgmma_TYPES_COLUMNS, the instruction that computes 64 x `columns` sums.
std::string warpgroup_product(const Product& p, Cores cores, int columns);
std::string warpgroup_types(const Product& p, Cores cores);

}  // namespace lc::backends::gpu
