// Target: the processor that code is made for, as a value: an instruction set and its optional extensions. Kernels are
// selected and generated code is compiled for a Target, which may be this processor or another one.
#pragma once

#include <string>
#include <vector>

#include "lightcone/backends/cpu/target/isa.h"

namespace lc::backends::cpu {

// An instruction set and its extensions.
struct Target {
  Isa isa = Isa::Generic;
  // x86: AVX-512 dot products of bf16 pairs, AVX-512 dot products of bytes (VNNI), AMX tiles, which the system must
  // grant, and AVX2 dot products of bytes (AVX-VNNI).
  bool avx512_bf16 = false, avx512_vnni = false, amx = false, avx_vnni = false;
  // Whether AVX-512's bf16 dot products are faster than f32 FMAs. Intel's run at a third of the speed (measured on
  // Sapphire Rapids).
  bool fast_bf16 = false;
  // Whether 512-bit operations run as two halves, as on Zen 4: memory then is fast beside arithmetic.
  bool halves_512 = false;
  // Arm: dot products of bytes, 2x2 matrix products of bytes, and bf16 products.
  bool dotprod = false, i8mm = false, bf16 = false;

  Target() = default;
  // `isa` with the extensions that this processor has.
  Target(Isa isa);
  friend bool operator==(const Target&, const Target&) = default;
};

// This processor, limited by $LIGHTCONE_ISA.
const Target& this_target();
// Returns whether this process may use AMX tiles. The first call requests permission from the system, so call it only
// if a program has a product that would use tiles: once granted, the system refuses threads a signal stack
// (sigaltstack) that is too small for tile state, and it denies the request if a thread already has such a stack. The
// answer holds for the life of the process. If denied, results are bit-identical to those on a processor without tiles.
bool tiles_granted();
// Returns whether permission was requested and denied.
bool tiles_refused();
// Returns whether $LIGHTCONE_TILES=emulated is set: tiles are emulated in plain C++, for tests.
bool tiles_emulated();
// The note for programs with tile products; "" if permission was not requested.
std::string tiles_note();
// The instruction set and its extensions, for example "avx512+bf16+vnni".
std::string str(const Target& t);
// Returns whether this processor can run code compiled for `t`.
bool runs_here(const Target& t);
// The processors that kernels exist for, oldest first, for the architecture this library was compiled for.
std::vector<Target> known_targets();

}  // namespace lc::backends::cpu
