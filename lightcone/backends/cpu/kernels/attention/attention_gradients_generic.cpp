#define ISA generic
#define WIDTH 4
#define MR 4
#define VECTORS 2
#define TABLE kAttentionGradientsGeneric
#include "lightcone/backends/cpu/kernels/attention/attention_gradients.inl.h"
