#define ISA generic
#define WIDTH 4
#define KEYS 4
#define TABLE kAttentionGeneric
#include "lightcone/backends/cpu/kernels/attention/attention.inl.h"
