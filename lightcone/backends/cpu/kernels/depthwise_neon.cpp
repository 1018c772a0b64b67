#if defined(__aarch64__)
#define WIDTH 4
#define NEON
#define TABLE kDepthwiseNeon
#include "lightcone/backends/cpu/kernels/depthwise.inl.h"
#else
#include "lightcone/backends/cpu/conv/depthwise.h"
namespace lc::host {
const DepthwiseTable kDepthwiseNeon = kDepthwiseGeneric;
}
#endif
