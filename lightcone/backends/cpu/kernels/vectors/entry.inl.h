// Definitions of entry points: lc_<operation>_<instruction set>, with C linkage, as entry_points.h declares them. A
// file that is compiled for an instruction set defines ISA.
#pragma once

#include "lightcone/backends/cpu/kernels/abi/entry_points.h"

#define LC_JOINED_ENTRY(operation, isa) lc_##operation##_##isa
#define LC_ENTRY_OF(operation, isa) LC_JOINED_ENTRY(operation, isa)
#define LC_ENTRY(operation) LC_ENTRY_OF(operation, ISA)
#define LC_TEXT(name) #name
#define LC_TEXT_OF(name) LC_TEXT(name)
#define LC_ISA_NAME LC_TEXT_OF(ISA)  // "avx2"

// The three functions of a microkernel (gemm_abi.h). A name with template arguments is given in parentheses.
#define LC_MICROKERNEL_ENTRIES(arithmetic, PACK_A, PACK_B, TILE)                                                       \
  extern "C" void LC_ENTRY(arithmetic##_pack_a)(const float* a, i64 a_m, i64 a_k, i64 rows, i64 depth, int zero,       \
                                                void* to) {                                                            \
    PACK_A(a, a_m, a_k, rows, depth, zero, to);                                                                        \
  }                                                                                                                    \
  extern "C" void LC_ENTRY(arithmetic##_pack_b)(const Gemm* g, i64 j0, i64 columns, i64 k0, i64 depth, void* to,       \
                                                i64 b_group) {                                                         \
    PACK_B(*g, j0, columns, k0, depth, to, b_group);                                                                   \
  }                                                                                                                    \
  extern "C" void LC_ENTRY(arithmetic##_tile)(const void* a, const void* b, i64 b_group, i64 depth, float* c, i64 c_m, \
                                              i64 rows, i64 columns, bool add, const void* soon) {                     \
    TILE(a, b, b_group, depth, c, c_m, rows, columns, add, soon);                                                      \
  }
// The two functions of an int8 microkernel for few rows.
#define LC_GEMV_ENTRIES(arithmetic, PACK_ROWS, GEMV)                                                          \
  extern "C" void LC_ENTRY(arithmetic##_pack_rows)(const Gemm* g, void* to) { PACK_ROWS(*g, to); }            \
  extern "C" void LC_ENTRY(arithmetic##_gemv)(const Gemm* g, const void* a, i64 group_begin, i64 group_end) { \
    GEMV(*g, a, group_begin, group_end);                                                                      \
  }
