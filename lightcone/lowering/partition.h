// The cut: which values of a graph lie in memory, and what kind of kernel makes each of them.
//
// Everything starts inlined into its only reader. A value gets memory when it must (results, operands of matrix
// kernels, several readers) or when building a loop shows that inlining it would compute it too often; then the loops
// concerned are built again.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <variant>
#include <vector>

#include "lightcone/codegen/build.h"
#include "lightcone/lowering/contraction.h"
#include "lightcone/lowering/convolution.h"

namespace lc::lowering {

using Loop = codegen::Built;  // generated code
struct OpaqueKernel {};       // a composite, a result of one, or a kernel that was chosen before: operands are whole
// What makes a value.
using Task = std::variant<Loop, Contraction, Convolution, OpaqueKernel>;

// What a device gives to the cut.
struct PartitionRules {
  Machine machine = {};
  // What computes a sum of products: a contraction or a convolution that the device has a kernel for, or a loop.
  using Match = std::variant<std::monostate, Contraction, Convolution>;
  std::function<Match(const Graph& g, const Factors& f)> match;
  // Operations of one loop, where a reduction counts for `reduction`: building it and compiling it take time that grows
  // faster than its length.
  int max_loop_ops = 128, reduction_weight = 8;
  // The inner one of two reductions is a loop of its own where it makes more numbers: it is parallel then.
  std::int64_t inner_results = 256;
  // What depends on parameters alone and is read by something larger is computed at load up to this many numbers.
  std::int64_t prepared = 1 << 16;
  // From so many bytes on a value may be computed again where it is read, instead of being kept: see
  // Partition::rematerializes(). (From a sixteenth on where it takes one operation or two.) Not a matter of the
  // machine's caches, for bits depend on what is computed in one loop.
  std::int64_t recompute_threshold = 16 << 20;
  bool keep_rows = true;  // in the loops (codegen/schedule/rows.cpp); else the device does it, or does not
  // Values that the loop which makes `root` shall find in memory, where the device cannot run it as it was built; asked
  // until there are none.
  std::function<std::vector<NodeId>(NodeId root, const codegen::Built&)> must_materialize = {};
  // Operands and sizes of what may be fused behind a product.
  std::size_t epilogue_operands = 24, epilogue_sizes = 24;
  bool epilogue_of_any_type = false;  // what it makes need not be f32
};

// An elementwise loop run by the kernel that makes its operand, piece by piece, while the piece is still in the cache.
struct EpilogueLoop {
  NodeId producer = 0;
  std::vector<NodeId> operands;  // of the loop, `producer` among them
  std::vector<bool> same_index;
  codegen::Kernel kernel;  // a loop over rows around one over some columns
  // Which of the kernel's sizes are the first column and how many there are.
  std::size_t begin_size = 0, count_size = 0;
};

class Partition {
 public:
  Partition(const Graph& g, PartitionRules rules);

  const Graph& graph() const { return g_; }
  bool is_live(NodeId id) const { return live_[id]; }
  bool in_memory(NodeId id) const { return buffer_[id]; }
  bool varies(NodeId id) const { return varies_[id]; }  // depends on more than parameters that nothing assigns
  int readers(NodeId id) const;                         // kernels that read a value, and results that it is
  // The values that kernels make. What became part of another kernel is left out: see absorb().
  const std::set<NodeId>& results() const { return results_; }
  const Task& task(NodeId id) const { return tasks_.at(id); }
  template <class T>
  const T* get(NodeId id) const {
    const auto it = tasks_.find(id);
    return it == tasks_.end() ? nullptr : std::get_if<T>(&it->second);
  }
  std::vector<NodeId> operands(NodeId id) const;  // of a task, in the order in which its kernel reads them
  void absorb(NodeId id) { results_.erase(id); }

  // Elementwise loops that are the only reader of a contraction or a convolution, by the node they make.
  std::map<NodeId, EpilogueLoop> epilogues() const;

 private:
  bool trivial(NodeId id) const;
  bool rematerializes(NodeId id, const std::vector<int>& uses, const std::function<bool(NodeId)>& in_memory);
  void choose_buffers();
  void choose_prepared();
  void choose_narrowed();
  void decide_fusion();
  void build_loops();
  void count_readers();
  std::optional<EpilogueLoop> epilogue(Graph& rows, NodeId producer, NodeId consumer, const Dim& row) const;

  const Graph& g_;
  PartitionRules rules_;
  std::vector<bool> live_, buffer_, varies_, recomputed_;
  std::set<NodeId> results_;
  std::map<NodeId, Task> tasks_;
  std::map<NodeId, int> readers_;
};

}  // namespace lc::lowering
