#define ISA neon
#define LANES 2
#define NEON
#define TABLE kRandomNeon
#include "lightcone/backends/cpu/kernels/random/random.inl.h"
