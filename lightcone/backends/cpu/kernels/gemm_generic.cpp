#define WIDTH 4
#define MR 4
#define TABLE kGemmGeneric
#define UNIT kF32Generic
#define UNIT_NAME "f32_generic"
#include "lightcone/backends/cpu/kernels/gemm.inl.h"
