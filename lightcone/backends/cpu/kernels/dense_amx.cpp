#if defined(__x86_64__)
#define WIDTH 16
#define F32_TABLE kGemmAvx512
#define TILES AmxTiles
#define VNNI
#define UNITS kDenseAmx
#define UNIT_NAME(arithmetic) arithmetic "_amx"
#include "lightcone/backends/cpu/kernels/dense_tiles.inl.h"
#else
#include "lightcone/backends/cpu/products/dense_unit.h"
namespace lc::host {
const DenseUnit kDenseAmx[8] = {};
}
#endif
