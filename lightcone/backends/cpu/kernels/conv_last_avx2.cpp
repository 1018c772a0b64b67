#if defined(__x86_64__)
#define WIDTH 8
#define MR 6
#define VECTORS 2
#define TABLE kConvLastAvx2
#include "lightcone/backends/cpu/kernels/conv_last.inl.h"
#else
#include "lightcone/backends/cpu/conv_last.h"
namespace lc::host {
const ConvLastTable kConvLastAvx2 = kConvLastGeneric;
}
#endif
