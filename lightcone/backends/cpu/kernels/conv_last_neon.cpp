#if defined(__aarch64__)
#define WIDTH 4
#define NEON
#define MR 5
#define VECTORS 4
#define TABLE kConvLastNeon
#include "lightcone/backends/cpu/kernels/conv_last.inl.h"
#else
#include "lightcone/backends/cpu/conv_last.h"
namespace lc::host {
const ConvLastTable kConvLastNeon = kConvLastGeneric;
}
#endif
