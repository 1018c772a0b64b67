// What a Context owns. Included by the context*.cpp only.
#pragma once

#include "lightcone/runtime/profile/profiler.h"
#include "lightcone/runtime/program_internal.h"
#include "lightcone/runtime/value_memory.h"

namespace lc {

struct Context::Impl {
  Impl(std::shared_ptr<const Program::Impl> p, std::shared_ptr<Device> on);

  const std::shared_ptr<const Program::Impl> program;
  const std::shared_ptr<Device> device;  // before what lies in its memory
  MemoryPlan own_plan;                   // when this context has another number of workers
  ValueMemory values;                    // in flight
  std::unique_ptr<Buffer> states;  // those whose sizes are numbers, one behind the other; resident as far as written
  std::map<NodeId, std::unique_ptr<Buffer>> owned;         // other states, and inputs this context holds
  std::map<NodeId, std::unique_ptr<Buffer>> user_buffers;  // the caller's memory, where the device reads it,
  std::map<NodeId, void*> device_copies;                   // and where it has a copy
  std::vector<std::shared_ptr<Buffer>> loaded;             // what the program had when this context took it
  std::uint64_t loads = 0;                                 // and how often it had been loaded
  std::vector<BufferSlice> input;                          // by NodeId
  std::vector<std::int64_t> bound_elements;                // by NodeId: elements set, -1 for whatever the size
  std::vector<bool> is_state, is_user_memory;              // by NodeId; the caller's memory
  Bindings bindings;
  bool stale = true, ran = false;
  std::vector<std::int64_t> dims;
  std::vector<std::vector<std::int64_t>> sizes;  // by NodeId
  std::vector<std::size_t> bytes;                // by NodeId: of what a run computes, and of states
  std::vector<BufferSlice> operands;             // of all kernels
  std::vector<Launch> launches;                  // of all kernels, in order
  std::vector<std::size_t> launch_at;            // by place in program->order: the first one from there on
  std::unique_ptr<Recording> recording;
  bool moved = true;                   // places or sizes are not those that the recording knows
  std::shared_ptr<Profiler> profiler;  // while profiling

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
  void upload(NodeId id, const void* from);  // the caller's memory into the device's
  bool in_block(NodeId id) const;            // of states
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
    return p.where == Placement::Where::Arena ? values.at(p.offset) : input[p.input];
  }
  HostView view(NodeId id) const { return {*device, place(id), bytes_now(id)}; }
  Value read(const Edge& e) const { return read(e, place(e.node)); }
  Value read(const Edge& e, BufferSlice at) const;
  void write(const Value& v, BufferSlice to) const;
  BufferSlice readable(NodeId id, bool before);  // checked; for a state: what it held before the run
  Value read_checked(const Edge& e, bool before);
  const Edge& output(std::string_view name) const;
  std::map<NodeId, HostView> shown;  // what bytes() gave out
};

}  // namespace lc
