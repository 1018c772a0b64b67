// C = A * B in one arithmetic: how the operands are packed, and how a tile of C is computed from them. What the blocked
// loop in gemm.cpp does around it is the same for all.
//
// A is packed in strips of mr rows, each a unit's own business. B, also packed, is groups of 16 columns (16 rows of a
// weight W[N, K] side by side), each contiguous along k; a tile reads nr / 16 groups:
//
//   f32    f32 [k][16]
//   bf16   u16 [k / 2][16][2]; without an instruction for it f32 [k][16], each number rounded
//   int8   per step of 32 or 16 k: scale[16], f32 or, for steps of 32 without minima, f16; with minima f32 min[16];
//          u8 codes[step / 4][16][4]
//          B = scale * (code - zero) - min, where zero is a constant of the format
//   exact  u8 [k / 4][16][4]: signed bytes, 128 more than they are, filled up to 64 k
//   split  per step of 32 k: a header of 64 bytes; u16 [parts][16][16][2], x = hi + mid (+ lo)
//
// Activations of int8 products become signed bytes, one scale for a row's step. Whatever the unit, an int8 product has
// the same bits: per step, in the order of k, c = fma(sum of products, a's scale * b's scale, c), then with minima
// c = fma(-min, a's scale * a's sum of codes, c). A step of A that holds a NaN or an infinity becomes NaN.
// Exact products take both operands as signed bytes, and C is of whole numbers of 32 bits.
#pragma once

#include <cstdint>
#include <vector>

#include "lightcone/backends/cpu/products/gemm.h"
#include "lightcone/backends/cpu/products/weight_formats.h"
#include "lightcone/backends/cpu/target/target.h"

namespace lc::backends::cpu {

// The k of one call of `tile` where a gemv must come to the same bits; others take what of B is kPanelDepth bytes.
constexpr std::int64_t kTileDepth = 512, kPanelDepth = 32 << 10;

struct Microkernel {
  const char* name;
  Arithmetic arithmetic;
  int mr, nr;          // the tile; nr is a multiple of 16
  int step;            // k of one packed step; the last is padded with zeros
  int a_step, b_step;  // bytes of a step of one strip of A, of one group of 16 columns of B
  int fetched;         // bytes that a step of `tile` fetches ahead

  bool exact() const { return arithmetic == Arithmetic::Int8Exact; }
  std::int64_t steps(std::int64_t depth) const { return (depth + step - 1) / step; }
  std::int64_t a_bytes(std::int64_t depth) const { return steps(depth) * a_step; }
  std::int64_t b_bytes(std::int64_t depth) const { return steps(depth) * b_step; }

  // f32 rows (exact: bytes) with any strides -> strips, a_bytes(depth) apart, 64-byte aligned. `zero`: of B's format,
  // for int8.
  void (*pack_a)(const float* a, std::int64_t a_m, std::int64_t a_k, std::int64_t rows, std::int64_t depth, int zero,
                 void* to);
  // Columns [j0, j0 + columns) of g's B, k from k0 on -> groups, b_group bytes apart; missing columns are zeros. Of a
  // packed B, j0 is a multiple of 16; of a block format, k0 is a multiple of 32. int8: block formats of the unit's
  // arithmetic alone. Packed bf16 weights of an even k already are the panels of a unit whose step is 2.
  void (*pack_b)(const Gemm& g, std::int64_t j0, std::int64_t columns, std::int64_t k0, std::int64_t depth, void* to,
                 std::int64_t b_group);
  // C[rows, columns] (+)= one strip of A * the groups at b, of which only those with wanted columns are read. From
  // `soon` on lies what later calls will read: steps(depth) * fetched bytes of it are prefetched meanwhile.
  void (*tile)(const void* a, const void* b, std::int64_t b_group, std::int64_t depth, float* c, std::int64_t c_m,
               std::int64_t rows, std::int64_t columns, bool add, const void* soon);
  // Around a thread's calls of `tile`; may be null.
  void (*begin)() = nullptr;
  void (*end)() = nullptr;
  // Up to four rows of A, neighbours along k, against packed weights as they lie in memory: groups of sixteen rows,
  // with the bits that `tile` gives kTileDepth by kTileDepth. `arrange` brings A into gemv's own form, no more bytes
  // than it has in f32. Null where there is no such way.
  void (*arrange)(const Gemm& g, void* to) = nullptr;
  void (*gemv)(const Gemm& g, const void* a, std::int64_t group_begin, std::int64_t group_end) = nullptr;
  bool q8_as_packed = false;  // its groups are those of packed Q8_0 weights
};

// The fastest that the processor has. Splits are faster than f32 only where there are tiles of bf16 products: null
// elsewhere. Where the processor has tiles, but for f32, the system is asked for them (target.h): so it is for a
// product that wants them.
const Microkernel* microkernel(Arithmetic a, const Target& t);
bool bf16_dots_are_fast(const Target& t);  // does it have AVX-512's dot products of bf16, faster than those of f32?
bool bf16_is_fast(const Target& t);        // has it those or tiles of bf16? Asks, too
bool bf16_may_be_fast(const Target& t);    // the same without asking, unless the answer was no
bool on_tiles(const Microkernel& u);
// All this CPU can run, for tests; those of tile hardware also as an emulation.
std::vector<const Microkernel*> microkernels();

// The units, one instruction set a file. Of int8 there are five, in the order of Arithmetic.
extern const Microkernel kF32Generic, kF32Avx2, kF32Avx512, kF32Neon;
extern const Microkernel kBf16Generic, kBf16Avx2, kBf16Avx512, kBf16Avx512Bf16, kBf16Neon, kBf16NeonBf16;
extern const Microkernel kInt8Generic[5], kInt8Avx2[5], kInt8AvxVnni[5], kInt8Avx512Vnni[5];
extern const Microkernel kInt8Neon[5], kInt8NeonDotprod[5], kInt8NeonI8mm[5];
extern const Microkernel kDenseAmx[8], kDenseEmulated[8];  // one of each Arithmetic

}  // namespace lc::backends::cpu
