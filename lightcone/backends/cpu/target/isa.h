// Instruction sets that the micro-kernels are compiled for.
#pragma once

#include <cstdint>
#include <vector>

namespace lc::backends::cpu {

// What only some CPUs of a set have (VNNI, BF16, AMX; Arm's products of bytes and of bf16) is asked for where it is
// used: microkernel.h.
enum class Isa : std::uint8_t { Generic, Avx2, Avx512, Neon };
// The best this CPU has. $LIGHTCONE_ISA=generic|avx2|avx512|neon lowers it; "avx512+vnni" leaves of its extensions
// those that are named as in str(Target), "avx512+none" none of them.
Isa detect_isa();
std::vector<Isa> isas();  // all up to that, for tests
const char* name(Isa isa);

}  // namespace lc::backends::cpu
