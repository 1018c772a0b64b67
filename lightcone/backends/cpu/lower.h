// From a graph to kernels of this CPU.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "lightcone/backends/cpu/conv/conv.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/backends/cpu/loops/epilogue.h"
#include "lightcone/backends/cpu/products/matmul_kernel.h"
#include "lightcone/codegen/kernel_names.h"
#include "lightcone/device/device.h"
#include "lightcone/lowering/attention.h"
#include "lightcone/lowering/partition.h"

namespace lc::backends::cpu {

// Attention, with its origin.
std::shared_ptr<Kernel> attention(const Graph& g, NodeId result, lowering::Attention match,
                                  const std::shared_ptr<Device>& device, const CpuOptions& options);
// Composites as functions on whole, contiguous operands: scatter, argsort and the like, and users' own.
bool has_kernel(const Graph& g, const Node& n);  // else its definition is computed
std::shared_ptr<Kernel> library_kernel(const Graph& g, const Node& n, Isa isa);

struct Lowered {
  Graph graph;
  std::vector<std::shared_ptr<LoopKernel>> loops;  // that wait for their code
};
// Graphs that are compiled together share the names of their kernels.
Lowered lower(const Graph& g, const std::shared_ptr<Device>& device, PassLog& log, const CpuOptions& options,
              codegen::KernelNames& names);

// Chooses a kernel for each task of the cut and puts it into a new graph.
class Emitter {
 public:
  Emitter(const Graph& g, std::shared_ptr<Device> device, PassLog& log, const CpuOptions& o,
          codegen::KernelNames& names);
  Lowered run();

 private:
  struct Fused {
    NodeId producer;
    std::shared_ptr<Epilogue> epilogue;
  };
  lowering::PartitionRules rules();
  lowering::PartitionRules::Match match(const lowering::Factors& f, const std::vector<int>& uses);
  void choose_packed();
  NodeId packed(Graph& dst, const MatmulPlan& c);
  NodeId packed(Graph& dst, const ConvPlan& c);
  void fuse_epilogues();
  std::shared_ptr<Epilogue> behind(const Fused& f);
  std::shared_ptr<const Kernel> bind_to_device(std::shared_ptr<Kernel> kernel) const;
  void name_loop(LoopKernel& k);
  NodeId emit(Graph& dst, NodeId id);
  void note_tiles();
  std::shared_ptr<HostKernel> conv_kernel(const ConvPlan& c, std::shared_ptr<Epilogue> epilogue) const;
  std::shared_ptr<LoopKernel> loop_kernel(NodeId id);

  // products.cpp: products that share a kernel
  const MatmulPlan* matmul_of(NodeId result) const;
  void find_groups();
  std::vector<NodeId> available(const std::vector<NodeId>& group) const;
  std::optional<Dim> steps_of_a_row(const std::vector<NodeId>& results) const;
  void find_prologues();
  std::map<NodeId, std::string> shapes_of_products(const std::vector<NodeId>& results) const;
  void emit_products(Graph& dst, const std::vector<NodeId>& results);

  const Graph& g_;
  std::shared_ptr<Device> device_;
  PassLog& log_;
  const CpuOptions& options_;
  const Machine& machine_;
  codegen::KernelNames& names_;
  int tiles_wanted_ = 0;  // products that would be on tiles, if the system grants them
  bool nhwc_bf16_;        // convolutions with channels last are multiplied in bf16
  std::map<NodeId, MatmulPlan> matmuls_;
  std::map<NodeId, ConvPlan> convolutions_;
  lowering::Partition partition_;                 // made with match(), which fills the two above
  std::map<NodeId, Fused> fused_;                 // by consumer
  std::map<NodeId, std::vector<NodeId>> groups_;  // results of products of the same rows, by the first of them
  std::set<NodeId> prologues_;                    // loops that may run within the products that read them
  std::vector<std::shared_ptr<LoopKernel>> loop_kernels_;
  std::vector<NodeId> new_id_;
  std::map<std::pair<NodeId, WeightType>, NodeId> packed_;  // packed parameters in the new graph
  std::map<std::pair<NodeId, PackedFilters>, NodeId> filters_;
};

}  // namespace lc::backends::cpu
