#define ISA neondotprod
#define WIDTH 4
#define NEON
#define DOTPROD
#define MR 3
#define GROUPS 1
#define F32_TABLE kGemmNeon
#define UNITS kInt8NeonDotprod
#include "lightcone/backends/cpu/kernels/dense/dense_int8_neon.inl.h"
