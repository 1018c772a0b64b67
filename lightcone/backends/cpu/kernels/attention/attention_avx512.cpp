#define ISA avx512
#define WIDTH 16
#define KEYS 8
#define TABLE kAttentionAvx512
#include "lightcone/backends/cpu/kernels/attention/attention.inl.h"
