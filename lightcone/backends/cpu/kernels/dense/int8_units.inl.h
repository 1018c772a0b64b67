// Table of an instruction set's int8 microkernels. The including file defines pack_a, pack_b and a tile of kUnitColumns
// columns.
#pragma once

namespace lc::backends::cpu {

LC_MICROKERNEL_ENTRIES(int8_step32, (pack_a<32, false>), (pack_b<32, false>), (kTile<32, false>))
LC_MICROKERNEL_ENTRIES(int8_step32_min, (pack_a<32, true>), (pack_b<32, true>), (kTile<32, true>))
LC_MICROKERNEL_ENTRIES(int8_step16, (pack_a<16, false>), (pack_b<16, false>), (kTile<16, false>))
LC_MICROKERNEL_ENTRIES(int8_step16_min, (pack_a<16, true>), (pack_b<16, true>), (kTile<16, true>))
#if defined(MADD)
LC_MICROKERNEL_ENTRIES(int8_exact, pack_words_a, pack_words_b,
                       (register_tile<WordsTile, kExactRows, kExactGroups * kGroupVectors>))
LC_MICROKERNEL_ENTRIES(int4_step32, (pack_a<32, false, 4>), (pack_b<32, false>), (kTile<32, false, 4>))
LC_MICROKERNEL_ENTRIES(int4_step32_min, (pack_a<32, true, 4>), (pack_b<32, true>), (kTile<32, true, 4>))
#else
LC_MICROKERNEL_ENTRIES(int8_exact, (pack_exact_a<kExactRows>), pack_exact_b,
                       (register_tile<ExactTile, kExactRows, kExactGroups * kGroupVectors>))
#endif
// Formats with steps of 16 and minima have no packed layout, and thus no gemv.
LC_GEMV_ENTRIES(int8_step32, (pack_rows_int8<32, false>), (gemv_int8<32, false>))
LC_GEMV_ENTRIES(int8_step32_min, (pack_rows_int8<32, true>), (gemv_int8<32, true>))
LC_GEMV_ENTRIES(int8_step16, (pack_rows_int8<16, false>), (gemv_int8<16, false>))

#define LC_UNIT(text, arithmetic, entry, Step, Min, PACK_ROWS, GEMV, BITS)                                           \
  {                                                                                                                  \
    "int8_" LC_ISA_NAME text, arithmetic, MR, kUnitColumns, Step, sizeof(Quantised<MR, Step, Min>),                  \
        PanelStep<Step, Min>::bytes, kLine, LC_ENTRY(entry##_pack_a), LC_ENTRY(entry##_pack_b),                      \
        LC_ENTRY(entry##_tile), nullptr, nullptr, PACK_ROWS, GEMV, kPanelsAsPacked &&Step == 32 && !Min, 0, nullptr, \
        nullptr, BITS                                                                                                \
  }

const Microkernel UNITS[] = {
    LC_UNIT("_32", Arithmetic::Int8Step32, int8_step32, 32, false, LC_ENTRY(int8_step32_pack_rows),
            LC_ENTRY(int8_step32_gemv), 8),
    LC_UNIT("_32_min", Arithmetic::Int8Step32Min, int8_step32_min, 32, true, LC_ENTRY(int8_step32_min_pack_rows),
            LC_ENTRY(int8_step32_min_gemv), 8),
    LC_UNIT("_16", Arithmetic::Int8Step16, int8_step16, 16, false, LC_ENTRY(int8_step16_pack_rows),
            LC_ENTRY(int8_step16_gemv), 8),
    LC_UNIT("_16_min", Arithmetic::Int8Step16Min, int8_step16_min, 16, true, nullptr, nullptr, 8),
    {"int8_" LC_ISA_NAME "_exact", Arithmetic::Int8Exact, kExactRows, kExactGroups* kGroup, kExactStep, kExactA,
     kExactB, kFetched* kExactStep / kExactK, LC_ENTRY(int8_exact_pack_a), LC_ENTRY(int8_exact_pack_b),
     LC_ENTRY(int8_exact_tile)},
#if defined(MADD)
    LC_UNIT("_32_of_4_bits", Arithmetic::Int8Step32, int4_step32, 32, false, LC_ENTRY(int8_step32_pack_rows),
            LC_ENTRY(int8_step32_gemv), 4),
    LC_UNIT("_32_min_of_4_bits", Arithmetic::Int8Step32Min, int4_step32_min, 32, true,
            LC_ENTRY(int8_step32_min_pack_rows), LC_ENTRY(int8_step32_min_gemv), 4),
#endif
};

}  // namespace lc::backends::cpu
