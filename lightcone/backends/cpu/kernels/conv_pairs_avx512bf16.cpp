#if defined(__x86_64__)
#define WIDTH 16
#define F32_TABLE kGemmAvx512
#define TABLE kPairsAvx512Bf16
#include "lightcone/backends/cpu/kernels/conv_pairs.inl.h"
#else
#include "lightcone/backends/cpu/conv_pairs.h"
namespace lc::host {
const PairsTable kPairsAvx512Bf16 = kPairsGeneric;
}
#endif
