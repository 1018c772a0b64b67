#if defined(__x86_64__)
#define LANES 8
#define TABLE kRandomAvx512
#include "lightcone/backends/cpu/kernels/random.inl.h"
#else
#include "lightcone/backends/cpu/random/random_bits.h"
namespace lc::host {
const RandomTable kRandomAvx512 = kRandomGeneric;
}
#endif
