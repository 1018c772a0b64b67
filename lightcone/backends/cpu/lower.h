// How the CPU back end cuts a graph into kernels.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/backends/cpu/gemm.h"
#include "lightcone/backends/cpu/kernel_names.h"
#include "lightcone/backends/cpu/sides.h"
#include "lightcone/codegen/build.h"
#include "lightcone/codegen/render.h"
#include "lightcone/codegen/render_llvm.h"
#include "lightcone/runtime/kernel.h"

namespace lc::host {

class Epilogue;

// A fused loop nest: generated code, or the interpreter of its IR.
class LoopKernel final : public Kernel {
 public:
  LoopKernel(ir::Kernel ir, std::vector<bool> same_index, std::shared_ptr<Parallel> parallel, Dim update_bytes = 0);
  std::string name() const override { return ir_.name; }
  std::vector<Dim> sizes() const override { return sizes_; }
  bool in_place(std::size_t k) const override;
  void run(const Launch& l) const override;
  bool divisible() const override { return !update_; }
  Iterations iterations(std::span<const std::int64_t> sizes, int workers) const override;
  void run_iterations(const Launch& l, std::int64_t begin, std::int64_t end) const override {
    range(l.in.data() + (update_ ? 1 : 0), l.out, l.sizes.data(), begin, end);
  }
  // Iterations [begin, end) of the outermost loop.
  void range(const void* const* in, void* out, const std::int64_t* sizes, std::int64_t begin, std::int64_t end) const;
  std::string source() const override { return ir::render(ir_, ir_.name); }
  Dim flops() const override;
  std::optional<Dim> bytes_read(std::size_t k) const override;
  std::optional<Dim> bytes_written() const override;
  std::shared_ptr<Parallel> parallel() const override { return parallel_; }
  void install(KernelFunction f, std::shared_ptr<const void> code) { function_ = f, code_ = std::move(code); }
  std::string text(std::string_view name) const { return ir::render(ir_, name); }
  std::string llvm_text(const ir::llvm::Target& target = {}) const { return ir::render_llvm(ir_, ir_.name, target); }
  void rename(std::string name) { ir_.name = std::move(name); }

 private:
  ir::Kernel ir_;
  std::vector<Dim>
      sizes_;  // the IR's own, whether to stream, the outer extent, elements stored, bytes of an update's base
  std::vector<bool> same_index_;
  std::shared_ptr<Parallel> parallel_;
  bool update_;  // operand 0 is the base that is overwritten in part
  double work_;  // of one element
  KernelFunction function_ = nullptr;
  std::shared_ptr<const void> code_;
};

// A product summed over an axis, recognised by the strides of its operands.
struct Contraction {
  struct Axis {
    Dim extent;
    Dim a, b, c;  // strides in elements; c is 0 for the summed axis
  };
  std::vector<Axis> axes;  // of the output, outermost first
  Axis k;
  Dim a_offset, b_offset;
  WeightType type = WeightType::F32;  // of B as it is stored
  NodeId a_node = 0, b_node = 0;
  const DenseUnit* unit = nullptr;  // the arithmetic of more than a few rows; null: f32
  bool to_f32 = false;              // exact sums of bytes, wanted in f32
  bool packed = false;              // b_node holds all its rows as packed_weights.h describes
  // Packed for products of bf16, f32 is kept in bf16.
  WeightType kept() const;
};
// The arithmetic of products with B of this type; null: f32.
const DenseUnit* choose_unit(WeightType t, Precision p);
std::optional<Contraction> match_contraction(const Graph& g, const Sides& s);
// The operands of contractions whose strides cannot be told are copied first.
Graph prepare_contractions(const Graph& g, PassLog& log);
// Is B the whole of a parameter, in a format that is worth packing?
bool packable(const Graph& g, const Contraction& c);
bool transposed(const Contraction& c);  // B is W[k, n], not W[n, k]
// Several products of the same rows of A are one kernel: A is packed once, and there is one fork. Their results lie
// behind each other, and each has a node of its own that names its part.
inline constexpr std::size_t kMaxParts = 8;
struct ContractionPart {
  Contraction c;
  std::shared_ptr<const Epilogue> epilogue;  // computes each piece of a row as soon as the product has made it, or null
  std::vector<int> operands;  // of the epilogue: of the kernel's own operands, or ~p: the result of part p
  std::size_t sizes = 0;      // where its own begin; the kernel's business
};
// A loop that makes the rows of A, like a norm: each strip of them just before it is packed, so that A is never written
// to memory.
struct ContractionRows {
  std::shared_ptr<LoopKernel> loop;  // null: A lies in memory
  Dim steps = 1;                     // of its outermost loop for one row
  std::size_t operands = 1;
};
// Operands: A, or those of the loop that makes it; then B of each part, then those of the epilogues.
std::shared_ptr<const Kernel> contraction_kernel(std::vector<ContractionPart> parts, ContractionRows rows,
                                                 std::shared_ptr<Parallel> parallel, const Blocking& blocking);
std::int64_t contraction_bytes(const std::vector<ContractionPart>& parts);  // of all results
std::shared_ptr<const Kernel> part_kernel(const std::vector<ContractionPart>& parts, std::size_t part);

// Small windows of maxima become elementwise; operands of library kernels and results are made whole.
Graph unroll_windows(const Graph& src, PassLog& log);
Graph make_contiguous(const Graph& src);

// Scatter, argsort and the like: ordinary functions on whole, contiguous operands.
std::shared_ptr<const Kernel> library_kernel(const Graph& g, const Node& n, std::shared_ptr<Parallel> parallel);

// The operations between a kernel's operands and its result.
std::vector<Origin::Step> steps(const Graph& g, NodeId result, const std::vector<NodeId>& operands);

struct Lowered {
  Graph graph;
  std::vector<std::shared_ptr<LoopKernel>> loops;  // that wait for their code
};
// Graphs that are compiled together share the names of their kernels.
Lowered lower(const Graph& g, const std::shared_ptr<Parallel>& parallel, PassLog& log, const CpuOptions& options,
              KernelNames& names);

}  // namespace lc::host
