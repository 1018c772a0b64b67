#if defined(__x86_64__)
#define WIDTH 8
#define MR 3
#define GROUPS 1
#define F32_TABLE kGemmAvx2
#define VNNI
#define UNITS kInt8AvxVnni
#define UNIT_NAME "int8_avxvnni"
#include "lightcone/backends/cpu/kernels/dense_int8.inl.h"
#else
#include "lightcone/backends/cpu/products/dense_unit.h"
namespace lc::host {
const DenseUnit kInt8AvxVnni[5] = {kInt8Generic[0], kInt8Generic[1], kInt8Generic[2], kInt8Generic[3], kInt8Generic[4]};
}
#endif
