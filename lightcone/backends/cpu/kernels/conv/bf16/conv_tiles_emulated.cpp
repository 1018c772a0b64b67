#define ISA emulated
#define WIDTH 4
#define TILES EmulatedTiles
#define TABLE kConvTilesEmulated
#include "lightcone/backends/cpu/kernels/conv/bf16/conv_tiles.inl.h"
