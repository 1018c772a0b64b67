#if defined(__x86_64__)
#define WIDTH 16
#define MR 14
#define TABLE kGemmAvx512
#include "lightcone/backends/cpu/kernels/gemm.inl.h"
#else
#include "lightcone/backends/cpu/gemm.h"
namespace lc::host {
const GemmTable kGemmAvx512 = kGemmGeneric;
}
#endif
