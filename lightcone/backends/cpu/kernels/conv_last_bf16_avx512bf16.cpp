#if defined(__x86_64__)
#define WIDTH 16
#define MR 6
#define VECTORS 4
#define NAME "avx512bf16"
#define TABLE kConvLastBf16Avx512Bf16
#include "lightcone/backends/cpu/kernels/conv_last_bf16.inl.h"
#else
#include "lightcone/backends/cpu/conv_last_bf16.h"
namespace lc::host {
const ConvLastBf16Table kConvLastBf16Avx512Bf16 = kConvLastBf16Generic;
}
#endif
