#define ISA generic
#define WIDTH 4
#define MR 4
#define TABLE kConvGeneric
#include "lightcone/backends/cpu/kernels/conv/conv.inl.h"
