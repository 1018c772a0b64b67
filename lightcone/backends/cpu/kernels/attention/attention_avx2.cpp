#define ISA avx2
#define WIDTH 8
#define KEYS 6
#define TABLE kAttentionAvx2
#include "lightcone/backends/cpu/kernels/attention/attention.inl.h"
