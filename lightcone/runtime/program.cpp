#include "lightcone/runtime/program.h"

#include <algorithm>
#include <cstring>
#include <ranges>
#include <unordered_set>
#include <utility>

#include "lightcone/core/composite.h"
#include "lightcone/core/graph_impl.h"
#include "lightcone/device/host_device.h"
#include "lightcone/runtime/names.h"
#include "lightcone/runtime/program_internal.h"

namespace lc {

namespace {

std::string near(std::string_view wanted, const Symbols& known) {
  std::vector<std::string_view> names;
  for (const auto& [name, bounds] : known) names.push_back(name);
  return names_near(wanted, std::move(names));
}

}  // namespace

std::size_t Program::Impl::dim(const Dim& d) {
  const auto [it, fresh] = dim_places.try_emplace(d, dims.size());
  if (!fresh) return it->second;
  add_symbols(symbols, d);
  dims.push_back(d);
  return it->second;
}

void Program::Impl::dims_of(const View& v) {
  for (const Dim& d : v.base()) dim(d);
  for (const Move& m : v.moves())
    for (const Shape* s : {&m.to, &m.before})
      for (const Dim& d : *s) dim(d);
}

void Program::Impl::remember_names(const Graph& users) {
  std::unordered_set<Dim, HashDim> seen;
  const auto look = [&](const Dim& d) {
    if (!d.is_constant() && seen.insert(d).second) add_symbols(known_symbols, d);
  };
  const auto look_at = [&](const View& view) {
    for (const Dim& d : view.base()) look(d);
    for (const Move& m : view.moves())
      for (const Shape* s : {&m.to, &m.before})
        for (const Dim& d : *s) look(d);
  };
  for (NodeId id = 0; id < users.size(); ++id) {
    const Node& n = users[id];
    if (n.op == Op::Input) known.emplace(n.name, n);
    for (const Dim& d : n.shape) look(d);
    look(n.index);
    for (const Dim& d : extents(n.attributes)) look(d);
    for (const Edge& e : n.in) look_at(e.view);
  }
  for (const Root& r : users.roots()) look_at(r.edge.view), user_roots.push_back(r.edge);
  for (const Assignment& a : users.assignments()) look_at(a.next.view);
}

void Program::Impl::prepare() {
  const auto live = graph.live();
  prepared = find_prepared(graph);
  sizes.resize(graph.size());
  shapes.resize(graph.size());
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (!live[id]) continue;
    const Node& n = graph[id];
    for (const Dim& d : n.shape) shapes[id].push_back(dim(d));
    if (n.op == Op::Input) {
      inputs.emplace(n.name, id);
      continue;
    }
    if (prepared.node[id]) prepared_order.push_back(id);
    else (n.op == Op::Kernel && n.kernel->part() ? parts : order).push_back(id);
    for (const Edge& e : n.in) dims_of(e.view);
    if (n.op == Op::Kernel)
      for (const Dim& d : n.kernel->sizes()) sizes[id].push_back(dim(d));
    for (const Dim& d : extents(n.attributes)) dim(d);  // sizes in attributes of an interpreted node
  }
  for (const Root& r : graph.roots()) dims_of(r.edge.view);
  for (const Assignment& a : graph.assignments()) dims_of(a.next.view);
  for (std::size_t k = 0; k < graph.roots().size(); ++k) outputs.emplace(graph.roots()[k].name, k);
  choose_device();
  workers = device->workers();
  plan = make_plan(graph, workers);
  computed.resize(graph.size());
}

// Chooses the first device that a kernel names, or the host if there is none. Two host devices differ only in their
// threads.
void Program::Impl::choose_device() {
  const auto live = graph.live();
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (!live[id] || graph[id].op != Op::Kernel || !graph[id].kernel->device) continue;
    const std::shared_ptr<Device>& wanted = graph[id].kernel->device;
    if (!device) device = wanted;
    if (device != wanted && !(device->parallel() && wanted->parallel()))
      throw Error("compile", str_cat("kernels of two devices, ", device->name(), " and ", wanted->name(),
                                     ", are in one graph: compile each part for one"));
  }
  if (!device) device = host_device();
}

