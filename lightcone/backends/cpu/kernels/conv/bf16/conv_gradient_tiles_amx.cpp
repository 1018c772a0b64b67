#define ISA amx
#define WIDTH 16
#define TILES AmxTiles
#define TABLE kGradientTilesAmx
#include "lightcone/backends/cpu/kernels/conv/bf16/conv_gradient_tiles.inl.h"
