#define ISA generic
#define WIDTH 4
#define MR 4
#define VECTORS 2
#define TABLE kNhwcGeneric
#include "lightcone/backends/cpu/kernels/conv/conv_nhwc.inl.h"
