#define ISA avx2
#define LANES 4
#define TABLE kRandomAvx2
#include "lightcone/backends/cpu/kernels/random/random.inl.h"
