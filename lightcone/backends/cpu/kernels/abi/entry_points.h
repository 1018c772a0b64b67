// The microkernels by name: lc_<operation>_<instruction set>, with C linkage. The structs of the tables say what each
// function does (*_abi.h). Which ones a library has depends on the processor family that it was compiled for; a program
// may call those that the processor has instructions for.
#pragma once

#include <type_traits>

#include "lightcone/backends/cpu/kernels/abi/attention_abi.h"
#include "lightcone/backends/cpu/kernels/abi/conv_abi.h"
#include "lightcone/backends/cpu/kernels/abi/gemm_abi.h"
#include "lightcone/backends/cpu/kernels/abi/random_abi.h"

namespace lc::backends::cpu {

// The type of the function whose address a table holds.
template <auto Member>
struct EntryOf;
template <class Table, class F, F* Table::*Member>
struct EntryOf<Member> {
  using type = F;
};
template <auto Member>
using Entry = typename EntryOf<Member>::type;

// clang-format off
#define LC_PRODUCT(arithmetic, isa) \
  Entry<&Microkernel::pack_a> lc_##arithmetic##_pack_a_##isa; \
  Entry<&Microkernel::pack_b> lc_##arithmetic##_pack_b_##isa; \
  Entry<&Microkernel::tile> lc_##arithmetic##_tile_##isa;
#define LC_GEMV(arithmetic, isa) \
  Entry<&Microkernel::pack_rows> lc_##arithmetic##_pack_rows_##isa; \
  Entry<&Microkernel::gemv> lc_##arithmetic##_gemv_##isa;
#define LC_STREAMED_INT8(isa) \
  LC_PRODUCT(int8_step32, isa) LC_PRODUCT(int8_step32_min, isa) LC_PRODUCT(int8_step16, isa) \
  LC_PRODUCT(int8_step16_min, isa) LC_PRODUCT(int8_exact, isa) \
  LC_GEMV(int8_step32, isa) LC_GEMV(int8_step32_min, isa) LC_GEMV(int8_step16, isa)
#define LC_TILES(isa) \
  LC_PRODUCT(bf16, isa) LC_PRODUCT(split2, isa) LC_PRODUCT(split3, isa) LC_STREAMED_INT8(isa) \
  Entry<&Microkernel::begin> lc_tiles_begin16_##isa, lc_tiles_begin32_##isa, lc_tiles_begin64_##isa; \
  Entry<&Microkernel::end> lc_tiles_end_##isa; Entry<&Microkernel::put_sums> lc_tiles_put_sums_##isa; \
  Entry<&Microkernel::pack_bf16> lc_tiles_pack_bf16_##isa;
#define LC_GEMM(isa) \
  LC_PRODUCT(f32, isa) LC_PRODUCT(bf16, isa) \
  Entry<&GemmTable::reorder_rows> lc_gemm_reorder_rows_##isa; Entry<&GemmTable::gemv> lc_gemm_gemv_##isa; \
  Entry<&GemmTable::step_sums> lc_gemm_step_sums_##isa; Entry<&GemmTable::gemv_packed> lc_gemm_gemv_packed_##isa; \
  Entry<&GemmTable::axpy> lc_gemm_axpy_##isa; Entry<&GemmTable::pack_b> lc_gemm_pack_b_##isa; \
  Entry<&GemmTable::dequantize> lc_gemm_dequantize_##isa;
#define LC_CONV(isa) \
  Entry<&ConvTable::pack_weights> lc_conv_pack_weights_##isa; \
  Entry<&ConvTable::pack_image> lc_conv_pack_image_##isa; \
  Entry<&ConvTable::tile> lc_conv_tile_##isa; Entry<&ConvTable::slide> lc_conv_slide_##isa; \
  Entry<&ConvTable::copy_row> lc_conv_copy_row_##isa; Entry<&ConvTable::weights_in> lc_conv_weights_in_##isa; \
  Entry<&ConvTable::image_in> lc_conv_image_in_##isa; Entry<&ConvTable::out> lc_conv_out_##isa;
#define LC_NHWC(isa) \
  Entry<&NhwcTable::tile> lc_conv_nhwc_tile_##isa; Entry<&NhwcTable::filters_in> lc_conv_nhwc_filters_in_##isa; \
  Entry<&NhwcTable::image_in> lc_conv_nhwc_image_in_##isa; \
  Entry<&NhwcTable::pixels_out> lc_conv_nhwc_pixels_out_##isa; \
  Entry<&NhwcTable::widen_bf16> lc_conv_nhwc_widen_bf16_##isa; \
  Entry<&NhwcTable::widen_f16> lc_conv_nhwc_widen_f16_##isa; \
  Entry<&FilterGradientTable::tile> lc_filter_gradient_tile_##isa; \
  Entry<&AttentionGradientsTable::products> lc_attention_gradients_products_##isa; \
  Entry<&AttentionGradientsTable::weigh> lc_attention_gradients_weigh_##isa; \
  Entry<&AttentionGradientsTable::slopes> lc_attention_gradients_slopes_##isa;
#define LC_BF16_CONV(isa) \
  Entry<&NhwcBf16Table::tile> lc_conv_nhwc_bf16_tile_##isa; \
  Entry<&NhwcBf16Table::round> lc_conv_nhwc_bf16_round_##isa; \
  Entry<&NchwBf16Table::round> lc_conv_nchw_bf16_round_##isa; \
  Entry<&NchwBf16Table::gather> lc_conv_nchw_bf16_gather_##isa; \
  Entry<&NchwBf16Table::move> lc_conv_nchw_bf16_move_##isa;
#define LC_CONV_TILES(isa) \
  Entry<&ConvTilesTable::begin> lc_conv_tiles_begin_##isa; Entry<&ConvTilesTable::end> lc_conv_tiles_end_##isa; \
  Entry<&ConvTilesTable::tiles> lc_conv_tiles_tiles_##isa; Entry<&ConvTilesTable::round> lc_conv_tiles_round_##isa; \
  Entry<&ConvTilesTable::round_few> lc_conv_tiles_round_few_##isa; \
  Entry<&ConvTilesTable::put> lc_conv_tiles_put_##isa; \
  Entry<&ConvTilesTable::filters_f32> lc_conv_tiles_filters_f32_##isa; \
  Entry<&ConvTilesTable::filters_bf16> lc_conv_tiles_filters_bf16_##isa; \
  Entry<&ConvTilesTable::filters_f16> lc_conv_tiles_filters_f16_##isa; \
  Entry<&GradientTilesTable::begin> lc_gradient_tiles_begin_##isa; \
  Entry<&GradientTilesTable::end> lc_gradient_tiles_end_##isa; \
  Entry<&GradientTilesTable::image> lc_gradient_tiles_image_##isa; \
  Entry<&GradientTilesTable::cotangent> lc_gradient_tiles_cotangent_##isa; \
  Entry<&GradientTilesTable::tiles> lc_gradient_tiles_tiles_##isa; \
  Entry<&GradientTilesTable::put> lc_gradient_tiles_put_##isa;
#define LC_OTHERS(isa) \
  Entry<&DepthwiseTable::rows> lc_depthwise_rows_##isa; Entry<&DepthwiseTable::copy> lc_depthwise_copy_##isa; \
  Entry<&DepthwiseTable::pixels> lc_depthwise_pixels_##isa; Entry<&AttentionTable::blocks> lc_attention_blocks_##isa; \
  Entry<&RandomTable::blocks> lc_random_blocks_##isa;

extern "C" {
LC_GEMM(generic) LC_CONV(generic) LC_NHWC(generic) LC_OTHERS(generic) LC_STREAMED_INT8(generic) LC_BF16_CONV(generic)
LC_GEMM(avx2) LC_CONV(avx2) LC_NHWC(avx2) LC_OTHERS(avx2) LC_STREAMED_INT8(avx2) LC_STREAMED_INT8(avxvnni)
LC_PRODUCT(int4_step32, avx2) LC_PRODUCT(int4_step32_min, avx2)
LC_GEMM(avx512) LC_CONV(avx512) LC_NHWC(avx512) LC_OTHERS(avx512) LC_STREAMED_INT8(avx512vnni)
LC_PRODUCT(bf16, avx512bf16) LC_BF16_CONV(avx512bf16) Entry<&AttentionTable::blocks> lc_attention_blocks_avx512bf16;
LC_TILES(amx) LC_TILES(emulated) LC_CONV_TILES(amx) LC_CONV_TILES(emulated)
Entry<&AttentionTable::blocks> lc_attention_blocks_amx; Entry<&AttentionTable::blocks> lc_attention_blocks_emulated;
LC_GEMM(neon) LC_CONV(neon) LC_OTHERS(neon) LC_STREAMED_INT8(neon) LC_STREAMED_INT8(neondotprod)
LC_STREAMED_INT8(neoni8mm)
LC_PRODUCT(bf16, neonbf16)
}
#undef LC_PRODUCT
#undef LC_GEMV
#undef LC_STREAMED_INT8
#undef LC_TILES
#undef LC_GEMM
#undef LC_CONV
#undef LC_NHWC
#undef LC_BF16_CONV
#undef LC_CONV_TILES
#undef LC_OTHERS
// clang-format on

}  // namespace lc::backends::cpu