BufferSlice Program::Impl::fixed(NodeId id) const {
  if (const auto w = weights.find(id); w != weights.end()) return {w->second.buffer.get(), 0};
  return computed[id] ? BufferSlice{prepared_values.get(), plan.nodes[id].offset} : BufferSlice{};
}

void Program::Impl::compute_prepared(NodeId changed) {
  std::vector<bool> dirty(graph.size());
  dirty[changed] = true;
  for (NodeId id : prepared_order) {
    const Node& n = graph[id];
    std::vector<BufferSlice> in;
    for (const Edge& e : n.in) {
      dirty[id] = dirty[id] || dirty[e.node];
      in.push_back(fixed(e.node));
    }
    if (!dirty[id]) continue;
    computed[id] = false;  // stays false if an Error is thrown below
    if (std::find(in.begin(), in.end(), BufferSlice{}) != in.end()) continue;
    std::vector<std::int64_t> values;
    for (std::size_t k : sizes[id]) values.push_back(dims[k].eval({}));
    const auto scratch = device->allocate(static_cast<std::size_t>(n.kernel->scratch_bytes(workers).eval({})));
    if (!prepared_values) prepared_values = device->allocate(plan.prepared_bytes);
    device->launch({n.kernel.get(), in, {prepared_values.get(), plan.nodes[id].offset}, values, {scratch.get(), 0}});
    computed[id] = true;
  }
  if (!prepared.resident[changed]) weights.erase(changed);
}

void Program::Impl::remember_slices(const Graph& users) {
  const auto bound = [this](const Dim& d) {
    return std::ranges::all_of(d.symbols(), [this](const auto& s) { return symbols.contains(s.first); });
  };
  const auto remember = [&](const Edge& e, const Location& where) {
    const Shape* from = &e.view.base();
    for (const Move& m : e.view.moves()) {
      for (std::size_t i = 0; m.kind == MoveKind::Slice && i < m.to.size(); ++i) {
        const Dim last = m.before[i] + (m.to[i] - 1) * Dim(m.step[i]), below = m.step[i] < 0 ? last : m.before[i],
                  room = (*from)[i] - 1 - (m.step[i] < 0 ? m.before[i] : last);
        if ((below.bounds().lo >= 0 && room.bounds().lo >= 0) || m.to[i].bounds().hi <= 0) continue;
        const auto same = [&](const SliceLimit& s) {
          return s.first == below && s.room == room && s.extent == m.to[i];
        };
        if (std::ranges::none_of(slices, same) && bound(below) && bound(room) && bound(m.to[i]))
          slices.push_back({below, room, m.to[i], *from, static_cast<int>(i), where});
      }
      from = &m.to;
    }
  };
  const std::vector<bool> live = users.live();
  for (NodeId id = 0; id < users.size(); ++id)
    for (std::size_t k = 0; live[id] && k < users[id].in.size(); ++k) remember(users[id].in[k], users[id].where);
  for (const Root& r : users.roots()) remember(r.edge, users[r.edge.node].where);
  for (const Assignment& a : users.assignments()) remember(a.next, users[a.next.node].where);
}

Program compile(const Graph& g, const Compiler& c, const CompileOptions& options) {
  if (g.roots().empty() && g.assignments().empty())
    throw Error("compile",
                "the graph has no results: retrieve() what the program is to compute, or give a state its next value");
  Program p;
  p.impl_ = std::make_shared<Program::Impl>();
  IndexChecks checked;
  if (options.checks) checked = index_checks(g, true);
  Compiled done = transform(options.checks ? checked.graph : g, c, options);
  p.impl_->checks = std::move(checked.checks);
  p.impl_->graph = std::move(done.graph);
  p.impl_->log = std::move(done.log);
  p.impl_->remember_names(g);
  p.impl_->prepare();
  // In an already compiled graph some symbols occur only in the sizes of kernels.
  for (const auto& [name, bounds] : p.impl_->symbols) p.impl_->known_symbols.emplace(name, bounds);
  p.impl_->remember_slices(g);
  return p;
}

