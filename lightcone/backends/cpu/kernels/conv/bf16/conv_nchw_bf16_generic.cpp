#define ISA generic
#define WIDTH 4
#define F32_TABLE kGemmGeneric
#define TABLE kNchwBf16Generic
#include "lightcone/backends/cpu/kernels/conv/bf16/conv_nchw_bf16.inl.h"
