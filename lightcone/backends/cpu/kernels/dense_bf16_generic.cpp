#define WIDTH 4
#define MR 2
#define GROUPS 1
#define F32_TABLE kGemmGeneric
#define UNIT kBf16Generic
#define UNIT_NAME "bf16_generic"
#include "lightcone/backends/cpu/kernels/dense_bf16.inl.h"
