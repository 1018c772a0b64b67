#if defined(__x86_64__)
#define WIDTH 8
#define MR 6
#define VECTORS 2
#define TABLE kAttentionGradientsAvx2
#include "lightcone/backends/cpu/kernels/attention_gradients.inl.h"
#else
#include "lightcone/backends/cpu/attention/gradients.h"
namespace lc::host {
const AttentionGradientsTable kAttentionGradientsAvx2 = kAttentionGradientsGeneric;
}
#endif
