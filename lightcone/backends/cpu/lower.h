// Lowering of a graph to kernels of this CPU.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/backends/cpu/loops/epilogue.h"
#include "lightcone/backends/cpu/matcher.h"
#include "lightcone/backends/cpu/products/gather_mm.h"
#include "lightcone/codegen/kernel_names.h"
#include "lightcone/device/device.h"
#include "lightcone/lowering/attention.h"
#include "lightcone/lowering/emitter.h"

namespace lc::backends::cpu {

// Makes the kernel of a matched attention and sets its origin.
std::shared_ptr<Kernel> attention(const Graph& g, NodeId result, lowering::Attention match,
                                  const std::shared_ptr<Device>& device, const CpuOptions& options);
// Returns whether composite `n` has a CPU kernel, built in or the user's; if not, its definition is computed.
bool has_kernel(const Graph& g, const Node& n);
// Makes the kernel of a composite (scatter, argsort and others, or a user's) or of one result of a composite. The
// kernel reads whole, contiguous operands.
std::shared_ptr<Kernel> library_kernel(const Graph& g, const Node& n, const Target& target, Precision precision);

// A graph of kernel nodes.
struct Lowered {
  Graph graph;
  std::vector<std::shared_ptr<LoopKernel>> loops;  // loops without machine code yet
};
// Lowers `g`. Graphs that are compiled together share `names`, so equal loops are compiled once.
Lowered lower(const Graph& g, const std::shared_ptr<Device>& device, PassLog& log, const CpuOptions& options,
              codegen::KernelNames& names);

// Chooses a kernel for each task of the partition and puts it into a new graph.
class CpuEmitter final : public lowering::Emitter {
 public:
  CpuEmitter(const Graph& g, std::shared_ptr<Device> device, PassLog& log, const CpuOptions& o,
             codegen::KernelNames& names);
  Lowered run();

 private:
  struct Fused {
    NodeId producer;
    std::shared_ptr<Epilogue> epilogue;
  };
  void choose_packed();
  NodeId packed(Graph& dst, const MatmulPlan& c);
  NodeId packed(Graph& dst, const ConvPlan& c);
  std::shared_ptr<Kernel> read_gather_mm(Graph& dst, Draft& d, NodeId id, const GatherMmPlan& p);
  void fuse_epilogues();
  std::shared_ptr<Epilogue> behind(const Fused& f);
  void name_loop(LoopKernel& k);
  void emit_node(Graph& dst, NodeId id) override;
  bool waits(NodeId id) const override { return prologues_.contains(id); }
  std::shared_ptr<Kernel> read_convolution(Graph& dst, Draft& d, NodeId id, const ConvPlan& c);
  void note_tiles();
  std::shared_ptr<LoopKernel> loop_kernel(NodeId id);

  // Products that share a kernel (products.cpp).
  const MatmulPlan* matmul_of(NodeId result) const;
  void find_groups();
  std::vector<NodeId> available(const std::vector<NodeId>& group) const;
  std::optional<Dim> steps_of_a_row(const std::vector<NodeId>& results) const;
  void find_prologues();
  std::map<NodeId, std::string> shapes_of_products(const std::vector<NodeId>& results) const;
  void emit_products(Graph& dst, const std::vector<NodeId>& results);

  const CpuOptions& options_;
  const Machine& machine_;
  codegen::KernelNames& names_;
  Matcher matcher_;
  lowering::Partition partition_;
  std::map<NodeId, GatherMmPlan> gathers_;        // products whose matrices are chosen by indices
  std::map<NodeId, Fused> fused_;                 // by consumer
  std::map<NodeId, std::vector<NodeId>> groups_;  // products of the same rows of A, by the first result
  std::set<NodeId> prologues_;                    // loops that may run inside the products that read them
  std::vector<std::shared_ptr<LoopKernel>> loop_kernels_;
  std::map<std::pair<NodeId, WeightType>, NodeId> packed_;  // packed parameters in the new graph
  std::map<std::pair<NodeId, PackedFilters>, NodeId> filters_;
};

}  // namespace lc::backends::cpu
