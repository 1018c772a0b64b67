// The interface of the microkernels of dense products: C = A * B in one arithmetic. A microkernel defines how the
// operands are packed and how a tile of C is computed from them. The blocked loops around it (products/gemm.h) are the
// same for all.
//
// A is packed in strips of mr rows, in a layout private to the microkernel. B is packed in groups of 16 columns (16
// rows of a weight W[N, K]), each contiguous along k. A tile reads nr / 16 groups:
//
//   f32    f32 [k][16]
//   bf16   u16 [k / 2][16][2]; without bf16 instructions f32 [k][16], each number rounded
//   int8   per step of 32 or 16 k: scale[16], f32 or, for steps of 32 without minima, f16; with minima f32 min[16];
//          u8 codes[step / 4][16][4]
//          B = scale * (code - zero) - min, where zero is a constant of the format
//   exact  u8 [k / 4][16][4]: signed bytes + 128, padded to a multiple of 64 k; with AVX2 exact_words.inl.h
//   split  per step of 32 k: a header of 64 bytes; u16 [parts][16][16][2], x = hi + mid (+ lo)
//
// int8 products quantize activations to signed bytes with one scale per row and step. All int8 microkernels give the
// same bits: per step, in the order of k, c = fma(sum of products, a's scale * b's scale, c), then with minima
// c = fma(-min, a's scale * a's sum of codes, c). A step of A that holds a NaN or an infinity becomes NaN.
// Exact products take both operands as signed bytes and compute C in int32.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lightcone/backends/cpu/kernels/abi/weight_formats.h"

namespace lc::backends::cpu {

struct Microkernel;

// The caches that sizes of blocks are derived from (target/blocking.h), and how memory is read.
struct CacheSizes {
  std::int64_t l1 = 32 << 10, l2 = 1 << 20;  // bytes of a core's caches
  std::int64_t streams = 1;                  // in which a worker reads the weights of a one-row product
  bool fetch_into_l2 = false;                // prefetches weights with 8-bit codes into L2 instead of L1
  friend bool operator==(const CacheSizes&, const CacheSizes&) = default;
};

inline constexpr std::int64_t kFewRows = 4;  // up to this many rows, B is streamed instead of packed

// Operands and options of one product C[m, n] = A[m, k] * B[k, n].
struct Gemm {
  std::int64_t m = 0, n = 0, k = 0;
  const float* a = nullptr;       // int8 for an exact microkernel, which makes C int32; bf16 if a_bf16
  std::int64_t a_m = 0, a_k = 0;  // strides in elements
  bool a_bf16 = false;            // a holds bf16 numbers, contiguous along k, for a microkernel with pack_bf16
  WeightType type = WeightType::F32;
  bool packed = false;    // b is packed as weight_formats.h describes, with rows 0 to n and all of k
  bool for_unit = false;  // packed b has the layout of unit's pack_b instead, b_bytes(k) a group of 16 rows
  const void* b = nullptr;
  std::int64_t b_n = 0, b_k = 0;      // strides in elements; block formats: b_n in bytes, b_k unused
  const Microkernel* unit = nullptr;  // null: f32; few rows use it only if it has a gemv
  const Microkernel* few = nullptr;   // for few rows instead of `unit`; null: the same
  int zero = 0;                       // zero point of B's format, for int8 microkernels
  bool to_f32 = false;                // convert an exact microkernel's sums to f32 before `finish`
  float* c = nullptr;
  std::int64_t c_m = 0;  // row stride of C in elements; columns are contiguous
  // Epilogue callback, called once for every piece of C as soon as it is final: columns [begin, end) of `rows` rows.
  // `row` points to column 0 of the first of them. May be null.
  void (*finish)(const void* self, float* row, std::int64_t rows, std::int64_t begin, std::int64_t end) = nullptr;
  // For a microkernel whose sums wait beside C: it gets each piece of them instead, element `begin` of the first row at
  // `sums`, with rows `distance` elements apart. C is not written, and `row` only tells which row it is.
  void (*finish_apart)(const void* self, const float* row, std::int64_t rows, std::int64_t begin, std::int64_t end,
                       const float* sums, std::int64_t distance) = nullptr;
  const void* finish_self = nullptr;
  // Prologue callback. If it is set and m > kFewRows, A need not be in memory: rows [first, first + count) are computed
  // into `to`, contiguously, when they are packed. Each row is computed once.
  void (*rows)(const void* self, std::int64_t first, std::int64_t count, float* to) = nullptr;
  const void* rows_self = nullptr;
  // The next product of a group with the same A and packed weights in the same layout, run in the same fork. If all
  // products of the group have the same number of columns, its epilogue may read the results of earlier ones at the
  // same columns.
  const Gemm* next_in_group = nullptr;
  CacheSizes caches{};
};

// Functions per instruction set.
struct GemmTable {
  // Reorders the rows of A as gemv reads them for this type of B. Returns false if they are read in their original
  // order.
  bool (*reorder_rows)(const Gemm* g, float* to);
  // Rows [row_begin, row_end) of W times m <= kFewRows reordered rows of A: c[i * c_m + row].
  void (*gemv)(const Gemm* g, std::int64_t row_begin, std::int64_t row_end);
  // Writes the sums of A per step that gemv_packed needs for formats with minima.
  void (*step_sums)(const Gemm* g, float* to);
  // As gemv, for packed weights: groups [group_begin, group_end) of 16 rows. `sums` are the results of step_sums.
  void (*gemv_packed)(const Gemm* g, const float* sums, std::int64_t group_begin, std::int64_t group_end);
  // Columns [begin, end) of a product of few rows of A and an f32 B with contiguous columns.
  void (*axpy)(const Gemm* g, std::int64_t begin, std::int64_t end);
  // Packs 16 columns of B from j0 on, of which `columns` exist, as f32 [depth][16].
  void (*pack_b)(const Gemm* g, std::int64_t j0, std::int64_t columns, std::int64_t k0, std::int64_t depth, float* to);
  // Dequantizes one block to f32. Returns false, without writing, if a scale is not finite.
  bool (*dequantize)(WeightType t, const void* block, float* to);
};
extern const GemmTable kGemmGeneric, kGemmAvx2, kGemmAvx512, kGemmNeon;

// kTileDepth is the k of one `tile` call if a gemv must give the same bits. Other microkernels take the k for which a
// group of B has kPanelDepth bytes.
inline constexpr std::int64_t kTileDepth = 512, kPanelDepth = 32 << 10;

// Functions and layout constants of one microkernel.
struct Microkernel {
  const char* name;
  Arithmetic arithmetic;
  int mr, nr;          // size of a tile; nr is a multiple of 16
  int step;            // k of one packed step; the last step is padded with zeros
  int a_step, b_step;  // bytes of one step: of a strip of A, and of a group of 16 columns of B
  int fetched;         // bytes that `tile` prefetches per step

