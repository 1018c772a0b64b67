#include "lightcone/backends/cpu/kernels/abi/tables.h"

#include <type_traits>

namespace lc::backends::cpu {
namespace {

template <class... T>
constexpr bool are_plain = (... && (std::is_standard_layout_v<T> && std::is_trivially_copyable_v<T>));
static_assert(
    are_plain<Gemm, GemmTable, Microkernel, ConvProblem, WinogradTile, ConvTable, NhwcTable, NhwcBf16Table,
              NchwBf16Table, DepthwiseWindow, DepthwiseRows, DepthwiseTable, FilterGradientTable, AttentionProblem,
              AttentionBlock, AttentionTable, AttentionGradientsTable, RandomBlocks, RandomTable>,
    "a C program can declare and fill every struct that a microkernel takes");

constexpr KernelTables kGeneric = {&kGemmGeneric,           &kF32Generic,       &kBf16Generic,
                                   &kConvGeneric,           &kNhwcGeneric,      &kDepthwiseGeneric,
                                   &kFilterGradientGeneric, &kAttentionGeneric, &kAttentionGradientsGeneric,
                                   &kRandomGeneric};
constexpr KernelTables kAvx2 = {&kGemmAvx2,           &kF32Avx2,       &kBf16Avx2,
                                &kConvAvx2,           &kNhwcAvx2,      &kDepthwiseAvx2,
                                &kFilterGradientAvx2, &kAttentionAvx2, &kAttentionGradientsAvx2,
                                &kRandomAvx2};
constexpr KernelTables kAvx512 = {&kGemmAvx512,           &kF32Avx512,       &kBf16Avx512,
                                  &kConvAvx512,           &kNhwcAvx512,      &kDepthwiseAvx512,
                                  &kFilterGradientAvx512, &kAttentionAvx512, &kAttentionGradientsAvx512,
                                  &kRandomAvx512};
constexpr KernelTables kNeon = {&kGemmNeon,
                                &kF32Neon,
                                &kBf16Neon,
                                &kConvNeon,
                                &kNhwcGeneric,
                                &kDepthwiseNeon,
                                &kFilterGradientGeneric,
                                &kAttentionNeon,
                                &kAttentionGradientsGeneric,
                                &kRandomNeon};

}  // namespace

const KernelTables& kernel_tables(Isa isa) {
  switch (isa) {
    case Isa::Avx512: return kAvx512;
    case Isa::Avx2: return kAvx2;
    case Isa::Neon: return kNeon;
    case Isa::Generic: break;
  }
  return kGeneric;
}

}  // namespace lc::backends::cpu
