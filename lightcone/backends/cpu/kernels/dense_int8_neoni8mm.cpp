#if defined(__aarch64__)
#define WIDTH 4
#define NEON
#define I8MM
#define MR 4
#define GROUPS 1
#define F32_TABLE kGemmNeon
#define UNITS kInt8NeonI8mm
#define UNIT_NAME "int8_neoni8mm"
#include "lightcone/backends/cpu/kernels/dense_int8_neon.inl.h"
#else
#include "lightcone/backends/cpu/products/dense_unit.h"
namespace lc::host {
const DenseUnit kInt8NeonI8mm[5] = {kInt8Generic[0], kInt8Generic[1], kInt8Generic[2], kInt8Generic[3],
                                    kInt8Generic[4]};
}
#endif
