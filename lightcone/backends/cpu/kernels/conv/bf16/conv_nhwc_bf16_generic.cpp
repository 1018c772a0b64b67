#define ISA generic
#define WIDTH 4
#define MR 4
#define VECTORS 2
#define TABLE kNhwcBf16Generic
#include "lightcone/backends/cpu/kernels/conv/bf16/conv_nhwc_bf16.inl.h"
