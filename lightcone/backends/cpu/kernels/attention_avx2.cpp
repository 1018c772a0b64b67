#if defined(__x86_64__)
#define WIDTH 8
#define KEYS 6
#define TABLE kAttentionAvx2
#include "lightcone/backends/cpu/kernels/attention.inl.h"
#else
#include "lightcone/backends/cpu/attention/attention.h"
namespace lc::host {
const AttentionTable kAttentionAvx2 = kAttentionGeneric;
}
#endif
