#define WIDTH 4
#define F32_TABLE kGemmGeneric
#define TILES EmulatedTiles
#define UNITS kDenseEmulated
#define UNIT_NAME(arithmetic) arithmetic "_emulated"
#include "lightcone/backends/cpu/kernels/dense_tiles.inl.h"
