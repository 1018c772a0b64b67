#define ISA emulated
#define WIDTH 4
#define F32_TABLE kGemmGeneric
#define TILES EmulatedTiles
#define UNITS kDenseEmulated
#include "lightcone/backends/cpu/kernels/dense/dense_tiles.inl.h"
