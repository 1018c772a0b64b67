// Dense matrix product C = A * B: packed and register-blocked for many rows, streaming for few.
//
// A is f32 with any strides. B is f32 with any strides, or a weight W[N, K] with contiguous rows in a storage type,
// which is converted while it is packed. Sums over K are never split between threads, and tiles depend on the shape
// alone, so results have the same bits for any thread count.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "lightcone/backends/cpu/target/blocking.h"
#include "lightcone/backends/cpu/target/target.h"
#include "lightcone/device/parallel.h"
#include "lightcone/lowering/weight_type.h"

namespace lc::backends::cpu {

using lowering::block_format;
using lowering::name;
using lowering::unit_bytes;
using lowering::weight_type;
using lowering::WeightType;

struct Microkernel;

constexpr std::int64_t kFewRows = 4;  // up to this many rows, B is streamed instead of packed

// Operands and options of one product C[m, n] = A[m, k] * B[k, n].
struct Gemm {
  std::int64_t m = 0, n = 0, k = 0;
  const float* a = nullptr;       // int8 for an exact microkernel, which makes C int32
  std::int64_t a_m = 0, a_k = 0;  // strides in elements
  WeightType type = WeightType::F32;
  bool packed = false;  // b is packed as packed_weights.h describes, with rows 0 to n and all of k
  const void* b = nullptr;
  std::int64_t b_n = 0, b_k = 0;      // strides in elements; block formats: b_n in bytes, b_k unused
  const Microkernel* unit = nullptr;  // null: f32; few rows use it only if it has a gemv
  int zero = 0;                       // zero point of B's format, for int8 microkernels
  bool to_f32 = false;                // convert an exact microkernel's sums to f32 before `finish`
  float* c = nullptr;
  std::int64_t c_m = 0;  // row stride of C in elements; columns are contiguous
  // Epilogue callback, called once for every piece of C as soon as it is final: columns [begin, end) of `rows` rows.
  // `row` points to column 0 of the first of them. May be null.
  void (*finish)(const void* self, float* row, std::int64_t rows, std::int64_t begin, std::int64_t end) = nullptr;
  const void* finish_self = nullptr;
  // Prologue callback. If it is set and m > kFewRows, A need not be in memory: rows [first, first + count) are computed
  // into `to`, contiguously, when they are packed. Each row is computed once.
  void (*rows)(const void* self, std::int64_t first, std::int64_t count, float* to) = nullptr;
  const void* rows_self = nullptr;
  // The next product of a group with the same A and packed weights in the same layout, run in the same fork. If all
  // products of the group have the same number of columns, its epilogue may read the results of earlier ones at the
  // same columns.
  const Gemm* next_in_group = nullptr;
  Blocking blocking{};
};

// Bytes of scratch for this product and for every smaller one of the same kind. Only the sizes and the layout of B
// count.
std::size_t gemm_scratch_bytes(const Gemm& g, int workers);
// A batch of `count` products. The pointers a, b and c advance by these steps (elements; bytes for a quantized b).
struct GemmBatch {
  std::int64_t count = 1, a = 0, b = 0, c = 0;
};
// Computes the product, or the batch. `scratch` has gemm_scratch_bytes() bytes, aligned to 64.
void gemm(const Gemm& g, const GemmBatch& batch, Parallel& parallel, std::byte* scratch, Isa isa);

// Functions per instruction set.
struct GemmTable {
  // Reorders the rows of A as gemv reads them for this type of B. Returns false if they are read in their original
  // order.
  bool (*arrange)(const Gemm& g, float* to);
  // Rows [row_begin, row_end) of W times m <= kFewRows arranged rows of A: c[i * c_m + row].
  void (*gemv)(const Gemm& g, std::int64_t row_begin, std::int64_t row_end);
  // Writes the sums of A per step that gemv_packed needs for formats with minima.
  void (*step_sums)(const Gemm& g, float* to);
  // As gemv, for packed weights: groups [group_begin, group_end) of 16 rows. `sums` are the results of step_sums.
  void (*gemv_packed)(const Gemm& g, const float* sums, std::int64_t group_begin, std::int64_t group_end);
  // Columns [begin, end) of a product of few rows of A and an f32 B with contiguous columns.
  void (*axpy)(const Gemm& g, std::int64_t begin, std::int64_t end);
  // Packs 16 columns of B from j0 on, of which `columns` exist, as f32 [depth][16].
  void (*pack_b)(const Gemm& g, std::int64_t j0, std::int64_t columns, std::int64_t k0, std::int64_t depth, float* to);
  // Dequantizes one block to f32. Returns false, without writing, if a scale is not finite.
  bool (*dequantize)(WeightType t, const void* block, float* to);
};
// The table of an instruction set.
const GemmTable& gemm_table(Isa isa);
extern const GemmTable kGemmGeneric, kGemmAvx2, kGemmAvx512, kGemmNeon;

}  // namespace lc::backends::cpu
