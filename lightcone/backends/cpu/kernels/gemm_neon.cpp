#if defined(__aarch64__)
#define WIDTH 4
#define NEON
#define MR 6
#define TABLE kGemmNeon
#define UNIT kF32Neon
#define BF16_UNIT kBf16Neon
#define ISA_NAME "neon"
#include "lightcone/backends/cpu/kernels/gemm.inl.h"
#else
#include "lightcone/backends/cpu/products/dense_unit.h"
namespace lc::host {
const GemmTable kGemmNeon = kGemmGeneric;
const DenseUnit kF32Neon = kF32Generic;
const DenseUnit kBf16Neon = kBf16Generic;
}  // namespace lc::host
#endif
