#define ISA avx512
#define LANES 8
#define TABLE kRandomAvx512
#include "lightcone/backends/cpu/kernels/random/random.inl.h"
