#define ISA avx2
#define WIDTH 8
#define MR 6
#define TABLE kConvAvx2
#include "lightcone/backends/cpu/kernels/conv/conv.inl.h"