void check_data(const char* op, const Node& input, const void* data, std::size_t bytes) {
  if (!data && bytes) throw Error(op, str_cat("the data of '", input.name, "' have no address"));
  if (reinterpret_cast<std::uintptr_t>(data) % size_of(input.dtype) != 0)
    throw Error(op, str_cat("the data of '", input.name, "' is not aligned to its elements of ", size_of(input.dtype),
                            " bytes"));
}

void check_array(const char* op, const Node& input, const ArrayView& array) {
  Shape given(array.shape.begin(), array.shape.end());
  bool fits = array.dtype == input.dtype && given.size() == input.shape.size();
  std::string bound;
  for (std::size_t i = 0; fits && i < given.size(); ++i) {
    const Bounds b = input.shape[i].bounds();
    fits = array.shape[i] >= b.lo && array.shape[i] <= b.hi;
    if (!fits && !input.shape[i].is_constant())
      bound = str_cat(": ", input.shape[i].str(), " is from ", b.lo, " to ", b.hi, " in this graph");
  }
  const bool transposed = given.size() == 2 && input.shape == Shape{given[1], given[0]} && array.dtype == input.dtype;
  if (!fits)
    throw Error(op, str_cat("an array of ", name(array.dtype), " ", str(given), " for '", input.name, "', which is ",
                            name(input.dtype), " ", str(input.shape), transposed ? ": it is the transpose" : bound));
}

void check_symbol(const char* op, const Symbols& known, std::string_view name, std::int64_t value) {
  const auto it = known.find(name);
  if (it == known.end()) {
    const std::string names = near(name, known);
    throw Error(
        op, str_cat("no size of the graph is named '", name, "'; ", names.empty() ? "all of them are numbers" : names));
  }
  if (value < it->second.lo || value > it->second.hi)
    throw Error(op, str_cat(name, " = ", value, " is outside its bounds [", it->second.lo, ", ", it->second.hi, "]"));
}

std::optional<NodeId> Program::Impl::find_input(const char* op, std::string_view name) const {
  const auto it = inputs.find(name);
  if (it != inputs.end()) return it->second;
  if (known.contains(name)) return std::nullopt;
  const auto keys = std::views::keys(known);
  const std::string names = names_near(name, {keys.begin(), keys.end()});
  throw Error(op, str_cat("the graph has no input '", name, "'; ", names.empty() ? "it has none" : names));
}

Program::Impl& Program::impl() const {
  if (!impl_) throw Error("program", "there is none yet: compile() makes one");
  return *impl_;
}

