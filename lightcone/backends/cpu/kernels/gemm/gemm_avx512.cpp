#define ISA avx512
#define WIDTH 16
#define MR 14
#define TABLE kGemmAvx512
#define UNIT kF32Avx512
#define BF16_UNIT kBf16Avx512
#include "lightcone/backends/cpu/kernels/gemm/gemm.inl.h"
