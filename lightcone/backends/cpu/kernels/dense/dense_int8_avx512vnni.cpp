#define ISA avx512vnni
#define WIDTH 16
#define MR 6
#define GROUPS 2
#define F32_TABLE kGemmAvx512
#define VNNI
#define UNITS kInt8Avx512Vnni
#include "lightcone/backends/cpu/kernels/dense/dense_int8.inl.h"
