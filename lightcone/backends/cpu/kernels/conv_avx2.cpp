#if defined(__x86_64__)
#define WIDTH 8
#define MR 6
#define TABLE kConvAvx2
#include "lightcone/backends/cpu/kernels/conv.inl.h"
#else
#include "lightcone/backends/cpu/conv/conv.h"
namespace lc::host {
const ConvTable kConvAvx2 = kConvGeneric;
}
#endif
