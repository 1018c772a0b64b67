#define ISA avx2
#define WIDTH 8
#define TABLE kDepthwiseAvx2
#include "lightcone/backends/cpu/kernels/conv/depthwise.inl.h"
