// What a Context owns. Included by context.cpp and context_run.cpp only.
#pragma once

#include "lightcone/device/fork.h"
#include "lightcone/runtime/profile/profiler.h"
#include "lightcone/runtime/program_internal.h"
#include "lightcone/runtime/value_memory.h"

namespace lc {

struct Context::Impl {
  Impl(std::shared_ptr<const Program::Impl> p, std::shared_ptr<Parallel> workers);

  const std::shared_ptr<const Program::Impl> program;
  const std::shared_ptr<Parallel> parallel;
  MemoryPlan own_plan;  // when this context has another number of workers
  ValueMemory values;   // in flight
  Memory states;        // those whose sizes are numbers, one behind the other, for large pages
  std::map<NodeId, Memory> owned;   // other states, and inputs this context holds
  std::vector<const void*> input;   // by NodeId
  std::vector<std::int64_t> given;  // by NodeId: elements set, -1 for whatever the size
  std::vector<bool> is_state, borrowed;  // by NodeId; the caller's memory
  Bindings bindings;
  bool stale = true;
  std::vector<std::int64_t> dims;
  std::vector<std::vector<std::int64_t>> sizes;  // by NodeId
  std::vector<std::size_t> bytes;                // by NodeId: of what a run computes, and of states
  std::vector<const void*> operands;             // of the kernels that run together
  std::vector<Divided> together;
  std::unique_ptr<Profiler> profiler;  // while profiling

  const Graph& graph() const { return program->graph; }
  const MemoryPlan& plan() const { return values.plan(); }
  const MemoryPlan& largest() const { return own_plan.nodes.empty() ? program->plan : own_plan; }
  std::optional<NodeId> given_id(const char* op, std::string_view name) const;
  void* buffer(NodeId id, std::size_t bytes);
  void grow(NodeId id, std::size_t bytes);
  bool in_block(NodeId id) const;  // of states
  template <class T>
  void set(std::string_view input, std::span<const T> values);

  void refresh();
  std::size_t bytes_now(NodeId id) const;
  void check_inputs() const;
  template <class Done>
  void run(const Done& done);
  void run_node(NodeId id);
  std::size_t run_together(std::size_t k);
  void interpret_node(NodeId id);
  void commit_states();

  std::byte* place(NodeId id) const {
    const Placement& p = plan().nodes[id];
    if (p.where == Placement::Where::Arena) return values.data() + p.offset;
    return static_cast<std::byte*>(const_cast<void*>(input[p.input]));
  }
  Value read(const Edge& e) const;
  const std::byte* readable(NodeId id, bool before);  // checked; for a state: what it held before the run
  Value read_checked(const Edge& e, bool before);
  const Edge& output(std::string_view name) const;
};

}  // namespace lc
