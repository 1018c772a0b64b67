// C = A * B, the one dense kernel: packed and register-blocked for many rows, streaming for few.
//
// A is f32 with any strides. B is f32 with any strides, or a weight W[N, K] with contiguous rows
// in a storage type; it is converted on the way in and multiplied in f32. Sums over K are never
// split between threads and tiles depend on the shape alone: the same bits for any thread count.
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

constexpr std::int64_t kFewRows = 4;  // up to here B is streamed, not packed

struct Gemm {
  std::int64_t m = 0, n = 0, k = 0;
  const float* a = nullptr;       // bytes for an exact unit, and then C is i32
  std::int64_t a_m = 0, a_k = 0;  // strides in elements
  WeightType type = WeightType::F32;
  bool packed = false;  // b as packed_weights.h describes it: rows 0 to n, all of k
  const void* b = nullptr;
  std::int64_t b_n = 0, b_k = 0;      // in elements; quantised: b_n in bytes, b_k unused
  const Microkernel* unit = nullptr;  // the arithmetic, of few rows if it has a gemv; null: f32
  int zero = 0;                       // of B's format, for int8 units
  bool to_f32 = false;                // the sums of an exact unit, before `finish`
  float* c = nullptr;
  std::int64_t c_m = 0;  // the columns of C are neighbours
  // Called once for every piece of C as soon as it is final: columns [begin, end) of `rows` rows from this one on.
  void (*finish)(const void* self, float* row, std::int64_t rows, std::int64_t begin, std::int64_t end) = nullptr;
  const void* finish_self = nullptr;
  // More than a few rows of A need not lie in memory: this makes rows [first, first + count), side by side, when they
  // are packed; each once.
  void (*rows)(const void* self, std::int64_t first, std::int64_t count, float* to) = nullptr;
  const void* rows_self = nullptr;
  // Another product of the same A, of packed weights in the same form, in the same fork. It may finish with the
  // results of those before it at the same columns if all have the same number of columns.
  const Gemm* next_in_group = nullptr;
  Blocking blocking{};
};

// Scratch of a product, and of every smaller one of the same kind. Of `g` only the sizes and B's form count.
std::size_t gemm_scratch_bytes(const Gemm& g, int workers);
// `batch` products whose pointers advance by the given steps (elements; quantised b: bytes).
struct GemmBatch {
  std::int64_t count = 1, a = 0, b = 0, c = 0;
};
void gemm(const Gemm& g, const GemmBatch& batch, Parallel& parallel, std::byte* scratch, Isa isa);

// One instruction set's functions.
struct GemmTable {
  // the rows of A in the order in which gemv reads this type of B; false: as they are
  bool (*arrange)(const Gemm& g, float* to);
  // rows [row_begin, row_end) of W against m <= 4 arranged rows of A: c[i * c_m + row]
  void (*gemv)(const Gemm& g, std::int64_t row_begin, std::int64_t row_end);
  // the same for packed weights: groups of sixteen rows; `sums` from step_sums
  void (*step_sums)(const Gemm& g, float* to);
  void (*gemv_packed)(const Gemm& g, const float* sums, std::int64_t group_begin, std::int64_t group_end);
  // few rows of A against a B in f32 whose columns are neighbours, columns [begin, end)
  void (*axpy)(const Gemm& g, std::int64_t begin, std::int64_t end);
  // 16 columns of B in f32, from j0 on, of which `columns` exist: [depth][16]
  void (*pack_b)(const Gemm& g, std::int64_t j0, std::int64_t columns, std::int64_t k0, std::int64_t depth, float* to);
  // One block of a block format in f32; false, and nothing written, if a scale is not finite.
  bool (*dequantize)(WeightType t, const void* block, float* to);
};
const GemmTable& gemm_table(Isa isa);
extern const GemmTable kGemmGeneric, kGemmAvx2, kGemmAvx512, kGemmNeon;

}  // namespace lc::backends::cpu
