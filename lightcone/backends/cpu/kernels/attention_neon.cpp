#if defined(__aarch64__)
#define WIDTH 4
#define NEON
#define KEYS 8
#define TABLE kAttentionNeon
#include "lightcone/backends/cpu/kernels/attention.inl.h"
#else
#include "lightcone/backends/cpu/attention/attention.h"
namespace lc::host {
const AttentionTable kAttentionNeon = kAttentionGeneric;
}
#endif
