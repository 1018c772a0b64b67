#if defined(__x86_64__)
#define WIDTH 8
#define MR 6
#define GROUPS 1
#define F32_TABLE kGemmAvx2
#define UNIT kBf16Avx2
#define UNIT_NAME "bf16_avx2"
#include "lightcone/backends/cpu/kernels/dense_bf16.inl.h"
#else
#include "lightcone/backends/cpu/products/dense_unit.h"
namespace lc::host {
const DenseUnit kBf16Avx2 = kBf16Generic;
}
#endif
