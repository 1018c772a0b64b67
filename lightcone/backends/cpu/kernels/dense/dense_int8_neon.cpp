#define ISA neon
#define WIDTH 4
#define NEON
#define MR 2
#define GROUPS 1
#define F32_TABLE kGemmNeon
#define UNITS kInt8Neon
#include "lightcone/backends/cpu/kernels/dense/dense_int8_neon.inl.h"
