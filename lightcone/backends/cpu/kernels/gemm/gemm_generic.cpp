#define ISA generic
#define WIDTH 4
#define MR 4
#define TABLE kGemmGeneric
#define UNIT kF32Generic
#define BF16_UNIT kBf16Generic
#include "lightcone/backends/cpu/kernels/gemm/gemm.inl.h"
