#if defined(__x86_64__)
#define WIDTH 8
#define MR 6
#define TABLE kGemmAvx2
#define UNIT kF32Avx2
#define BF16_UNIT kBf16Avx2
#define ISA_NAME "avx2"
#include "lightcone/backends/cpu/kernels/gemm.inl.h"
#else
#include "lightcone/backends/cpu/products/dense_unit.h"
namespace lc::host {
const GemmTable kGemmAvx2 = kGemmGeneric;
const DenseUnit kF32Avx2 = kF32Generic;
const DenseUnit kBf16Avx2 = kBf16Generic;
}  // namespace lc::host
#endif
