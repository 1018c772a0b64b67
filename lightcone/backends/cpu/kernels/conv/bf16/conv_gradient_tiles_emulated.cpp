#define ISA emulated
#define WIDTH 4
#define TILES EmulatedTiles
#define TABLE kGradientTilesEmulated
#include "lightcone/backends/cpu/kernels/conv/bf16/conv_gradient_tiles.inl.h"
