// Matcher: finds the sums of products that CPU kernels compute while a graph is partitioned, and chooses their
// arithmetic.
#pragma once

#include <map>
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
  int tiles_wanted = 0;  // products that would use AMX tiles if the system granted them

 private:
  lowering::PartitionRules::Match match(const lowering::Factors& f);
  const Microkernel* split_weights(const lowering::Contraction& c, Precision p) const;
  bool beats_f32(const lowering::Contraction& c) const;

  const Graph& g_;
  const CpuOptions& options_;
  std::vector<int> uses_;
  bool nhwc_bf16_;  // convolutions with channels last are multiplied in bf16
};

}  // namespace lc::backends::cpu
