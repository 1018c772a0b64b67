#define ISA amx
#define WIDTH 16
#define TILES AmxTiles
#define TABLE kConvTilesAmx
#include "lightcone/backends/cpu/kernels/conv/bf16/conv_tiles.inl.h"
