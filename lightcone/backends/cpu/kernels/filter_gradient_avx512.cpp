#if defined(__x86_64__)
#define WIDTH 16
#define MR 6
#define VECTORS 4
#define TABLE kFilterGradientAvx512
#include "lightcone/backends/cpu/kernels/filter_gradient.inl.h"
#else
#include "lightcone/backends/cpu/conv/filter_gradient.h"
namespace lc::host {
const FilterGradientTable kFilterGradientAvx512 = kFilterGradientGeneric;
}
#endif
