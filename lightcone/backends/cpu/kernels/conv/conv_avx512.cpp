#define ISA avx512
#define WIDTH 16
#define MR 14
#define TABLE kConvAvx512
#include "lightcone/backends/cpu/kernels/conv/conv.inl.h"
