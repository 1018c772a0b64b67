#define ISA generic
#define LANES 2
#define TABLE kRandomGeneric
#include "lightcone/backends/cpu/kernels/random/random.inl.h"
