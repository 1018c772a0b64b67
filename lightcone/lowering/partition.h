// The partition of a graph into kernels: which values are materialised, and what kind of kernel makes each of them.
//
// Every value starts fused into its only reader. A value is materialised when it must be (results, operands of matrix
// kernels, several readers) or when building a loop shows that fusing it would compute it too often; the loops
// concerned are then built again.
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
struct OpaqueKernel {};       // a composite, a result of one, or a kernel chosen earlier; its operands are contiguous
// How a value is made.
using Task = std::variant<Loop, Contraction, Convolution, OpaqueKernel>;

// The device's parameters of the partition.
struct PartitionRules {
  Machine machine = {};
  // Selects how a sum of products is computed: as a contraction or a convolution for which the device has a kernel, or
  // (for monostate) in a loop.
  using Match = std::variant<std::monostate, Contraction, Convolution>;
  std::function<Match(const Graph& g, const Factors& f)> match;
  // Most operations in one loop, where a reduction counts as `reduction_weight`. The time to build and compile a loop
  // grows faster than its length.
  int max_loop_ops = 128, reduction_weight = 8;
  // The inner one of two nested reductions becomes a loop of its own if it makes more numbers than this: it then runs
  // in parallel.
  std::int64_t inner_results = 256;
  // A value that depends on parameters alone and is read by a larger one is computed at load if it has at most this
  // many elements.
  std::int64_t prepared = 1 << 16;
  // Values of at least this many bytes may be recomputed in each reader instead of being kept (from 1/16 of it on if
  // that takes one or two operations): see Partition::rematerializes(). It is a constant and no cache size, because
  // results in their last bits depend on what is computed in one loop, and must not depend on the machine.
  std::int64_t recompute_threshold = 16 << 20;
  bool keep_rows = true;  // loops cache rows (codegen/schedule/rows.cpp); if false, the device decides about it
  // Returns the values that the loop of `root` must read from memory because the device cannot run the loop as it was
  // built. The loop is rebuilt until the list is empty.
  std::function<std::vector<NodeId>(NodeId root, const codegen::Built&)> must_materialize = {};
  // Most operands and sizes of a loop that is fused into a product as its epilogue.
  std::size_t epilogue_operands = 24, epilogue_sizes = 24;
  bool epilogue_of_any_type = false;  // an epilogue's result may have another type than f32
  // Otherwise: returns whether the kernel of a sum keeps it apart from its epilogue's result, which has this type. If
  // it does not, the epilogue overwrites the sum, and has its type.
  std::function<bool(NodeId sum, DType result)> sums_apart = {};
};

// An elementwise loop that the kernel of its operand runs on each piece of its result while the piece is in the cache.
struct EpilogueLoop {
  NodeId producer = 0;
  std::vector<NodeId> operands;  // operands of the loop, `producer` among them
  std::vector<bool> same_index;
  codegen::Kernel kernel;  // a loop over rows with a loop over some of the columns in it
  // Indices into the kernel's sizes: the first column, and the number of columns.
  std::size_t begin_size = 0, count_size = 0;
  // If the sum is apart from the result: the distance between its rows, in elements.
  std::optional<std::size_t> apart_size;
};

// Decides which values are materialised, and what kind of kernel makes each.
class Partition {
 public:
  Partition(const Graph& g, PartitionRules rules);

  const Graph& graph() const { return g_; }
  bool is_live(NodeId id) const { return live_[id]; }
  bool in_memory(NodeId id) const { return buffer_[id]; }
  bool varies(NodeId id) const { return varies_[id]; }  // depends on an input that is given for each run, or on a state
  int readers(NodeId id) const;                         // number of kernels that read a value, plus the results it is
  // Values that kernels make, without those merged into another kernel by absorb().
  const std::set<NodeId>& results() const { return results_; }
  const Task& task(NodeId id) const { return tasks_.at(id); }
  template <class T>
  const T* get(NodeId id) const {
    const auto it = tasks_.find(id);
    return it == tasks_.end() ? nullptr : std::get_if<T>(&it->second);
  }
  std::vector<NodeId> operands(NodeId id) const;  // operands of a value's kernel, in the order in which it reads them
  void absorb(NodeId id) { results_.erase(id); }

  // Returns the elementwise loops that are the only reader of a contraction or a convolution, by the node they make.
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
