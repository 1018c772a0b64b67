// Tiles by the matrix instructions of CUDA's compute capability 9.0, whose operands lie in shared memory.
#pragma once

#include <string>
#include <string_view>

#include "lightcone/backends/gpu/products/tensor_tiles.h"

namespace lc::backends::gpu {

inline constexpr int kWarpgroupRows = 128, kWarpgroupColumns = 256;  // of a tile; or half as many columns

// Do both operands lie as the copies and the instructions want them?
bool fits_warpgroups(const Product& p, Cores cores);
// Of kWarpgroupRows x `columns`: kWarpgroupColumns or half of them.
KernelText warpgroup_tiles(const ProductTexts& t, Cores cores, int columns);

std::string_view warpgroup_primitives();
// The product of 64 x `columns` sums as the instruction has it: lc_wgmma_TYPES_COLUMNS.
std::string warpgroup_product(const Product& p, Cores cores, int columns);
std::string warpgroup_types(const Product& p, Cores cores);

}  // namespace lc::backends::gpu
