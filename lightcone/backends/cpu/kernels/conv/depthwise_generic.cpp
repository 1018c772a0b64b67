#define ISA generic
#define WIDTH 4
#define TABLE kDepthwiseGeneric
#include "lightcone/backends/cpu/kernels/conv/depthwise.inl.h"
