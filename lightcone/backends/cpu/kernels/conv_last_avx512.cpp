#if defined(__x86_64__)
#define WIDTH 16
#define MR 6
#define VECTORS 4
#define TABLE kConvLastAvx512
#include "lightcone/backends/cpu/kernels/conv_last.inl.h"
#else
#include "lightcone/backends/cpu/conv_last.h"
namespace lc::host {
const ConvLastTable kConvLastAvx512 = kConvLastGeneric;
}
#endif
