// What code is made for, as a value: an instruction set, and what only some of its processors have. Kernels are chosen
// by it and generated code is compiled for it, on this processor or for another one.
#pragma once

#include <string>
#include <vector>

#include "lightcone/backends/cpu/target/isa.h"

namespace lc::backends::cpu {

struct Target {
  Isa isa = Isa::Generic;
  // AVX-512: products of pairs of bf16, of bytes; and the tiles of AMX, which the system must grant. AVX2: of bytes.
  bool avx512_bf16 = false, avx512_vnni = false, amx = false, avx_vnni = false;
  // Are AVX-512's products of bf16 faster than those of f32? Intel's run at a third of their speed (measured on
  // Sapphire Rapids).
  bool fast_bf16 = false;
  // Arm: products of bytes, in pairs of rows, and of bf16.
  bool dotprod = false, i8mm = false, bf16 = false;

  Target() = default;
  Target(Isa isa);  // what this processor has of it
  friend bool operator==(const Target&, const Target&) = default;
};

// This processor, no more of it than $LIGHTCONE_ISA allows.
const Target& this_target();
// May products of this process use the tiles of this processor? The system is asked when this is called first, so
// only where a program has a product for them: once it has said yes it refuses threads a stack for signals
// (sigaltstack) that has no room for tiles, and where a thread has one such it says no. The answer holds for the
// process. A no is as if the processor had no tiles, to the last bit.
bool tiles_granted();
bool tiles_refused();   // was it asked, and said no?
bool tiles_emulated();  // $LIGHTCONE_TILES=emulated: in plain C++, for tests
// What a program with such products says in its notes; "" where nobody was asked.
std::string tiles_note();
// "avx512+bf16+vnni": what it has.
std::string str(const Target& t);
// Can this processor run what is compiled for it?
bool runs_here(const Target& t);
// The processors that kernels exist for, oldest first; of the architecture this library was compiled for.
std::vector<Target> known_targets();

}  // namespace lc::backends::cpu
