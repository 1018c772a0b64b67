#define ISA avx512bf16
#define WIDTH 16
#define KEYS 8
#define TABLE kAttentionAvx512Bf16
#include "lightcone/backends/cpu/kernels/attention/attention.inl.h"
