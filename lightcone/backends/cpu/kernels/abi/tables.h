// The microkernels of every instruction set. They are a library of their own, lightcone_kernels, which needs nothing of
// the rest: their arguments are plain structs, numbers and addresses.
//
// entry_points.h names each function, for programs that call them without a table.
#pragma once

#include <cstdint>

#include "lightcone/backends/cpu/kernels/abi/attention_abi.h"
#include "lightcone/backends/cpu/kernels/abi/conv_abi.h"
#include "lightcone/backends/cpu/kernels/abi/gemm_abi.h"
#include "lightcone/backends/cpu/kernels/abi/random_abi.h"

namespace lc::backends::cpu {

// Baseline instruction sets. Extensions that only some of their CPUs have (VNNI, BF16, AMX; Arm's int8 and bf16
// products) are part of Target (target/target.h) and selected in products/microkernel.h.
enum class Isa : std::uint8_t { Generic, Avx2, Avx512, Neon };

// The tables of a baseline instruction set. Where it has no kernels of its own, or the library was built without them,
// they are the generic ones.
struct KernelTables {
  const GemmTable* gemm;
  const Microkernel *f32, *bf16;
  const ConvTable* conv;
  const NhwcTable* nhwc;
  const DepthwiseTable* depthwise;
  const FilterGradientTable* filter_gradient;
  const AttentionTable* attention;
  const AttentionGradientsTable* attention_gradients;
  const RandomTable* random;
};
const KernelTables& kernel_tables(Isa isa);

}  // namespace lc::backends::cpu
