#define ISA avx2
#define WIDTH 8
#define MR 3
#define GROUPS 1
#define F32_TABLE kGemmAvx2
#define MADD
#define UNITS kInt8Avx2
#include "lightcone/backends/cpu/kernels/dense/dense_int8.inl.h"
