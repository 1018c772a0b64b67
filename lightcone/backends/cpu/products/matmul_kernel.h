// Matrix products as kernels: how this CPU computes a contraction.
#pragma once

#include <memory>
#include <vector>

#include "lightcone/backends/cpu/loops/loop_kernel.h"
#include "lightcone/backends/cpu/products/microkernel.h"
#include "lightcone/backends/cpu/target/blocking.h"
#include "lightcone/lowering/contraction.h"
#include "lightcone/passes/precision.h"

namespace lc::backends::cpu {

class Epilogue;

// A contraction and the choices for computing it.
struct MatmulPlan : lowering::Contraction {
  const Microkernel* unit = nullptr;  // microkernel for more than kFewRows rows; null: f32
  const Microkernel* few = nullptr;   // for up to kFewRows rows, if it is another one
  bool bf16_a = false;                // a_node holds bf16 numbers, which are read as they are stored
  bool packed = false;                // b_node is packed as kernels/abi/weight_formats.h describes
  bool for_unit = false;              // as the microkernel's pack_b does instead: Gemm::for_unit
  // Bytes of B as it is packed.
  std::int64_t packed_bytes() const;
  // The type B is packed in: bf16 if an f32 B is multiplied in bf16, else its own.
  WeightType stored_type() const;
};
// Selects the microkernel of a product; null: f32. The choice depends on the precision, the processor and the bounds of
// the product's sizes, never on the sizes of a run, so a row has the same bits in every batch of a program, unless few
// rows have a microkernel of their own (MatmulPlan::few) or are multiplied in f32.
const Microkernel* choose_unit(const lowering::Contraction& c, Precision p, const Target& target);
// Returns whether the product would use AMX tiles if the system grants them.
bool wants_tiles(const lowering::Contraction& c, Precision p, const Target& target);
// The microkernel of many rows times weights in a block format, if it is not that of few rows; null: it is.
const Microkernel* choose_prompt_unit(const lowering::Contraction& c, Precision p, const Target& target);
// The microkernel of a product whose B, a parameter of f32, is split into bf16 numbers when it is loaded; null: that is
// not faster. Such a product always has many rows.
const Microkernel* choose_split_weights(const lowering::Contraction& c, Precision p, const Target& target);
// Returns whether the product, with its unit chosen, reads an A of bf16 as it is stored, and whether it keeps its sums
// apart from an epilogue's result, in bf16 and in f32: on tile registers, with many rows.
bool reads_bf16(const MatmulPlan& c);
bool writes_bf16(const MatmulPlan& c);
bool sums_apart(const MatmulPlan& c);
// Returns whether B is a whole parameter in a format that is worth packing.
bool packable(const Graph& g, const lowering::Contraction& c);
// Returns whether B is bytes that depend on parameters alone, which an exact microkernel's pack_b may pack when they
// are loaded.
bool packable_bytes(const Graph& g, const lowering::Contraction& c);
// Returns whether B is stored as W[k, n] instead of W[n, k].
bool transposed(const lowering::Contraction& c);

// Products of the same rows of A form one kernel: A is packed once, in one fork. Their results are consecutive in one
// buffer, and each has a node of its own that refers to its slice.
inline constexpr std::size_t kMaxParts = 8;
// A product of such a kernel.
struct MatmulPart {
  MatmulPlan c;
  // Processes each piece of a row as soon as it is computed; may be null.
  std::shared_ptr<const Epilogue> epilogue;
  // For each operand of the epilogue: its index in the kernel's operands, or ~p for the result of part p.
  std::vector<int> operands;
  std::size_t epilogue_sizes = 0;  // index of the epilogue's sizes; set by the kernel
};
// A fused prologue: the loop that computes the rows of A (a norm, for example). Each strip is computed just before it
// is packed, so A is never written to memory.
struct MatmulRows {
  std::shared_ptr<LoopKernel> loop;  // null: A is in memory
  Dim steps = 1;                     // iterations of the outermost loop per row
  std::size_t operands = 1;          // operands of the loop; 1 without one
};
// Makes the kernel. Its operands are A or those of the prologue, then B of each part, then those of the epilogues.
std::shared_ptr<HostKernel> matmul_kernel(std::vector<MatmulPart> parts, MatmulRows rows, Isa isa,
                                          const Blocking& blocking);
// Bytes of all results.
Dim matmul_bytes(const std::vector<MatmulPart>& parts);
// The kernel of a node that refers to the result of one part.
std::shared_ptr<Kernel> part_kernel(const std::vector<MatmulPart>& parts, std::size_t part);

}  // namespace lc::backends::cpu
