#if defined(__aarch64__)
#define WIDTH 4
#define NEON
#define MR 12
#define TABLE kConvNeon
#include "lightcone/backends/cpu/kernels/conv.inl.h"
#else
#include "lightcone/backends/cpu/conv/conv.h"
namespace lc::host {
const ConvTable kConvNeon = kConvGeneric;
}
#endif
