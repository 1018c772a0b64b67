#define ISA generic
#define LANES 2
#define TABLE kRandomGeneric
#include "lightcone/backends/cpu/kernels/random.inl.h"
