#if defined(__x86_64__)
#define WIDTH 16
#define KEYS 8
#define TABLE kAttentionAvx512
#include "lightcone/backends/cpu/kernels/attention.inl.h"
#else
#include "lightcone/backends/cpu/attention/attention.h"
namespace lc::host {
const AttentionTable kAttentionAvx512 = kAttentionGeneric;
}
#endif
