#define ISA avx512
#define WIDTH 16
#define MR 6
#define VECTORS 4
#define TABLE kFilterGradientAvx512
#include "lightcone/backends/cpu/kernels/conv/filter_gradient.inl.h"
