// Tables of the instruction sets that this build has no kernels for: another processor's, or with
// LIGHTCONE_KERNELS=native the ones that this machine does not need. The generic tables replace them. CMakeLists.txt
// defines LC_ABSENT_<file>.
#include "lightcone/backends/cpu/kernels/abi/attention_abi.h"
#include "lightcone/backends/cpu/kernels/abi/conv_abi.h"
#include "lightcone/backends/cpu/kernels/abi/gemm_abi.h"
#include "lightcone/backends/cpu/kernels/abi/random_abi.h"

namespace lc::backends::cpu {

#if defined(LC_ABSENT_attention_amx)
const AttentionTable kAttentionAmx = kAttentionGeneric;  // has_tiles() checks kDenseAmx
#endif
#if defined(LC_ABSENT_attention_avx2)
const AttentionTable kAttentionAvx2 = kAttentionGeneric;
#endif
#if defined(LC_ABSENT_attention_avx512)
const AttentionTable kAttentionAvx512 = kAttentionGeneric;
#endif
#if defined(LC_ABSENT_attention_avx512bf16)
const AttentionTable kAttentionAvx512Bf16 = kAttentionGeneric;
#endif
#if defined(LC_ABSENT_attention_gradients_avx2)
const AttentionGradientsTable kAttentionGradientsAvx2 = kAttentionGradientsGeneric;
#endif
#if defined(LC_ABSENT_attention_gradients_avx512)
const AttentionGradientsTable kAttentionGradientsAvx512 = kAttentionGradientsGeneric;
#endif
#if defined(LC_ABSENT_attention_neon)
const AttentionTable kAttentionNeon = kAttentionGeneric;
#endif
#if defined(LC_ABSENT_conv_avx2)
const ConvTable kConvAvx2 = kConvGeneric;
#endif
#if defined(LC_ABSENT_conv_avx512)
const ConvTable kConvAvx512 = kConvGeneric;
#endif
#if defined(LC_ABSENT_conv_nchw_bf16_avx512bf16)
const NchwBf16Table kNchwBf16Avx512Bf16 = kNchwBf16Generic;
#endif
#if defined(LC_ABSENT_conv_neon)
const ConvTable kConvNeon = kConvGeneric;
#endif
#if defined(LC_ABSENT_conv_nhwc_avx2)
const NhwcTable kNhwcAvx2 = kNhwcGeneric;
#endif
#if defined(LC_ABSENT_conv_nhwc_avx512)
const NhwcTable kNhwcAvx512 = kNhwcGeneric;
#endif
#if defined(LC_ABSENT_conv_nhwc_bf16_avx512bf16)
const NhwcBf16Table kNhwcBf16Avx512Bf16 = kNhwcBf16Generic;
#endif
#if defined(LC_ABSENT_conv_tiles_amx)
const ConvTilesTable kConvTilesAmx = {};  // no replacement: has_tiles() checks kDenseAmx
#endif
#if defined(LC_ABSENT_conv_gradient_tiles_amx)
const GradientTilesTable kGradientTilesAmx = {};
#endif
#if defined(LC_ABSENT_dense_amx)
const Microkernel kDenseAmx[8] = {};  // no replacement: has_tiles() checks for it
#endif
#if defined(LC_ABSENT_dense_bf16_avx512bf16)
const Microkernel kBf16Avx512Bf16 = kBf16Generic;
#endif
#if defined(LC_ABSENT_dense_bf16_neonbf16)
const Microkernel kBf16NeonBf16 = kBf16Generic;
#endif
#if defined(LC_ABSENT_dense_int8_avx2)
const Microkernel kInt8Avx2[7] = {kInt8Generic[0], kInt8Generic[1], kInt8Generic[2], kInt8Generic[3],
                                  kInt8Generic[4], kInt8Generic[0], kInt8Generic[1]};
#endif
#if defined(LC_ABSENT_dense_int8_avx512vnni)
const Microkernel kInt8Avx512Vnni[5] = {kInt8Generic[0], kInt8Generic[1], kInt8Generic[2], kInt8Generic[3],
                                        kInt8Generic[4]};
#endif
#if defined(LC_ABSENT_dense_int8_avxvnni)
const Microkernel kInt8AvxVnni[5] = {kInt8Generic[0], kInt8Generic[1], kInt8Generic[2], kInt8Generic[3],
                                     kInt8Generic[4]};
#endif
#if defined(LC_ABSENT_dense_int8_neon)
const Microkernel kInt8Neon[5] = {kInt8Generic[0], kInt8Generic[1], kInt8Generic[2], kInt8Generic[3], kInt8Generic[4]};
#endif
#if defined(LC_ABSENT_dense_int8_neondotprod)
const Microkernel kInt8NeonDotprod[5] = {kInt8Generic[0], kInt8Generic[1], kInt8Generic[2], kInt8Generic[3],
                                         kInt8Generic[4]};
#endif
#if defined(LC_ABSENT_dense_int8_neoni8mm)
const Microkernel kInt8NeonI8mm[5] = {kInt8Generic[0], kInt8Generic[1], kInt8Generic[2], kInt8Generic[3],
                                      kInt8Generic[4]};
#endif
#if defined(LC_ABSENT_depthwise_avx2)
const DepthwiseTable kDepthwiseAvx2 = kDepthwiseGeneric;
#endif
#if defined(LC_ABSENT_depthwise_avx512)
const DepthwiseTable kDepthwiseAvx512 = kDepthwiseGeneric;
#endif
#if defined(LC_ABSENT_depthwise_neon)
const DepthwiseTable kDepthwiseNeon = kDepthwiseGeneric;
#endif
#if defined(LC_ABSENT_filter_gradient_avx2)
const FilterGradientTable kFilterGradientAvx2 = kFilterGradientGeneric;
#endif
#if defined(LC_ABSENT_filter_gradient_avx512)
const FilterGradientTable kFilterGradientAvx512 = kFilterGradientGeneric;
#endif
#if defined(LC_ABSENT_gemm_avx2)
const GemmTable kGemmAvx2 = kGemmGeneric;
const Microkernel kF32Avx2 = kF32Generic;
const Microkernel kBf16Avx2 = kBf16Generic;
#endif
#if defined(LC_ABSENT_gemm_avx512)
const GemmTable kGemmAvx512 = kGemmGeneric;
const Microkernel kF32Avx512 = kF32Generic;
const Microkernel kBf16Avx512 = kBf16Generic;
#endif
#if defined(LC_ABSENT_gemm_neon)
const GemmTable kGemmNeon = kGemmGeneric;
const Microkernel kF32Neon = kF32Generic;
const Microkernel kBf16Neon = kBf16Generic;
#endif
#if defined(LC_ABSENT_random_avx2)
const RandomTable kRandomAvx2 = kRandomGeneric;
#endif
#if defined(LC_ABSENT_random_avx512)
const RandomTable kRandomAvx512 = kRandomGeneric;
#endif
#if defined(LC_ABSENT_random_neon)
const RandomTable kRandomNeon = kRandomGeneric;
#endif

}  // namespace lc::backends::cpu
