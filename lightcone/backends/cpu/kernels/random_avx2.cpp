#if defined(__x86_64__)
#define LANES 4
#define TABLE kRandomAvx2
#include "lightcone/backends/cpu/kernels/random.inl.h"
#else
#include "lightcone/backends/cpu/random/random_bits.h"
namespace lc::host {
const RandomTable kRandomAvx2 = kRandomGeneric;
}
#endif
