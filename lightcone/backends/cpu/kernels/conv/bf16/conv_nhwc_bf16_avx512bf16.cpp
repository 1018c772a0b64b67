#define ISA avx512bf16
#define WIDTH 16
#define MR 6
#define VECTORS 4
#define TABLE kNhwcBf16Avx512Bf16
#include "lightcone/backends/cpu/kernels/conv/bf16/conv_nhwc_bf16.inl.h"
