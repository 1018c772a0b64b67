#if defined(__x86_64__)
#define WIDTH 16
#define MR 6
#define VECTORS 4
#define TABLE kNhwcAvx512
#include "lightcone/backends/cpu/kernels/conv_nhwc.inl.h"
#else
#include "lightcone/backends/cpu/conv/nhwc.h"
namespace lc::host {
const NhwcTable kNhwcAvx512 = kNhwcGeneric;
}
#endif
