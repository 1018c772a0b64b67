#define ISA avx512
#define WIDTH 16
#define MR 6
#define VECTORS 4
#define TABLE kAttentionGradientsAvx512
#include "lightcone/backends/cpu/kernels/attention/attention_gradients.inl.h"
