#define ISA emulated
#define WIDTH 4
#define TILES EmulatedTiles
#define TABLE kConvTilesEmulated
#include "lightcone/backends/cpu/kernels/conv_tiles.inl.h"
