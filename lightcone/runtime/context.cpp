#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "lightcone/core/graph_impl.h"
#include "lightcone/device/host_device.h"
#include "lightcone/runtime/context_internal.h"
#include "lightcone/runtime/names.h"

namespace lc {

Context::Impl::Impl(std::shared_ptr<const Program::Impl> p, std::shared_ptr<Device> on)
    : program(std::move(p)),
      device(std::move(on)),
      own_plan(device->workers() == program->workers ? MemoryPlan() : make_plan(graph(), device->workers())),
      values(graph(), program->order, program->parts, largest(), *device) {
  const std::size_t nodes = graph().size();
  input.resize(nodes);
  bound_elements.assign(nodes, -1);
  is_state.resize(nodes);
  is_user_memory.resize(nodes);
  bytes.resize(nodes), arena_at.resize(nodes);
  take_weights();
  if (largest().state_block) states = device->allocate_sparse(largest().state_block);
  for (const Assignment& a : graph().assignments()) {
    is_state[a.state] = true;
    const BufferSlice first = std::exchange(input[a.state], BufferSlice{});  // loaded: the initial value
    if (in_block(a.state) || first) {
      const BufferSlice own = buffer(a.state, largest().nodes[a.state].bytes);
      if (first) device->copy(own, first, largest().nodes[a.state].bytes);
    }
  }
  dims.resize(program->dims.size());
  prepare_launches();
  if (program->symbols.empty()) refresh();
}

// Takes the program's current weights, except for states that this context has already and for inputs that the user set
// here.
void Context::Impl::take_weights() {
  loaded = {program->prepared_values};
  for (const auto& [id, w] : program->weights) {
    if ((is_state[id] || bound_elements[id] >= 0 || is_user_memory[id]) && input[id]) continue;
    input[id] = program->fixed(id);
    loaded.push_back(w.buffer);
  }
  for (const NodeId id : program->prepared_order) input[id] = program->fixed(id);
  loads = program->loads;
  moved = true;
}

void Context::Impl::prepare_launches() {
  sizes.resize(graph().size());
  std::size_t all = 0;
  for (NodeId id : program->order) {
    sizes[id].resize(program->sizes[id].size());
    if (graph()[id].op == Op::Kernel) all += graph()[id].in.size();
  }
  operands.resize(all);
  BufferSlice* in = operands.data();
  for (NodeId id : program->order) {
    const Node& n = graph()[id];
    launch_at.push_back(launches.size());
    if (n.op != Op::Kernel) continue;
    launches.push_back({.kernel = n.kernel.get(),
                        .in = {in, n.in.size()},
                        .out = {},
                        .sizes = sizes[id],
                        .scratch = {},
                        .concurrent_with_next = largest().fork[id] != id});
    in += n.in.size();
  }
  launch_at.push_back(launches.size());
  record();
}

void Context::Impl::record() {
  const bool on_threads = profiler && device->parallel();
  recording = (on_threads ? host_device(profiler) : device)->record(launches);
  moved = true;
}

// Returns the input of this name, or nullopt if nothing reads it. Throws Error for an input of which a prepared value
// was made at load time.
std::optional<NodeId> Context::Impl::given_id(const char* op, std::string_view name) const {
  const std::optional<NodeId> id = program->find_input(op, name);
  if (!id) return id;
  for (NodeId p : program->prepared_order)
    for (const Edge& e : graph()[p].in)
      if (e.node == *id) throw Error(op, str_cat("'", name, "' is a parameter: give it to Program::load"));
  return id;
}

// Returns true for a state with constant sizes.
bool Context::Impl::in_block(NodeId id) const {
  const Shape& s = graph()[id].shape;
  return is_state[id] && std::all_of(s.begin(), s.end(), [](const Dim& d) { return d.is_constant(); });
}

// Returns memory of at least this many bytes, owned by this context, for an input or a state. A state keeps its value.
BufferSlice Context::Impl::buffer(NodeId id, std::size_t bytes) {
  if (in_block(id) && states) bind_buffer(id, {states.get(), largest().nodes[id].offset});
  else grow(id, bytes);  // even if empty: a loop without iterations may still load element 0
  is_user_memory[id] = false;
  user_buffers.erase(id);
  device_copies.erase(id);
  return input[id];
}

void Context::Impl::bind_buffer(NodeId id, BufferSlice at) {
  moved = moved || input[id] != at;
  input[id] = at;
}

void Context::Impl::grow(NodeId id, std::size_t bytes) {
  std::unique_ptr<Buffer>& m = owned[id];
  const std::size_t have = m ? m->size() : 0;
  if (!m || have < bytes) {
    const std::size_t most = largest().nodes[id].bytes;
    std::unique_ptr<Buffer> larger;
    try {
      larger = device->allocate(std::min(most, std::max(bytes, 2 * have)));
    } catch (const Error&) {
      const Node& n = graph()[id];
      std::string names;
      for (const auto& [name, b] : product(n.shape).symbols())
        names += str_cat(names.empty() ? ": lower '" : ", '", name, "'");
      throw Error("memory",
                  str_cat("'", n.name, "' of shape ", str(n.shape), " takes ", bytes, " bytes (", most,
                          " for the largest sizes), which ",
                          device->shares_host_memory() ? "the system" : device->name(), " has not to give", names));
    }
    if (m) device->copy({larger.get(), 0}, {m.get(), 0}, have);
    bind_buffer(id, {larger.get(), 0});
    m = std::move(larger);
  }
  bind_buffer(id, {m.get(), 0});
}

void Context::Impl::upload(NodeId id, const void* from) {
  const std::size_t size = bytes_now(id);
  if (!in_block(id)) grow(id, size);
  if (size) device->copy_in(input[id], from, size);
}

Context::Context(const Program& p, std::shared_ptr<Parallel> parallel) {
  std::shared_ptr<Device> device = p.impl().device;
  if (parallel && !device->parallel())
    throw Error("context",
                str_cat("the program runs on ", device->name(), ", which has no use for the host's threads"));
  if (parallel) device = host_device(std::move(parallel));
  impl_ = std::make_unique<Impl>(p.impl_, std::move(device));
}
Context::Context(const Program& p, std::shared_ptr<Device> device) {
  const Device& own = *p.impl().device;
  if (!device) device = p.impl().device;
  if (device.get() != &own && !(device->parallel() && own.parallel()))
    throw Error("context", str_cat("the program was compiled for ", own.name(), " and cannot run on ", device->name(),
                                   ": compile the graph for that"));
  impl_ = std::make_unique<Impl>(p.impl_, std::move(device));
}
Context::Context(Context&&) noexcept = default;
Context& Context::operator=(Context&&) noexcept = default;
Context::~Context() = default;

Context& Context::bind(std::string_view symbol, std::int64_t value) {
  const Program::Impl& p = *impl_->program;
  check_symbol("bind", p.known_symbols, symbol, value);
  if (!p.symbols.contains(symbol)) return *this;  // optimised away: any value will do
  const auto have = impl_->bindings.find(symbol);
  if (have != impl_->bindings.end()) {
    impl_->stale = impl_->stale || have->second != value;
    have->second = value;
  } else {
    impl_->bindings.emplace(symbol, value);
    impl_->stale = true;
  }
  return *this;
}

namespace {

// Integers may be given as f32 or i64. A number that the type cannot represent is an Error, because it would silently
// become another number.
template <class T>
void check_held(const Node& n, std::span<const T> values) {
  if (is_float(n.dtype) || n.dtype == DType::Bool) return;
  const auto held = [&](T v) {
    if constexpr (std::is_floating_point_v<T>)
      if (!(v >= -0x1p63f && v < 0x1p63f) || v != std::trunc(v))
        return n.dtype == DType::U64 && v >= 0x1p63f && v < 0x1p64f;
    const auto whole = static_cast<std::int64_t>(v);
    std::array<std::byte, sizeof whole> bytes;
    store_i64(bytes.data(), n.dtype, 0, whole);
    return load_i64(bytes.data(), n.dtype, 0) == whole && (n.dtype != DType::U64 || whole >= 0);
  };
  const auto bad = std::ranges::find_if_not(values, held);
  if (bad != values.end())
    throw Error("set", str_cat("'", n.name, "' is ", name(n.dtype), " and does not hold ", *bad, ", its element ",
                               bad - values.begin()));
}

template <class T>
void fill(void* to, DType type, std::span<const T> values) {
  for (std::size_t k = 0; k < values.size(); ++k)
    if constexpr (std::is_floating_point_v<T>) store_f64(to, type, k, values[k]);
    else store_i64(to, type, k, values[k]);
}

// Returns the bytes of this many elements. Throws Error if there are never so many.
std::size_t check_room(const Node& n, std::size_t have, std::size_t most) {
  if (have > most / size_of(n.dtype))
    throw Error("set", str_cat("'", n.name, "' of shape ", str(n.shape), " takes at most ", most / size_of(n.dtype),
                               " elements, not ", have));
  return have * size_of(n.dtype);
}

}  // namespace

template <class T>
void Context::Impl::set(std::string_view name, std::span<const T> values) {
  const std::optional<NodeId> id = given_id("set", name);
  if (!id) return;
  const Node& n = graph()[*id];
  const std::size_t size = check_room(n, values.size(), largest().nodes[*id].bytes);
  check_held(n, values);
  const BufferSlice to = buffer(*id, size);
  if (device->shares_host_memory()) {
    device->synchronise();
    fill(to.host(), n.dtype, values);
  } else if (size) {
    std::vector<std::byte> bytes(size);
    fill(bytes.data(), n.dtype, values);
    device->copy_in(to, bytes.data(), size);
  }
  bound_elements[*id] = static_cast<std::int64_t>(values.size());
}

Context& Context::set(std::string_view input, std::span<const float> values) {
  return impl_->set(input, values), *this;
}
Context& Context::set(std::string_view input, std::span<const std::int64_t> values) {
  return impl_->set(input, values), *this;
}
Context& Context::set(const Tensor& input, std::span<const float> values) {
  if (input.node().op != Op::Input) throw Error("set", "only an input can be set");
  return set(std::string_view(input.node().name), values);
}
Context& Context::set(std::string_view input, const ArrayView& array) {
  const std::optional<NodeId> id = impl_->given_id("set", input);
  // An input that no computed value reads tells its sizes, too.
  const Node& n = id ? impl_->graph()[*id] : impl_->program->known.find(input)->second;
  check_array("set", n, array);
  for (std::size_t k = 0; k < array.shape.size(); ++k)
    if (const auto symbol = n.shape[k].name()) bind(*symbol, array.shape[k]);
  return set_bytes(input, array.bytes.data(), array.bytes.size());
}
Context& Context::set(const Tensor& input, const ArrayView& array) {
  if (input.node().op != Op::Input) throw Error("set", "only an input can be set");
  return set(std::string_view(input.node().name), array);
}
Context& Context::set_bytes(std::string_view input, const void* data, std::size_t bytes) {
  const std::optional<NodeId> id = impl_->given_id("set_bytes", input);
  if (!id) return *this;
  const Node& n = impl_->graph()[*id];
  if (bytes % size_of(n.dtype) != 0)
    throw Error("set",
                str_cat(bytes, " bytes for '", n.name, "' are no whole number of elements of ", size_of(n.dtype)));
  if (!data && bytes) throw Error("set", str_cat("the data of '", n.name, "' have no address"));
  const std::size_t elements = bytes / size_of(n.dtype);
  check_room(n, elements, impl_->largest().nodes[*id].bytes);
  const BufferSlice to = impl_->buffer(*id, bytes);
  if (bytes) impl_->device->copy_in(to, data, bytes);
  impl_->bound_elements[*id] = static_cast<std::int64_t>(elements);
  return *this;
}
Context& Context::use(std::string_view input, void* data, std::size_t bytes) {
  const std::optional<NodeId> id = impl_->given_id("use", input);
  if (!id) return *this;
  const std::size_t most = impl_->largest().nodes[*id].bytes;
  if (bytes < most) throw Error("use", str_cat("'", input, "' needs ", most, " bytes, not ", bytes));
  check_data("use", impl_->graph()[*id], data, bytes);
  std::unique_ptr<Buffer> there = impl_->device->lend(data, bytes);
  if (!there) impl_->buffer(*id, 0);
  impl_->bound_elements[*id] = -1;
  impl_->is_user_memory[*id] = there != nullptr;
  if (!there) {
    impl_->device_copies[*id] = data;
    return *this;
  }
  impl_->bind_buffer(*id, {there.get(), 0});
  impl_->user_buffers[*id] = std::move(there);
  impl_->owned.erase(*id);
  return *this;
}

Context& Context::use(std::string_view input, std::span<const std::byte> data) {
  if (const std::optional<NodeId> id = impl_->given_id("use", input))
    for (const Assignment& a : impl_->graph().assignments())
      if (a.state == *id)
        throw Error("use", str_cat("'", input, "' is a state, which each run writes, and the memory given is const"));
  return use(input, const_cast<std::byte*>(data.data()), data.size());
}

void Context::clear_states() {
  Impl& c = *impl_;
  for (const Assignment& a : c.graph().assignments()) {
    const auto own = c.owned.find(a.state);
    const auto copied = c.device_copies.find(a.state);
    const std::size_t most = c.largest().nodes[a.state].bytes;
    if (c.input[a.state]) c.device->zero(c.input[a.state], own != c.owned.end() ? own->second->size() : most);
    if (copied != c.device_copies.end()) std::memset(copied->second, 0, most);
  }
}

MemoryPlan Context::plan() const { return make_plan(impl_->graph(), impl_->device->workers(), impl_->bindings); }
std::size_t Context::memory_bytes() const {
  std::size_t all = impl_->values.committed() + (impl_->states ? impl_->states->size() : 0);
  for (const auto& [id, m] : impl_->owned) all += m->size();
  return all;
}

// ---- results ----------------------------------------------------------------------------------

// Returns the location of a value after checking that it is available. For a state that is a result, this is its value
// from before the run.
BufferSlice Context::Impl::readable(NodeId id, bool before) {
  const std::size_t need = bytes_now(id);
  const auto missing = [&](const char* what) {
    const auto root = std::ranges::find(graph().roots(), id, [](const Root& r) { return r.edge.node; });
    const std::string called = root == graph().roots().end() ? describe(graph()[id]) : root->name;
    throw Error("get", str_cat("'", called, "' of shape ", str(graph()[id].shape), " ", what));
  };
  const bool of_sizes = !std::ranges::all_of(graph()[id].shape, &Dim::is_constant);
  if (ran && stale && of_sizes && plan().nodes[id].where == Placement::Where::Arena)
    missing("has no value for these sizes yet, which were bound after the last run: run() again");
  if (before)
    for (const auto& [state, offset] : plan().snapshots)
      if (state == id) {
        if (!values.has_room(id, need)) missing("has no value for these sizes yet: run() first");
        return values.at(offset);
      }
  const Placement& p = plan().nodes[id];
  if (p.where == Placement::Where::Arena && !ran) throw Error("get", "there are no results yet: run() first");
  if (p.where == Placement::Where::Arena && !values.has_room(id, need))
    missing("has no value for these sizes yet: run() first");
  if (p.where == Placement::Where::Input) {
    if (is_state[p.input] && !is_user_memory[p.input] && !in_block(p.input)) grow(p.input, need);
    if (const auto from = device_copies.find(p.input); from != device_copies.end()) upload(from->first, from->second);
    if (!input[p.input]) missing("has no value: set or load it");
    const auto elements = static_cast<std::int64_t>(need / size_of(graph()[id].dtype));
    if (p.input == id && bound_elements[id] >= 0 && bound_elements[id] < elements)
      missing("was set for other sizes: set it for these");
  }
  return place(id);
}
Value Context::Impl::read_checked(const Edge& e, bool before) { return read(e, readable(e.node, before)); }

const Edge& Context::Impl::output(std::string_view name) const {
  const auto it = program->outputs.find(name);
  if (it == program->outputs.end()) {
    std::vector<std::string_view> have;
    for (const auto& [output, root] : program->outputs) have.push_back(output);
    const std::string names = names_near(name, std::move(have));
    throw Error("get", str_cat("the program has no output '", name, "'; retrieve() it before compiling",
                               names.empty() ? "" : " (" + names + ")"));
  }
  return graph().roots()[it->second].edge;
}

Value Context::value(std::string_view output) const {
  const auto state = impl_->program->inputs.find(output);
  if (!impl_->program->outputs.contains(output) && state != impl_->program->inputs.end())
    return impl_->read_checked({state->second, View(impl_->graph()[state->second].shape)}, false);
  return impl_->read_checked(impl_->output(output), true);
}
std::vector<double> Context::get_f64(std::string_view output) const {
  const Value v = value(output);
  std::vector<double> r(v.size());
  for (std::size_t k = 0; k < r.size(); ++k) r[k] = v.at(k);
  return r;
}
std::vector<float> Context::get(std::string_view output) const {
  const auto v = get_f64(output);
  return {v.begin(), v.end()};
}
std::vector<float> Context::get(const Tensor& t) const {
  const auto& roots = impl_->program->user_roots;
  for (std::size_t k = 0; k < roots.size(); ++k)
    if (roots[k] == t.edge()) return get(impl_->graph().roots()[k].name);
  throw Error("get", "the tensor is not an output; retrieve() it before compiling");
}
std::vector<std::int64_t> Context::get_i64(std::string_view output) const {
  const Value v = value(output);
  if (!is_float(v.dtype)) return v.i;
  std::vector<std::int64_t> r;
  for (const double x : v.f) {
    if (!(x >= -0x1p63 && x < 0x1p63) || x != std::trunc(x))
      throw Error("get_i64", str_cat("'", output, "' is ", name(v.dtype), " and holds ", x, ", its element ", r.size(),
                                     ", which is no whole number: get() gives it"));
    r.push_back(static_cast<std::int64_t>(x));
  }
  return r;
}
// Reads one element without allocating, since training reads a loss after each step.
float Context::scalar(std::string_view output) const {
  if (impl_->program->outputs.contains(output) && impl_->device->shares_host_memory()) {
    const Edge& e = impl_->output(output);
    const DType type = impl_->graph()[e.node].dtype;
    if (e.view.identity() && impl_->bytes_now(e.node) == size_of(type)) {
      const HostView bytes(*impl_->device, impl_->readable(e.node, true), size_of(type));
      return static_cast<float>(load_f64(bytes.data(), type, 0));
    }
  }
  const auto v = get(output);
  if (v.size() != 1) throw Error("scalar", str_cat("'", output, "' has ", v.size(), " elements"));
  return v[0];
}
std::span<const std::byte> Context::bytes(std::string_view output) const {
  const auto input = impl_->program->inputs.find(output);
  const bool of_input = !impl_->program->outputs.contains(output) && input != impl_->program->inputs.end();
  const Edge e = of_input ? Edge{input->second, View(impl_->graph()[input->second].shape)} : impl_->output(output);
  if (!e.view.identity()) throw Error("bytes", str_cat("the output '", output, "' is a view; use get()"));
  const std::size_t size = impl_->bytes_now(e.node);
  HostView bytes(*impl_->device, impl_->readable(e.node, !of_input), size);
  if (impl_->device->shares_host_memory()) return {bytes.data(), size};
  return {impl_->shown.insert_or_assign(e.node, std::move(bytes)).first->second.data(), size};
}
std::vector<std::int64_t> Context::shape(std::string_view output) const {
  return numbers(impl_->output(output).view.shape(), impl_->bindings);
}
void Context::profile(bool on) {
  Impl& c = *impl_;
  c.profiler = on ? std::make_shared<Profiler>(c.graph(), c.plan(), c.program->order, c.device->parallel()) : nullptr;
  c.record();
}
Profile Context::profile() const {
  if (!impl_->profiler) throw Error("profile", "nothing was measured: switch it on with profile(true), then run()");
  Profile found = impl_->profiler->result();
  found.notes = impl_->program->notes();
  return found;
}

}  // namespace lc
