#if defined(__aarch64__)
#define WIDTH 4
#define NEON
#define MR 6
#define GROUPS 1
#define F32_TABLE kGemmNeon
#define UNIT kBf16Neon
#define UNIT_NAME "bf16_neon"
#include "lightcone/backends/cpu/kernels/dense_bf16.inl.h"
#else
#include "lightcone/backends/cpu/products/dense_unit.h"
namespace lc::host {
const DenseUnit kBf16Neon = kBf16Generic;
}
#endif
