#if defined(__x86_64__)
#define WIDTH 16
#define TABLE kDepthwiseAvx512
#include "lightcone/backends/cpu/kernels/depthwise.inl.h"
#else
#include "lightcone/backends/cpu/conv/depthwise.h"
namespace lc::host {
const DepthwiseTable kDepthwiseAvx512 = kDepthwiseGeneric;
}
#endif
