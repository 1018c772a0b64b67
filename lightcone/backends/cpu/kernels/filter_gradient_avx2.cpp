#if defined(__x86_64__)
#define WIDTH 8
#define MR 6
#define VECTORS 2
#define TABLE kFilterGradientAvx2
#include "lightcone/backends/cpu/kernels/filter_gradient.inl.h"
#else
#include "lightcone/backends/cpu/conv/filter_gradient.h"
namespace lc::host {
const FilterGradientTable kFilterGradientAvx2 = kFilterGradientGeneric;
}
#endif
