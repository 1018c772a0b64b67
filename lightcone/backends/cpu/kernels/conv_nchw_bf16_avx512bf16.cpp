#if defined(__x86_64__)
#define WIDTH 16
#define F32_TABLE kGemmAvx512
#define TABLE kNchwBf16Avx512Bf16
#include "lightcone/backends/cpu/kernels/conv_nchw_bf16.inl.h"
#else
#include "lightcone/backends/cpu/conv/nchw_bf16.h"
namespace lc::host {
const NchwBf16Table kNchwBf16Avx512Bf16 = kNchwBf16Generic;
}
#endif
