#define WIDTH 4
#define NEON
#define MR 2
#define GROUPS 1
#define F32_TABLE kGemmNeon
#define UNITS kInt8Neon
#define UNIT_NAME "int8_neon"
#include "lightcone/backends/cpu/kernels/dense_int8_neon.inl.h"
