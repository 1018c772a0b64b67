#define WIDTH 4
#define MR 4
#define VECTORS 2
#define TABLE kConvLastGeneric
#include "lightcone/backends/cpu/kernels/conv_last.inl.h"
