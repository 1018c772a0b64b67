#include <algorithm>

#include "lightcone/core/composite.h"
#include "lightcone/core/graph_impl.h"
#include "lightcone/device/halves.h"
#include "lightcone/runtime/context_internal.h"
#include "lightcone/runtime/nan.h"

namespace lc {
namespace {

constexpr std::int64_t kMost = std::int64_t{1} << 62;

std::int64_t times(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(std::min<__int128>(__int128{a} * b, kMost));
}

[[noreturn]] void too_small(const Node& n) {
  throw Error("run", str_cat("an extent of ", str(n.shape), " is negative for these sizes"), n.where);
}
[[noreturn]] void too_large(const Node& n) {
  throw Error("run", str_cat(str(n.shape), " is larger than planned for these sizes"), n.where);
}

}  // namespace

// Returns the bytes of a value for the bound sizes.
std::size_t Context::Impl::bytes_now(NodeId id) const {
  const Node& n = graph()[id];
  auto size = static_cast<std::int64_t>(size_of(n.dtype));
  for (const Dim& d : n.shape) {
    const std::int64_t extent = d.eval(bindings);
    if (extent < 0) too_small(n);
    size = times(size, extent);
  }
  if (size > static_cast<std::int64_t>(largest().nodes[id].bytes)) too_large(n);
  return static_cast<std::size_t>(size);
}

void Context::Impl::refresh() {
  moved = true;
  for (const auto& [name, b] : program->symbols)
    if (!bindings.contains(name)) throw Error("run", str_cat("the size '", name, "' has no value: bind it"));
  for (std::size_t k = 0; k < dims.size(); ++k) dims[k] = program->dims[k].eval(bindings);
  for (const SliceLimit& s : program->slices) {
    const std::int64_t count = s.extent.eval(bindings), first = s.first.eval(bindings), room = s.room.eval(bindings);
    if (count > 0 && (first < 0 || room < 0))
      throw Error("slice",
                  str_cat(count, " elements from ", first, " on leave axis ", s.axis, " of ", str(s.of), " by ",
                          std::max(-first, -room), " for these sizes"),
                  {s.where.file, s.where.line});
  }
  const auto measure = [&](NodeId id) {
    const Node& n = graph()[id];
    auto size = static_cast<std::int64_t>(size_of(n.dtype));
    for (std::size_t k : program->shapes[id]) {
      if (dims[k] < 0) too_small(n);
      size = times(size, dims[k]);
    }
    if (size > static_cast<std::int64_t>(largest().nodes[id].bytes)) too_large(n);
    bytes[id] = static_cast<std::size_t>(size);
  };
  for (NodeId id : program->order) {
    for (std::size_t k = 0; k < sizes[id].size(); ++k) sizes[id][k] = dims[program->sizes[id][k]];
    measure(id);
  }
  for (NodeId id : program->parts) measure(id);
  for (const Assignment& a : graph().assignments()) {
    measure(a.state);
    if (!is_user_memory[a.state] && !in_block(a.state)) grow(a.state, bytes[a.state]);
  }
  values.fit(bindings, bytes);
  for (const NodeId id : program->order) arena_at[id] = plan().nodes[id].offset;
  for (const NodeId id : program->parts)  // the offset of a part may depend on sizes (Kernel::part())
    arena_at[id] = arena_at[graph()[id].in[0].node] + static_cast<std::size_t>(dims[program->sizes[id][1]]);
  stale = false;
}

void Context::Impl::check_inputs() const {
  for (const auto& [name, id] : program->inputs) {
    if (!program->prepared.resident[id]) continue;
    if (!input[id]) throw Error("run", str_cat("input '", name, "' has no value: set or load it"));
    if (bound_elements[id] < 0) continue;
    std::int64_t want = 1;
    for (std::size_t k : program->shapes[id]) want = times(want, dims[k]);
    if (want != bound_elements[id])
      throw Error("run", str_cat("input '", name, "' of shape ", str(graph()[id].shape), " needs ", want,
                                 " elements for these sizes, not ", bound_elements[id]));
  }
  if (!ran)  // states start at zero, but a model whose weights are all zero is a mistake
    for (const Assignment& a : graph().assignments())
      if (const Node& n = graph()[a.state];
          n.parameter && !program->weights.contains(a.state) && bound_elements[a.state] < 0 && !is_user_memory[a.state])
        throw Error("run", str_cat("the parameter '", n.name,
                                   "' has no value: a Trainer gives it the first one, Program::load() that of a file"));
  for (NodeId id : program->prepared_order)
    if (!input[id])
      throw Error("run", "a parameter has no value: load all of them into the program before making contexts",
                  graph()[id].where);
}

Value Context::Impl::read(const Edge& e, BufferSlice at) const {
  const Node& n = graph()[e.node];
  const HostView bytes(*device, at, bytes_now(e.node));
  return look_through(read_value(bytes.data(), n.dtype, numbers(n.shape, bindings)), e.view, bindings);
}

void Context::Impl::write(const Value& v, BufferSlice to) const {
  if (device->shares_host_memory()) {
    device->synchronise();
    write_value(v, to.host());
    return;
  }
  std::vector<std::byte> bytes(v.size() * size_of(v.dtype));
  write_value(v, bytes.data());
  if (!bytes.empty()) device->copy_in(to, bytes.data(), bytes.size());
}

void Context::Impl::interpret_node(NodeId id) {
  const Node& n = graph()[id];
  const OpScope scope(n.where);
  const auto behind = [](BufferSlice p, std::int64_t bytes) {
    return BufferSlice{p.buffer, p.offset + static_cast<std::size_t>(bytes)};
  };
  if (n.op == Op::Result) {  // it is a part of the value that holds all results
    const NodeId all = n.in[0].node;
    const auto at = result_offsets(graph()[all].results)[n.axis];
    return device->copy(place(id), behind(place(all), at), bytes_now(id));
  }
  std::vector<Value> in;
  for (const Edge& e : n.in) in.push_back(read(e));
  const Value v = evaluate(n, in, bindings, Rounding::Storage);
  if (v.parts.empty()) return write(v, place(id));
  const std::vector<std::int64_t> at = result_offsets(n.results);
  for (std::size_t k = 0; k < v.parts.size(); ++k) write(v.parts[k], behind(place(id), at[k]));
}

// Updates buffers and sizes of all launches for the recording.
void Context::Impl::place_launches() {
  BufferSlice* in = operands.data();
  Launch* l = launches.data();
  for (const NodeId id : program->order) {
    const Node& n = graph()[id];
    if (n.op != Op::Kernel) continue;
    for (const Edge& e : n.in) *in++ = place(e.node);
    l->out = place(id);
    l->scratch = values.at(plan().scratch[id]);
    ++l;
  }
  recording->update();
  moved = false;
}

void Context::Impl::commit_states() {
  bool views = false;
  for (const Assignment* a : plan().copies)
    views = views || !a->next.view.identity() || graph()[a->next.node].op == Op::Input;
  if (!views) {
    for (const Assignment* a : plan().copies) device->copy(input[a->state], place(a->next.node), bytes[a->state]);
    return;
  }
  std::vector<Value> next;  // every next value is read before a state is written
  for (const Assignment* a : plan().copies) next.push_back(read(a->next));
  for (std::size_t k = 0; k < next.size(); ++k) write(next[k], input[plan().copies[k]->state]);
}

// Calls `done` after each node; every kernel is then launched separately.
template <class Done>
void Context::Impl::run(const Done& done) {
  constexpr bool kWatched = !std::is_same_v<Done, std::nullptr_t>;
  if (loads != program->loads) take_weights();
  if (stale) refresh();
  check_inputs();
  for (const auto& [id, from] : device_copies) upload(id, from);
  if (moved) place_launches();
  if (profiler) profiler->begin_run(bindings);
  for (const auto& [state, offset] : plan().snapshots) device->copy(values.at(offset), input[state], bytes[state]);
  const auto& order = program->order;
  const auto is_kernel = [&](std::size_t k) { return launch_at[k + 1] > launch_at[k]; };
  try {
    for (std::size_t k = 0, end = 0; k < order.size(); k = end) {
      end = k + 1;
      if (!kWatched && !profiler && is_kernel(k))
        while (end < order.size() && is_kernel(end)) ++end;
      if (profiler) profiler->begin_kernel();
      if (is_kernel(k)) recording->run(launch_at[k], launch_at[end]);
      else interpret_node(order[k]);
      if (profiler) device->synchronise(), profiler->end_kernel(k);
      if constexpr (kWatched) done(order[k]);
    }
  } catch (...) {
    for (const Launch& l : launches)
      if (const auto* half = dynamic_cast<const Half*>(l.kernel)) half->abandon();
    throw;
  }
  commit_states();
  for (const auto& [id, to] : device_copies)
    if (is_state[id]) device->copy_out(to, input[id], bytes[id]);
  if (profiler) profiler->end_run();
  ran = true;
}

void Context::Impl::check_indices() {
  for (const IndexCheck& c : program->checks) {
    const Value low = read(output(c.low)), high = read(output(c.high));
    if (const auto problem = c.problem(low.i[0], high.i[0], c.below.eval(bindings)))
      throw Error(c.where.op, *problem, c.where);
  }
}

Context& Context::run() {
  impl_->run(nullptr);
  if (!impl_->program->checks.empty()) impl_->check_indices();
  return *this;
}

Context& Context::run_checked(Infinities infinities) {
  Impl& c = *impl_;
  const Graph& g = c.graph();
  NotFinite seen(g);
  const auto look = [&](NodeId id) { seen.look(id, c.view(id).data(), c.bytes_now(id) / size_of(g[id].dtype)); };
  if (c.loads != c.program->loads) c.take_weights();
  if (c.stale) c.refresh();
  c.check_inputs();
  for (const auto& [id, from] : c.device_copies) c.upload(id, from);
  for (NodeId id = 0; id < g.size(); ++id)
    if (c.input[id]) look(id);
  c.run([&](NodeId id) {
    look(id);
    for (NodeId part : c.program->parts)
      if (g[part].in[0].node == id) look(part);
  });
  for (const Root& r : g.roots())
    if (const NodeId id = r.edge.node; seen.nan(id) || (infinities == Infinities::Refused && seen.infinite(id)))
      throw Error("run", str_cat("the output '", r.name, "' ", seen.where_from(id)));
  return *this;
}

}  // namespace lc
