#define WIDTH 16
#define F32_TABLE kGemmAvx512
#define TILES AmxTiles
#define VNNI
#define UNITS kDenseAmx
#define UNIT_NAME(arithmetic) arithmetic "_amx"
#include "lightcone/backends/cpu/kernels/dense_tiles.inl.h"
