#define ISA amx
#define WIDTH 16
#define KEYS 8
#define TILES AmxTiles
#define TABLE kAttentionAmx
#include "lightcone/backends/cpu/kernels/attention/attention.inl.h"