Program& Program::load(std::string_view input, const void* data, std::size_t bytes, std::shared_ptr<const void> owner) {
  Impl& p = impl();
  const std::optional<NodeId> id = p.find_input("load", input);
  if (!id) return *this;  // no computed value reads it
  const Node& n = p.graph[*id];
  const std::size_t want = upper_bytes(n);
  if (bytes != want)
    throw Error("load", str_cat("'", std::string(input), "' of shape ", str(n.shape), " ", name(n.dtype), " takes ",
                                want, " bytes, not ", bytes));
  check_data("load", n, data, bytes);
  // An empty tensor may have a null address, but a loop without iterations may still load element 0.
  alignas(64) static const std::byte nothing[64] = {};
  std::shared_ptr<Buffer> buffer = p.device->lend(const_cast<void*>(bytes ? data : nothing), bytes);
  if (!buffer) {
    buffer = p.device->allocate(bytes);
    if (bytes) p.device->copy_in({buffer.get(), 0}, data, bytes);
    owner.reset();
  }
  ++p.loads;
  p.weights[*id] = {std::move(owner), std::move(buffer)};
  p.compute_prepared(*id);
  return *this;
}
Program& Program::load(std::string_view input, const ArrayView& array, std::shared_ptr<const void> owner) {
  if (const std::optional<NodeId> id = impl().find_input("load", input)) check_array("load", impl().graph[*id], array);
  return load(input, array.bytes.data(), array.bytes.size(), std::move(owner));
}
Program& Program::load_slice(std::string_view input, const ArrayView& array, int axis, std::int64_t begin,
                             std::shared_ptr<const void> owner) {
  const std::optional<NodeId> id = impl().find_input("load_slice", input);
  if (!id) return *this;
  const Node& n = impl().graph[*id];
  const int rank = static_cast<int>(array.shape.size());
  const auto at =
      static_cast<std::size_t>(wrap_axis(axis, rank, Shape(array.shape.begin(), array.shape.end()), "load_slice"));
  ArrayView part = array;
  const std::int64_t want = at < n.shape.size() ? n.shape[at].constant().value_or(-1) : -1;
  if (want < 0 || begin < 0 || begin > array.shape[at] - want)
    throw Error("load_slice", str_cat("'", std::string(input), "' of shape ", str(n.shape), " takes ", want,
                                      " elements of axis ", at, ", and from ", begin, " on the array has ",
                                      std::max<std::int64_t>(array.shape[at] - begin, 0)));
  part.shape[at] = want;
  check_array("load_slice", n, part);
  std::size_t inner = size_of(array.dtype);  // bytes of one step along the axis
  for (std::size_t k = at + 1; k < array.shape.size(); ++k) inner *= static_cast<std::size_t>(array.shape[k]);
  const std::size_t row = inner * static_cast<std::size_t>(array.shape[at]),
                    piece = inner * static_cast<std::size_t>(want), first = inner * static_cast<std::size_t>(begin),
                    rows = row ? array.bytes.size() / row : 0;
  if (at == 0) return load(input, array.bytes.data() + first, piece, std::move(owner));
  const auto copy = std::make_shared<std::vector<std::byte>>(rows * piece);
  for (std::size_t r = 0; r < rows && piece > 0; ++r)
    std::memcpy(copy->data() + r * piece, array.bytes.data() + r * row + first, piece);
  return load(input, copy->data(), copy->size(), copy);
}
bool Program::resident(std::string_view input) const {
  const auto it = impl().inputs.find(input);
  return it != impl().inputs.end() && impl().prepared.resident[it->second];
}
bool Program::is_parameter(std::string_view input) const {
  const auto it = impl().inputs.find(input);
  return it != impl().inputs.end() && impl().graph[it->second].parameter;
}

const Graph& Program::graph() const { return impl().graph; }
std::span<const PassLog> Program::log() const { return impl().log; }
std::vector<std::string> Program::notes() const { return impl().notes(); }
std::shared_ptr<Device> Program::device() const { return impl().device; }
const MemoryPlan& Program::plan() const { return impl().plan; }
MemoryPlan Program::plan(const Bindings& sizes) const {
  for (const auto& [name, value] : sizes) check_symbol("plan", impl().known_symbols, name, value);
  return make_plan(impl().graph, impl().workers, sizes);
}
std::vector<std::string> Program::inputs() const {
  std::vector<std::string> names;
  for (const auto& [name, id] : impl().inputs) names.push_back(name);
  return names;
}
std::vector<std::string> Program::outputs() const {
  std::vector<std::string> names;
  for (const Root& r : impl().graph.roots()) names.push_back(r.name);
  std::erase_if(names, [this](const std::string& name) {
    return std::ranges::any_of(impl().checks, [&](const IndexCheck& c) { return name == c.low || name == c.high; });
  });
  return names;
}
bool Program::has_symbol(std::string_view name) const { return impl().known_symbols.contains(name); }
std::size_t Program::kernels() const {
  return static_cast<std::size_t>(std::count_if(impl().order.begin(), impl().order.end(),
                                                [&](NodeId id) { return impl().graph[id].op == Op::Kernel; }));
}
std::string Program::source(std::string_view kernel) const {
  for (NodeId id : impl().order)
    if (const Node& n = impl().graph[id]; n.op == Op::Kernel && n.kernel->name() == kernel) return n.kernel->source();
  return {};
}
std::size_t Program::interpreted() const { return impl().order.size() - kernels(); }

}  // namespace lc
