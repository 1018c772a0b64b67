#define ISA neon
#define WIDTH 4
#define NEON
#define MR 12
#define TABLE kConvNeon
#include "lightcone/backends/cpu/kernels/conv/conv.inl.h"
