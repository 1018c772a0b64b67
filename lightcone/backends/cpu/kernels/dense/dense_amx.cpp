#define ISA amx
#define WIDTH 16
#define F32_TABLE kGemmAvx512
#define TILES AmxTiles
#define VNNI
#define UNITS kDenseAmx
#include "lightcone/backends/cpu/kernels/dense/dense_tiles.inl.h"
