#define WIDTH 4
#define MR 4
#define TABLE kGemmGeneric
#define UNIT kF32Generic
#define BF16_UNIT kBf16Generic
#define ISA_NAME "generic"
#include "lightcone/backends/cpu/kernels/gemm.inl.h"
