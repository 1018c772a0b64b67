#define ISA neon
#define WIDTH 4
#define NEON
#define TABLE kDepthwiseNeon
#include "lightcone/backends/cpu/kernels/conv/depthwise.inl.h"
