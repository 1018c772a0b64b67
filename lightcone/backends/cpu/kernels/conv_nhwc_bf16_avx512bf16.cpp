#if defined(__x86_64__)
#define WIDTH 16
#define MR 6
#define VECTORS 4
#define NAME "avx512bf16"
#define TABLE kNhwcBf16Avx512Bf16
#include "lightcone/backends/cpu/kernels/conv_nhwc_bf16.inl.h"
#else
#include "lightcone/backends/cpu/conv/nhwc_bf16.h"
namespace lc::host {
const NhwcBf16Table kNhwcBf16Avx512Bf16 = kNhwcBf16Generic;
}
#endif
