// What the interpreter of the kernel IR computes with: every instruction on `n` numbers at once. A float lies as f32,
// which holds every narrower one, or as f64; an integer in 64 bits; a bool in 32, as wide as the floats that it chooses
// from. Results are those of double precision, rounded once to the type.
#pragma once

#include "lightcone/macros_off.h"

#include <cstdint>

#include "lightcone/core/op.h"

namespace lc::codegen::vectors {

using i64 = std::int64_t;

constexpr std::size_t bytes(DType t) { return t == DType::Bool || (is_float(t) && t != DType::F64) ? 4 : 8; }

// Constants, and indices that are the same in all of them.
void fill(DType t, double value, i64 n, void* to);
void fill_integer(DType t, i64 value, i64 n, void* to);
void from_indices(DType t, const i64* index, i64 n, void* to);

// op(a, b, c), whose last operand has type `operand`.
void apply(Op op, DType operand, DType result, const void* a, const void* b, const void* c, i64 n, void* to);
void mul_add(DType t, const void* a, const void* b, const void* c, i64 n, void* to);
void convert(DType from, DType to, const void* a, i64 n, void* result);

// Elements of a buffer: `n` from `at` on, each `stride` behind the one before; or at offsets, where `valid`
// (null: all).
void load(DType t, const void* buffer, i64 at, i64 stride, i64 n, void* to);
void gather(DType t, const void* buffer, const i64* offsets, const i64* valid, i64 n, void* to);
void store(DType t, const void* from, i64 n, void* buffer, i64 at, i64 stride);
void scatter(DType t, const void* from, i64 n, void* buffer, const i64* offsets);

// start() gives each of `lanes` accumulators what it begins with; join() joins each with `count` values that follow
// each other, `stride` behind those of the one before.
void start(Op op, DType t, i64 lanes, void* accumulators);
void join(Op op, DType t, const void* values, i64 lanes, i64 stride, i64 count, void* accumulators);

// Sums of f32 are made by blocks (kernel_ir.h): end_block() adds the block under way to what came before, `lost` takes
// what that rounds away, and the next begins at zero. all_blocks() gives the three together and leaves them as they
// are.
void end_block(i64 lanes, float* block, float* before, float* lost);
void all_blocks(i64 lanes, const float* block, const float* before, const float* lost, float* to);

// Each of `lanes` numbers `each` times.
void repeat(DType t, const void* from, i64 lanes, i64 each, void* to);

// A pointer `k` numbers further on.
inline std::byte* behind(void* p, DType t, i64 k) {
  return static_cast<std::byte*>(p) + k * static_cast<i64>(bytes(t));
}
inline const std::byte* behind(const void* p, DType t, i64 k) {
  return static_cast<const std::byte*>(p) + k * static_cast<i64>(bytes(t));
}
// One number of them, as evaluators hold it.
Element element(DType t, const void* v, i64 k);
void put(DType t, void* v, i64 k, const Element& e);

}  // namespace lc::codegen::vectors
#include "lightcone/macros_on.h"
