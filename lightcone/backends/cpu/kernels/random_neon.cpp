#if defined(__aarch64__)
#define LANES 2
#define NEON
#define TABLE kRandomNeon
#include "lightcone/backends/cpu/kernels/random.inl.h"
#else
#include "lightcone/backends/cpu/random/random_bits.h"
namespace lc::host {
const RandomTable kRandomNeon = kRandomGeneric;
}
#endif
