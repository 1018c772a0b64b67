#define ISA avx512
#define WIDTH 16
#define TABLE kDepthwiseAvx512
#include "lightcone/backends/cpu/kernels/conv/depthwise.inl.h"
