#define ISA neoni8mm
#define WIDTH 4
#define NEON
#define I8MM
#define MR 4
#define GROUPS 1
#define F32_TABLE kGemmNeon
#define UNITS kInt8NeonI8mm
#include "lightcone/backends/cpu/kernels/dense/dense_int8_neon.inl.h"
