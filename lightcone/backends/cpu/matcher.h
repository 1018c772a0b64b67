// Matcher: finds the sums of products that CPU kernels compute while a graph is partitioned, and chooses their
// arithmetic.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "lightcone/backends/cpu/conv/algorithms.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/backends/cpu/products/matmul_kernel.h"
#include "lightcone/lowering/partition.h"

namespace lc::backends::cpu {

class Matcher {
 public:
  Matcher(const Graph& g, const CpuOptions& o);
  lowering::PartitionRules rules();  // they call this object, which must outlive them
  ConvContext conv_context(const ConvPlan& c) const;

  // Matched products and convolutions, by the node of the sum.
  std::map<NodeId, MatmulPlan> matmuls;
  std::map<NodeId, ConvPlan> convolutions;
  // Whether the kernel of a matched sum reads an image, or rows, of bf16 as they are stored, and whether it keeps its
  // sums apart from an epilogue's result in bf16, and in f32.
  bool reads_bf16(NodeId sum) const;
  bool writes_bf16(NodeId sum) const;
  bool sums_apart(NodeId sum) const;
  // What makes a value: a loop, the epilogue of a sum that writes bf16, or that of another one.
  enum class MadeBy : std::uint8_t { Loop, WriterOfBf16, OtherSum };
  MadeBy made_by(NodeId value) const;
  int tiles_wanted = 0;  // products that would use AMX tiles if the system granted them

 private:
  lowering::PartitionRules::Match match(const lowering::Factors& f);
  const Microkernel* split_weights(const lowering::Contraction& c, Precision p) const;
  bool beats_f32(const lowering::Contraction& c) const;
  std::optional<NodeId> in_bf16(const lowering::Factors& f, NodeId read) const;

  const Graph& g_;
  const CpuOptions& options_;
  std::vector<int> uses_;
  std::map<NodeId, int> rows_read_;  // products that read a node as their rows
  bool nhwc_bf16_;                   // convolutions with channels last are multiplied in bf16
};

}  // namespace lc::backends::cpu
