#if defined(__x86_64__)
#define WIDTH 16
#define MR 14
#define TABLE kGemmAvx512
#define UNIT kF32Avx512
#define BF16_UNIT kBf16Avx512
#define ISA_NAME "avx512"
#include "lightcone/backends/cpu/kernels/gemm.inl.h"
#else
#include "lightcone/backends/cpu/products/dense_unit.h"
namespace lc::host {
const GemmTable kGemmAvx512 = kGemmGeneric;
const DenseUnit kF32Avx512 = kF32Generic;
const DenseUnit kBf16Avx512 = kBf16Generic;
}  // namespace lc::host
#endif
