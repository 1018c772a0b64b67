#define WIDTH 4
#define F32_TABLE kGemmGeneric
#define TABLE kPairsGeneric
#include "lightcone/backends/cpu/kernels/conv_pairs.inl.h"
