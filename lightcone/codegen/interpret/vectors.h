// Vector operations of the kernel IR interpreter: every instruction computes `n` numbers. Floats are held as f32, which
// can represent all narrower ones, or as f64; integers in 64 bits; bools in 32 bits, as wide as the floats that they
// select. Results are computed in double precision and rounded once to the type.
#pragma once

#include "lightcone/macros_off.h"

#include <cstdint>

#include "lightcone/core/op.h"

namespace lc::codegen::vectors {

using i64 = std::int64_t;

constexpr std::size_t bytes(DType t) { return t == DType::Bool || (is_float(t) && t != DType::F64) ? 4 : 8; }

// Fill with a constant, or with an index that is the same for all lanes.
void fill(DType t, double value, i64 n, void* to);
void fill_integer(DType t, i64 value, i64 n, void* to);
void from_indices(DType t, const i64* index, i64 n, void* to);

// Computes op(a, b, c), whose last operand has type `operand`.
void apply(Op op, DType operand, DType result, const void* a, const void* b, const void* c, i64 n, void* to);
void mul_add(DType t, const void* a, const void* b, const void* c, i64 n, void* to);
void convert(DType from, DType to, const void* a, i64 n, void* result);

// Transfers of `n` elements of a buffer: from index `at` on with a stride, or at offsets where `valid` holds (null:
// all).
void load(DType t, const void* buffer, i64 at, i64 stride, i64 n, void* to);
void gather(DType t, const void* buffer, const i64* offsets, const i64* valid, i64 n, void* to);
void store(DType t, const void* from, i64 n, void* buffer, i64 at, i64 stride);
void scatter(DType t, const void* from, i64 n, void* buffer, const i64* offsets);

// start() initialises `lanes` accumulators. join() combines each of them with `count` consecutive values; `stride` is
// the distance between the first values of neighbouring lanes.
void start(Op op, DType t, i64 lanes, void* accumulators);
void join(Op op, DType t, const void* values, i64 lanes, i64 stride, i64 count, void* accumulators);

// Sums of f32 are sums of blocks (kernel_ir.h). end_block() adds the current block to `before`, adds the rounding error
// to `lost` and resets the block to zero. all_blocks() returns the sum of the three without changing them.
void end_block(i64 lanes, float* block, float* before, float* lost);
void all_blocks(i64 lanes, const float* block, const float* before, const float* lost, float* to);

// Repeats each of `lanes` numbers `each` times.
void repeat(DType t, const void* from, i64 lanes, i64 each, void* to);

// Returns a pointer to `k` elements after `p`.
inline std::byte* behind(void* p, DType t, i64 k) {
  return static_cast<std::byte*>(p) + k * static_cast<i64>(bytes(t));
}
inline const std::byte* behind(const void* p, DType t, i64 k) {
  return static_cast<const std::byte*>(p) + k * static_cast<i64>(bytes(t));
}
// Reads or writes one number, in the representation of evaluators.
Element element(DType t, const void* v, i64 k);
void put(DType t, void* v, i64 k, const Element& e);

}  // namespace lc::codegen::vectors
#include "lightcone/macros_on.h"
