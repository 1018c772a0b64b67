#define ISA neon
#define WIDTH 4
#define NEON
#define KEYS 8
#define TABLE kAttentionNeon
#include "lightcone/backends/cpu/kernels/attention/attention.inl.h"
