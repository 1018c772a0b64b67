// Matrix products as kernels: how this CPU computes a contraction.
#pragma once

#include <memory>
#include <vector>

#include "lightcone/backends/cpu/loops/loop_kernel.h"
#include "lightcone/backends/cpu/products/microkernel.h"
#include "lightcone/lowering/contraction.h"
#include "lightcone/passes/precision.h"

namespace lc::backends::cpu {

class Epilogue;

struct MatmulPlan : lowering::Contraction {
  const Microkernel* unit = nullptr;  // the arithmetic of more than a few rows; null: f32
  bool packed = false;                // b_node holds all its rows as packed_weights.h describes
  // Packed for products of bf16, f32 is kept in bf16.
  WeightType stored_type() const;
};
// The arithmetic of a product; null: f32. It follows from the precision, the processor and the bounds of the product's
// sizes, never from the sizes at hand: a row has the same bits in every batch of a program.
const Microkernel* choose_unit(const lowering::Contraction& c, Precision p, const Target& target);
// Would it be on tiles, if the system grants them?
bool wants_tiles(const lowering::Contraction& c, Precision p, const Target& target);
// Is B the whole of a parameter, in a format that is worth packing?
bool packable(const Graph& g, const lowering::Contraction& c);
bool transposed(const lowering::Contraction& c);  // B is W[k, n], not W[n, k]

// Several products of the same rows of A are one kernel: A is packed once, and there is one fork. Their results lie
// behind each other, and each has a node of its own that names its part.
inline constexpr std::size_t kMaxParts = 8;
struct MatmulPart {
  MatmulPlan c;
  std::shared_ptr<const Epilogue> epilogue;  // computes each piece of a row as soon as the product has made it, or null
  std::vector<int> operands;  // of the epilogue: of the kernel's own operands, or ~p: the result of part p
  std::size_t sizes = 0;      // where its own begin; the kernel's business
};
// A loop that makes the rows of A, like a norm: each strip of them just before it is packed, so that A is never written
// to memory.
struct MatmulRows {
  std::shared_ptr<LoopKernel> loop;  // null: A lies in memory
  Dim steps = 1;                     // of its outermost loop for one row
  std::size_t operands = 1;
};
// Operands: A, or those of the loop that makes it; then B of each part, then those of the epilogues.
std::shared_ptr<HostKernel> matmul_kernel(std::vector<MatmulPart> parts, MatmulRows rows, Isa isa,
                                          const Blocking& blocking);
std::int64_t matmul_bytes(const std::vector<MatmulPart>& parts);  // of all results
std::shared_ptr<Kernel> part_kernel(const std::vector<MatmulPart>& parts, std::size_t part);

}  // namespace lc::backends::cpu
