#if defined(__x86_64__)
#define WIDTH 16
#define MR 6
#define VECTORS 4
#define TABLE kAttentionGradientsAvx512
#include "lightcone/backends/cpu/kernels/attention_gradients.inl.h"
#else
#include "lightcone/backends/cpu/attention/gradients.h"
namespace lc::host {
const AttentionGradientsTable kAttentionGradientsAvx512 = kAttentionGradientsGeneric;
}
#endif
