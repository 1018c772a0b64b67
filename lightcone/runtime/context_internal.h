// The implementation of Context. Included by context.cpp and context_run.cpp only.
#pragma once

#include "lightcone/runtime/profile/profiler.h"
#include "lightcone/runtime/program_internal.h"
#include "lightcone/runtime/value_memory.h"

namespace lc {

struct Context::Impl {
  Impl(std::shared_ptr<const Program::Impl> p, std::shared_ptr<Device> on);

  const std::shared_ptr<const Program::Impl> program;
  const std::shared_ptr<Device> device;  // declared before the values in its memory
  MemoryPlan own_plan;                   // the plan if this context has another number of workers than the program
  ValueMemory values;                    // intermediate values
  std::unique_ptr<Buffer> states;        // block of all states with constant sizes; pages are resident once written
  std::map<NodeId, std::unique_ptr<Buffer>> owned;         // other states, and inputs whose memory this context owns
  std::map<NodeId, std::unique_ptr<Buffer>> user_buffers;  // the caller's memory, if the device can access it
  std::map<NodeId, void*> device_copies;                   // the caller's memory, if the device works on a copy
  std::vector<std::shared_ptr<Buffer>> loaded;             // the program's buffers that this context uses
  std::uint64_t loads = 0;                                 // value of Program::Impl::loads when `loaded` was taken
  std::vector<BufferSlice> input;                          // by NodeId
  std::vector<std::int64_t> bound_elements;                // by NodeId: number of elements set; -1: enough for any size
  std::vector<bool> is_state, is_user_memory;              // by NodeId; is_user_memory: `input` is the caller's memory
  Bindings bindings;
  bool stale = true, ran = false;
  std::vector<std::int64_t> dims;
  std::vector<std::vector<std::int64_t>> sizes;  // by NodeId
  std::vector<std::size_t> bytes;                // by NodeId, of values that a run computes and of states
  std::vector<std::size_t> arena_at;             // by NodeId: where a value that a run computes lies, for these sizes
  std::vector<BufferSlice> operands;             // operands of all kernels
  std::vector<Launch> launches;                  // one launch per kernel, in order
  std::vector<std::size_t> launch_at;  // by position in program->order: index of the first launch from there on
  std::unique_ptr<Recording> recording;
  bool moved = true;                   // buffers or sizes have changed since Recording::update()
  std::shared_ptr<Profiler> profiler;  // null unless profiling

  const Graph& graph() const { return program->graph; }
  const MemoryPlan& plan() const { return values.plan(); }
  const MemoryPlan& largest() const { return own_plan.nodes.empty() ? program->plan : own_plan; }
  std::optional<NodeId> given_id(const char* op, std::string_view name) const;
  void take_weights();
  void prepare_launches();
  void record();
  BufferSlice buffer(NodeId id, std::size_t bytes);
  void grow(NodeId id, std::size_t bytes);
  void bind_buffer(NodeId id, BufferSlice at);
  void upload(NodeId id, const void* from);  // copies the caller's memory to the device
  bool in_block(NodeId id) const;            // the state is in the block `states`
  template <class T>
  void set(std::string_view input, std::span<const T> values);

  void refresh();
  std::size_t bytes_now(NodeId id) const;
  void check_inputs() const;
  template <class Done>
  void run(const Done& done);
  void place_launches();
  void interpret_node(NodeId id);
  void commit_states();
  void check_indices();

  BufferSlice place(NodeId id) const {
    const Placement& p = plan().nodes[id];
    return p.where == Placement::Where::Arena ? values.at(arena_at[id]) : input[p.input];
  }
  HostView view(NodeId id) const { return {*device, place(id), bytes_now(id)}; }
  Value read(const Edge& e) const { return read(e, place(e.node)); }
  Value read(const Edge& e, BufferSlice at) const;
  void write(const Value& v, BufferSlice to) const;
  // Checks that a value is available. `before`: for a state, its value from before the run.
  BufferSlice readable(NodeId id, bool before);
  Value read_checked(const Edge& e, bool before);
  const Edge& output(std::string_view name) const;
  std::map<NodeId, HostView> shown;  // views that bytes() has returned
};

}  // namespace lc
