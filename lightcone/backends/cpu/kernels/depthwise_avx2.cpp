#define ISA avx2
#define WIDTH 8
#define TABLE kDepthwiseAvx2
#include "lightcone/backends/cpu/kernels/depthwise.inl.h"
