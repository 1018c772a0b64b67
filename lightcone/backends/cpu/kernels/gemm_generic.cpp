#if 1
#define WIDTH 4
#define MR 4
#define TABLE kGemmGeneric
#include "lightcone/backends/cpu/kernels/gemm.inl.h"
#else
#include "lightcone/backends/cpu/gemm.h"
namespace lc::host {
const GemmTable kGemmGeneric = kGemmGeneric;
}
#endif
