#if defined(__x86_64__)
#define WIDTH 8
#define MR 6
#define VECTORS 2
#define TABLE kNhwcAvx2
#include "lightcone/backends/cpu/kernels/conv_nhwc.inl.h"
#else
#include "lightcone/backends/cpu/conv/nhwc.h"
namespace lc::host {
const NhwcTable kNhwcAvx2 = kNhwcGeneric;
}
#endif
