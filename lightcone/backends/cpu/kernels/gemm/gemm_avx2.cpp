#define ISA avx2
#define WIDTH 8
#define MR 6
#define TABLE kGemmAvx2
#define UNIT kF32Avx2
#define BF16_UNIT kBf16Avx2
#include "lightcone/backends/cpu/kernels/gemm/gemm.inl.h"
