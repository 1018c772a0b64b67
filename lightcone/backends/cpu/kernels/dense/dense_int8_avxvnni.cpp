#define ISA avxvnni
#define WIDTH 8
#define MR 3
#define GROUPS 1
#define F32_TABLE kGemmAvx2
#define VNNI
#define UNITS kInt8AvxVnni
#include "lightcone/backends/cpu/kernels/dense/dense_int8.inl.h"
