#if defined(__x86_64__)
#define WIDTH 16
#define MR 6
#define GROUPS 2
#define F32_TABLE kGemmAvx512
#define VNNI
#define UNITS kInt8Avx512Vnni
#define UNIT_NAME "int8_avx512vnni"
#include "lightcone/backends/cpu/kernels/dense_int8.inl.h"
#else
#include "lightcone/backends/cpu/products/dense_unit.h"
namespace lc::host {
const DenseUnit kInt8Avx512Vnni[5] = {kInt8Generic[0], kInt8Generic[1], kInt8Generic[2], kInt8Generic[3],
                                      kInt8Generic[4]};
}
#endif
