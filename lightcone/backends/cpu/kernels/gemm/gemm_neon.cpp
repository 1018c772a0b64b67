#define ISA neon
#define WIDTH 4
#define NEON
#define MR 6
#define TABLE kGemmNeon
#define UNIT kF32Neon
#define BF16_UNIT kBf16Neon
#include "lightcone/backends/cpu/kernels/gemm/gemm.inl.h"
