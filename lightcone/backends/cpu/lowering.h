// How the graph is cut: the state that lower.cpp and lower_products.cpp share.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "lightcone/backends/cpu/conv.h"
#include "lightcone/backends/cpu/lower.h"

namespace lc::host {

class Lowering {
 public:
  Lowering(const Graph& g, std::shared_ptr<Parallel> p, PassLog& log, const CpuOptions& o, KernelNames& names,
            bool turned)
      : g_(g), parallel_(std::move(p)), log_(log), options_(o), machine_(*o.machine), names_(names), turned_(turned) {}
  Lowered run();

 private:
  bool is_library(const Node& n) const {
    return (info(n.op).kind == Kind::Structured && n.op != Op::Gather) || n.op == Op::Kernel;
  }
  void choose_buffers();
  void choose_prepared();
  bool trivial(NodeId id) const;
  void build_loops();
  void choose_packed();
  NodeId packed(Graph& dst, const Contraction& c);
  NodeId packed(Graph& dst, const Convolution& c);
  void count_readers();
  void find_epilogues();
  void find_groups();
  const Contraction* contraction_of(NodeId result) const;
  std::vector<NodeId> available(const std::vector<NodeId>& group) const;
  struct Fused {
    NodeId producer;
    std::shared_ptr<Epilogue> epilogue;
  };
  std::shared_ptr<Epilogue> behind(const Fused& f);
  std::optional<Dim> steps_of_a_row(const std::vector<NodeId>& results) const;
  void find_rows();
  void emit_products(Graph& dst, const std::vector<NodeId>& results);
  void name_loop(LoopKernel& k);
  NodeId emit(Graph& dst, NodeId id);

  const Graph& g_;
  std::shared_ptr<Parallel> parallel_;
  PassLog& log_;
  const CpuOptions& options_;
  const Machine& machine_;
  KernelNames& names_;
  bool turned_;  // are convolutions' channels last?
  std::vector<bool> live_, buffer_;
  std::vector<bool> varies_;  // depends on more than parameters
  std::set<NodeId> wanted_;   // reachable through the buffers that kernels really read
  std::map<NodeId, Contraction> contractions_;
  std::map<NodeId, Convolution> convolutions_;
  std::map<NodeId, int> readers_;                 // kernels that read a value, and results it is
  std::map<NodeId, Fused> fused_;                 // by consumer
  std::map<NodeId, std::vector<NodeId>> groups_;  // results of products of the same rows, by the first of them
  std::set<NodeId> waiting_;                      // loops that may be made within the products that read them
  std::map<NodeId, ir::Built> loops_;
  std::vector<std::shared_ptr<LoopKernel>> made_;
  std::vector<NodeId> to_;
  std::map<std::pair<NodeId, WeightType>, NodeId> packed_;  // packed parameters in the new graph
  std::map<std::pair<NodeId, PackedFilters>, NodeId> filters_;
};

}  // namespace lc::host
