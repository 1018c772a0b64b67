#define WIDTH 4
#define MR 4
#define TABLE kGemmGeneric
#include "lightcone/backends/cpu/kernels/gemm.inl.h"
