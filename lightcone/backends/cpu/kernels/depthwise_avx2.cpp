#if defined(__x86_64__)
#define WIDTH 8
#define TABLE kDepthwiseAvx2
#include "lightcone/backends/cpu/kernels/depthwise.inl.h"
#else
#include "lightcone/backends/cpu/conv/depthwise.h"
namespace lc::host {
const DepthwiseTable kDepthwiseAvx2 = kDepthwiseGeneric;
}
#endif
