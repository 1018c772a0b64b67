#if defined(__x86_64__)
#define WIDTH 16
#define MR 14
#define GROUPS 2
#define F32_TABLE kGemmAvx512
#define UNIT kBf16Avx512Bf16
#define UNIT_NAME "bf16_avx512bf16"
#include "lightcone/backends/cpu/kernels/dense_bf16.inl.h"
#else
#include "lightcone/backends/cpu/products/dense_unit.h"
namespace lc::host {
const DenseUnit kBf16Avx512Bf16 = kBf16Generic;
}
#endif
