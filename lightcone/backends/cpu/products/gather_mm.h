// gather_mm as a kernel: rows are sorted by the matrix that they chose, and each chosen matrix is one product of its
// rows. Matrices that no row chose are not read.
#pragma once

#include <memory>
#include <optional>

#include "lightcone/backends/cpu/kernels/abi/gemm_abi.h"
#include "lightcone/backends/cpu/target/blocking.h"
#include "lightcone/backends/cpu/target/target.h"
#include "lightcone/core/composite.h"
#include "lightcone/passes/precision.h"

namespace lc {
class HostKernel;
}  // namespace lc

namespace lc::backends::cpu {

// The products of one gather_mm node, and the choices for computing them.
struct GatherMmPlan {
  WeightType type = WeightType::F32;
  Dim rows;                              // n
  std::int64_t count = 0, m = 0, k = 0;  // matrices [count, m, k]
  DType index = DType::I64;
  const Microkernel* unit = nullptr;  // microkernel for more than kFewRows rows; null: f32
  const Microkernel* few = nullptr;   // for up to kFewRows rows, if it is another one
  bool packed = false;                // the matrices are packed as kernels/abi/weight_formats.h describes
  WeightType stored_type() const;     // the type in which the matrices are packed
};
// Returns nullopt if this CPU has no kernel for the node, as for matrices of 8-bit floats and for extents that are not
// constant.
std::optional<GatherMmPlan> plan_gather_mm(const Graph& g, const Node& n, Precision p, const Target& target);
// Returns whether the matrices, if no run changes them, are in a format that is worth packing.
bool packable(const Node& n, const GatherMmPlan& plan);
// Makes the kernel. Its operands are those of the node; the matrices may be packed.
std::shared_ptr<HostKernel> gather_mm_kernel(const GatherMmPlan& plan, Isa isa, const Blocking& blocking);

}  // namespace lc::backends::cpu