  bool exact() const { return arithmetic == Arithmetic::Int8Exact; }
  std::int64_t steps(std::int64_t depth) const { return (depth + step - 1) / step; }
  std::int64_t a_bytes(std::int64_t depth) const { return steps(depth) * a_step; }
  std::int64_t b_bytes(std::int64_t depth) const { return steps(depth) * b_step; }

  // Packs rows of A (f32, or bytes for exact products) with any strides into strips, a_bytes(depth) apart, at `to`,
  // which is 64-byte aligned. `zero` is the zero point of B's format, for int8.
  void (*pack_a)(const float* a, std::int64_t a_m, std::int64_t a_k, std::int64_t rows, std::int64_t depth, int zero,
                 void* to);
  // Packs columns [j0, j0 + columns) of g's B from k0 on into groups, b_group bytes apart; missing columns become
  // zeros. j0 is a multiple of 16 if B is packed, and k0 is a multiple of 32 for block formats. int8 microkernels
  // accept only block formats of their own arithmetic, whose codes have no more than code_bits. Packed bf16 weights
  // with an even k already have the layout of a microkernel with step 2.
  void (*pack_b)(const Gemm* g, std::int64_t j0, std::int64_t columns, std::int64_t k0, std::int64_t depth, void* to,
                 std::int64_t b_group);
  // C[rows, columns] (+)= one strip of A * the groups at `b`; only groups with needed columns are read. `soon` points
  // to data of later calls, of which steps(depth) * fetched bytes are prefetched; tile registers take null for nothing.
  void (*tile)(const void* a, const void* b, std::int64_t b_group, std::int64_t depth, float* c, std::int64_t c_m,
               std::int64_t rows, std::int64_t columns, bool add, const void* soon);
  // Called before and after a thread's calls of `tile` (to configure tiles, for example); may be null.
  void (*begin)() = nullptr;
  void (*end)() = nullptr;
  // Packs up to kFewRows rows of A, contiguous along k, for gemv, into at most the bytes they have in f32. Null if
  // there is no gemv.
  void (*pack_rows)(const Gemm* g, void* to) = nullptr;
  // Multiplies packed rows of A by packed weights in their stored layout, groups [group_begin, group_end) of 16 rows.
  // The bits equal those of `tile` calls with kTileDepth k each. Null if there is none.
  void (*gemv)(const Gemm* g, const void* a, std::int64_t group_begin, std::int64_t group_end) = nullptr;
  bool q8_as_packed = false;  // its groups have the layout of packed Q8_0 weights
  // If not zero, sums wait beside C for the next k, as blocks of mr rows of nr numbers: `tile` is called for one chunk
  // of k of B and so many strips, whose blocks stay in L1, before the next chunk. C is put down once, by put_sums.
  int together = 0;
  // Copies sums, whose rows are `distance` apart, to rows of C; `streamed`: past the caches.
  void (*put_sums)(const float* sums, std::int64_t distance, float* c, std::int64_t c_m, std::int64_t rows,
                   std::int64_t columns, bool streamed) = nullptr;
  // Packs A as pack_a does if it is bf16, contiguous along k. Null if there is none.
  void (*pack_bf16)(const std::uint16_t* a, std::int64_t a_m, std::int64_t rows, std::int64_t depth,
                    void* to) = nullptr;
  int code_bits = 8;  // most bits of a code of B, for int8
};

// The microkernels, one source file per instruction set. Arrays of five hold the int8 arithmetics in enum order.
extern const Microkernel kF32Generic, kF32Avx2, kF32Avx512, kF32Neon;
extern const Microkernel kBf16Generic, kBf16Avx2, kBf16Avx512, kBf16Avx512Bf16, kBf16Neon, kBf16NeonBf16;
extern const Microkernel kInt8Generic[5], kInt8AvxVnni[5], kInt8Avx512Vnni[5];
// After the five, Int8Step32 and Int8Step32Min for codes of at most four bits, whose products of bytes fit in 16 bits.
extern const Microkernel kInt8Avx2[7];
extern const Microkernel kInt8Neon[5], kInt8NeonDotprod[5], kInt8NeonI8mm[5];
extern const Microkernel kDenseAmx[8], kDenseEmulated[8];  // for every Arithmetic except F32

}  // namespace lc::backends::cpu
