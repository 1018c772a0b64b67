#define ISA avx512
#define WIDTH 16
#define MR 6
#define VECTORS 4
#define TABLE kNhwcAvx512
#include "lightcone/backends/cpu/kernels/conv/conv_nhwc.inl.h"
