#define ISA generic
#define WIDTH 4
#define MR 2
#define GROUPS 1
#define F32_TABLE kGemmGeneric
#define UNITS kInt8Generic
#include "lightcone/backends/cpu/kernels/dense/dense_int8.inl.h"
