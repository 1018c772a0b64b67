#define ISA avx2
#define WIDTH 8
#define MR 6
#define VECTORS 2
#define TABLE kAttentionGradientsAvx2
#include "lightcone/backends/cpu/kernels/attention/attention_gradients.inl.h"
