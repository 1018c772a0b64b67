#if defined(__x86_64__)
#define WIDTH 8
#define MR 6
#define TABLE kGemmAvx2
#include "lightcone/backends/cpu/kernels/gemm.inl.h"
#else
#include "lightcone/backends/cpu/gemm.h"
namespace lc::host {
const GemmTable kGemmAvx2 = kGemmGeneric;
}
#endif
