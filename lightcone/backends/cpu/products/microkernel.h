// The choice among the microkernels of dense products, which kernels/abi/gemm_abi.h describes.
#pragma once

#include <vector>

#include "lightcone/backends/cpu/kernels/abi/gemm_abi.h"
#include "lightcone/backends/cpu/target/target.h"

namespace lc::backends::cpu {

// The fastest microkernel for arithmetic `a` on `t`; for int8, for codes of B of so many bits. Returns null for splits
// without bf16 tiles, because they are faster than f32 only with tiles. If this processor has tiles and `a` is not F32,
// this requests them from the system (target.h), so call it only for a product that would use them.
const Microkernel* microkernel(Arithmetic a, const Target& t, int code_bits = 8);
// Returns whether int8 products with weights of block format t are in the microkernel's arithmetic.
bool takes(const Microkernel& u, WeightType t);
// Returns whether the target has AVX-512 bf16 dot products that are faster than f32 FMAs.
bool bf16_dots_are_fast(const Target& t);
// Returns whether bf16 products are faster than f32: by dot products, tiles or Arm's instructions. May request tiles.
bool bf16_is_fast(const Target& t);
// As bf16_is_fast(), but without requesting tiles; they count unless they were refused.
bool bf16_may_be_fast(const Target& t);
// Returns whether the target has AMX tiles, which the system may still refuse. Does not request them.
bool may_have_tiles(const Target& t);
// Returns whether the microkernel uses AMX tiles, real or emulated.
bool on_tiles(const Microkernel& u);
// All microkernels but f32 that this CPU can run, for tests; AMX microkernels also as an emulation.
std::vector<const Microkernel*> microkernels();

}  // namespace lc::backends::cpu
