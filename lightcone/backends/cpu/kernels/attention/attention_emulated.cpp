#define ISA emulated
#define WIDTH 4
#define KEYS 8
#define TILES EmulatedTiles
#define TABLE kAttentionEmulated
#include "lightcone/backends/cpu/kernels/attention/attention.inl.h"
