#define ISA avx512bf16
#define WIDTH 16
#define F32_TABLE kGemmAvx512
#define TABLE kNchwBf16Avx512Bf16
#include "lightcone/backends/cpu/kernels/conv/bf16/conv_nchw_bf16.inl.h"
