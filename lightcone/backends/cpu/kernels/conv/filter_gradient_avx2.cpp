#define ISA avx2
#define WIDTH 8
#define MR 6
#define VECTORS 2
#define TABLE kFilterGradientAvx2
#include "lightcone/backends/cpu/kernels/conv/filter_gradient.inl.h"
