#define ISA generic
#define WIDTH 4
#define MR 4
#define VECTORS 2
#define TABLE kFilterGradientGeneric
#include "lightcone/backends/cpu/kernels/conv/filter_gradient.inl.h"
