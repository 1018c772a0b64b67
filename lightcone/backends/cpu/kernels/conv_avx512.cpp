#if defined(__x86_64__)
#define WIDTH 16
#define MR 14
#define TABLE kConvAvx512
#include "lightcone/backends/cpu/kernels/conv.inl.h"
#else
#include "lightcone/backends/cpu/conv/conv.h"
namespace lc::host {
const ConvTable kConvAvx512 = kConvGeneric;
}
#endif
