#include "lightcone/runtime/program.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <unordered_map>
#include <utility>

#include "lightcone/core/graph_impl.h"
#include "lightcone/runtime/fork.h"
#include "lightcone/runtime/memory.h"
#include "lightcone/runtime/prepared.h"
#include "lightcone/runtime/profiler.h"

namespace lc {

std::string kernel_name(const Kernel& k) { return k.name(); }

namespace {

class OneThread final : public Parallel {
 public:
  int workers() const override { return 1; }
  void run(int tasks, void (*task)(void*, int, int), void* arg) override {
    for (int t = 0; t < tasks; ++t) task(arg, t, 0);
  }
};

}  // namespace

std::shared_ptr<Parallel> one_thread() {
  static const auto p = std::make_shared<OneThread>();
  return p;
}

struct Weight {
  const void* data = nullptr;
  std::size_t bytes = 0;
  std::shared_ptr<const void> owner;
};

struct HashDim {
  std::size_t operator()(const Dim& d) const { return d.hash(); }
};

struct Program::Impl {
  Graph graph;
  std::vector<PassLog> log;
  std::vector<std::string> notes() const {
    std::vector<std::string> all;
    for (const PassLog& l : log) all.insert(all.end(), l.notes.begin(), l.notes.end());
    return all;
  }
  MemoryPlan plan;
  int workers = 1;
  std::shared_ptr<Parallel> parallel;
  std::vector<NodeId> order;                     // live nodes that compute
  std::vector<std::vector<std::size_t>> sizes;   // by NodeId: where a kernel's sizes stand in dims
  std::vector<std::vector<std::size_t>> shapes;  // and the extents of its result
  std::vector<Dim> dims;                         // every distinct size, evaluated once a binding
  std::unordered_map<Dim, std::size_t, HashDim> dim_places;
  std::vector<Bounds> dim_bounds;
  std::map<std::string, Bounds, std::less<>> symbols;
  std::map<std::string, NodeId, std::less<>> inputs;
  std::map<std::string, std::size_t, std::less<>> outputs;
  std::vector<Edge> user_roots;  // edges of the user's own graph, for get(Tensor)
  std::map<NodeId, Weight> weights;
  Prepared prepared;
  std::vector<NodeId> prepared_order;
  Memory prepared_values;  // all of them, one behind the other
  std::vector<bool> computed;

  std::size_t dim(const Dim& d) {
    const auto [it, fresh] = dim_places.try_emplace(d, dims.size());
    if (!fresh) return it->second;
    for (const auto& [name, b] : d.symbols()) symbols.emplace(name, b);
    dims.push_back(d);
    return it->second;
  }
  void dims_of(const View& v) {
    for (const Dim& d : v.base()) dim(d);
    for (const Move& m : v.moves())
      for (const Dim& d : m.to) dim(d);
  }
  void prepare();
  const void* fixed(NodeId id) const;  // the bytes of a parameter or a prepared value, null before they are there
  void compute_prepared(NodeId changed);
};

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
    else if (n.op != Op::Kernel || !n.kernel->part()) order.push_back(id);
    for (const Edge& e : n.in) dims_of(e.view);
    if (n.op == Op::Kernel) {
      for (const Dim& d : n.kernel->sizes()) sizes[id].push_back(dim(d));
      if (!parallel) parallel = n.kernel->parallel();
    }
  }
  for (const Root& r : graph.roots()) dims_of(r.edge.view);
  std::erase_if(symbols, [](const auto& s) {  // loop indices are not the user's to bind
    return s.first[0] == 'i' && s.first.size() > 1 && s.first.find_first_not_of("0123456789", 1) == std::string::npos;
  });
  for (std::size_t k = 0; k < graph.roots().size(); ++k) outputs.emplace(graph.roots()[k].name, k);
  if (!parallel) parallel = one_thread();
  workers = parallel->workers();
  plan = make_plan(graph, workers);
  computed.resize(graph.size());
}

const void* Program::Impl::fixed(NodeId id) const {
  if (const auto w = weights.find(id); w != weights.end()) return w->second.data;
  return computed[id] ? prepared_values.data() + plan.nodes[id].offset : nullptr;
}

void Program::Impl::compute_prepared(NodeId changed) {
  std::vector<bool> dirty(graph.size());
  dirty[changed] = true;
  for (NodeId id : prepared_order) {
    const Node& n = graph[id];
    std::vector<const void*> in;
    for (const Edge& e : n.in) {
      dirty[id] = dirty[id] || dirty[e.node];
      in.push_back(fixed(e.node));
    }
    if (!dirty[id] || std::find(in.begin(), in.end(), nullptr) != in.end()) continue;
    std::vector<std::int64_t> values;
    for (std::size_t k : sizes[id]) values.push_back(dims[k].eval({}));
    const Memory scratch(static_cast<std::size_t>(n.kernel->scratch_bytes(workers).eval({})));
    if (!prepared_values.data()) prepared_values = Memory(plan.prepared_bytes);
    n.kernel->run({in, prepared_values.data() + plan.nodes[id].offset, values, scratch.data(), *parallel});
    computed[id] = true;
  }
  if (!prepared.resident[changed]) weights.erase(changed);
}

Program compile(const Graph& g, const Compiler& c, const CompileOptions& options) {
  Program p;
  p.impl_ = std::make_shared<Program::Impl>();
  Compiled done = transform(g, c, options);
  p.impl_->graph = std::move(done.graph);
  p.impl_->log = std::move(done.log);
  for (const Root& r : g.roots()) p.impl_->user_roots.push_back(r.edge);
  p.impl_->prepare();
  return p;
}

namespace {

void check_alignment(const char* op, const Node& input, const void* data) {
  if (reinterpret_cast<std::uintptr_t>(data) % size_of(input.dtype) != 0)
    throw Error(
        op, cat("the data of '", input.name, "' is not aligned to its elements of ", size_of(input.dtype), " bytes"));
}

}  // namespace

Program& Program::load(std::string_view input, const void* data, std::size_t bytes, std::shared_ptr<const void> owner) {
  const auto it = impl_->inputs.find(input);
  if (it == impl_->inputs.end()) return *this;  // nothing that is computed reads it
  const Node& n = impl_->graph[it->second];
  const std::size_t want = upper_bytes(n);
  if (bytes != want)
    throw Error("load", cat("'", std::string(input), "' of shape ", str(n.shape), " ", name(n.dtype), " takes ", want,
                            " bytes, not ", bytes));
  check_alignment("load", n, data);
  // An empty tensor may come without an address. A kernel may load what would be its first element, for a loop that
  // then has no step.
  alignas(64) static const std::byte nothing[64] = {};
  impl_->weights[it->second] = {bytes ? data : nothing, bytes, std::move(owner)};
  impl_->compute_prepared(it->second);
  return *this;
}
bool Program::resident(std::string_view input) const {
  const auto it = impl_->inputs.find(input);
  return it != impl_->inputs.end() && impl_->prepared.resident[it->second];
}
bool Program::is_parameter(std::string_view input) const {
  const auto it = impl_->inputs.find(input);
  return it != impl_->inputs.end() && impl_->graph[it->second].mode == kParameter;
}

const Graph& Program::graph() const { return impl_->graph; }
std::span<const PassLog> Program::log() const { return impl_->log; }
std::vector<std::string> Program::notes() const { return impl_->notes(); }
const MemoryPlan& Program::plan() const { return impl_->plan; }
std::vector<std::string> Program::inputs() const {
  std::vector<std::string> names;
  for (const auto& [name, id] : impl_->inputs) names.push_back(name);
  return names;
}
std::vector<std::string> Program::outputs() const {
  std::vector<std::string> names;
  for (const Root& r : impl_->graph.roots()) names.push_back(r.name);
  return names;
}
std::size_t Program::kernels() const {
  return static_cast<std::size_t>(std::count_if(impl_->order.begin(), impl_->order.end(),
                                                [&](NodeId id) { return impl_->graph[id].op == Op::Kernel; }));
}
std::string Program::source(std::string_view kernel) const {
  for (NodeId id : impl_->order)
    if (const Node& n = impl_->graph[id]; n.op == Op::Kernel && n.kernel->name() == kernel) return n.kernel->source();
  return {};
}
std::size_t Program::interpreted() const { return impl_->order.size() - kernels(); }

// ---- Context ----------------------------------------------------------------------------------

struct Context::Impl {
  std::shared_ptr<const Program::Impl> program;
  std::shared_ptr<Parallel> parallel;
  MemoryPlan own_plan;  // when this context has another number of workers
  const MemoryPlan* plan;
  Memory arena;
  Memory states;                    // one behind the other, for large pages
  std::map<NodeId, Memory> owned;   // other inputs this context holds
  std::vector<const void*> input;   // by NodeId
  std::vector<std::int64_t> given;  // by NodeId: elements set, -1 for whatever the size
  Bindings bindings;
  bool stale = true;
  std::vector<std::int64_t> dims;
  std::vector<std::vector<std::int64_t>> sizes;  // by NodeId
  std::vector<const void*> operands;             // of the kernels that run together
  std::vector<Divided> together;
  std::unique_ptr<Profiler> profiler;  // while profiling

  const Graph& graph() const { return program->graph; }
  NodeId input_id(std::string_view name) const {
    const auto it = program->inputs.find(name);
    if (it == program->inputs.end()) {
      std::string known;
      for (const auto& [n, id] : program->inputs) known += (known.empty() ? "" : ", ") + n;
      throw Error("set", cat("the program has no input '", name, "'; it has ", known.substr(0, 200)));
    }
    return it->second;
  }
  // An input whose bytes this context may bring: not one of which something was made at load time.
  NodeId given_id(std::string_view name) const {
    const NodeId id = input_id(name);
    for (NodeId p : program->prepared_order)
      for (const Edge& e : graph()[p].in)
        if (e.node == id) throw Error("set", cat("'", name, "' is a parameter: give it to Program::load"));
    return id;
  }
  bool is_state(NodeId id) const {
    const auto all = graph().assignments();
    return std::any_of(all.begin(), all.end(), [&](const Assignment& a) { return a.state == id; });
  }
  void* buffer(NodeId id) {  // of an input this context owns
    if (is_state(id)) {
      input[id] = states.data() + plan->nodes[id].offset;
      return states.data() + plan->nodes[id].offset;
    }
    Memory& m = owned[id];
    const std::size_t bytes = plan->nodes[id].bytes;
    if (!m.data()) m = Memory(bytes);
    input[id] = m.data();
    return m.data();
  }
  std::byte* place(NodeId id) const {
    const Placement& p = plan->nodes[id];
    if (p.where == Placement::Where::Arena) return arena.data() + p.offset;
    return static_cast<std::byte*>(const_cast<void*>(input[p.input]));
  }
  template <class T>
  void set(std::string_view input, std::span<const T> values);
  void refresh();
  void check_inputs() const;
  void run_node(NodeId id);
  std::size_t run_together(std::size_t k);
  void interpret_node(NodeId id);
  void commit_states();
  Value read(const Edge& e) const;
  Value read_output(const Edge& e) const;
  const std::byte* output_place(NodeId id) const;
  const Edge& output(std::string_view name) const;
};

Context::Context(const Program& p, std::shared_ptr<Parallel> parallel) : impl_(std::make_unique<Impl>()) {
  Impl& c = *impl_;
  c.program = p.impl_;
  c.parallel = parallel ? std::move(parallel) : c.program->parallel;
  c.plan = &c.program->plan;
  if (c.parallel->workers() != c.program->workers) {
    c.own_plan = make_plan(c.graph(), c.parallel->workers());
    c.plan = &c.own_plan;
  }
  c.arena = Memory(c.plan->arena_bytes);
  c.input.resize(c.graph().size());
  c.given.assign(c.graph().size(), -1);
  for (const auto& [id, w] : c.program->weights) c.input[id] = w.data;
  for (NodeId id : c.program->prepared_order) c.input[id] = c.program->fixed(id);
  if (!c.graph().assignments().empty()) c.states = Memory(c.plan->state_bytes);
  for (const Assignment& a : c.graph().assignments()) {
    const void* first = c.input[a.state];  // loaded: where this context begins
    std::byte* own = c.states.data() + c.plan->nodes[a.state].offset;
    c.input[a.state] = own;
    if (first) std::memcpy(own, first, c.plan->nodes[a.state].bytes);
  }
  c.dims.resize(c.program->dims.size());
  c.sizes.resize(c.graph().size());
  std::size_t most = 0, sum = 0;  // operands
  for (NodeId id : c.program->order) {
    c.sizes[id].resize(c.program->sizes[id].size());
    most = std::max(most, sum += c.graph()[id].in.size());
    if (c.plan->fork[id] == id) sum = 0;
  }
  c.operands.resize(most);
  c.together.reserve(kMostTogether);
}
Context::Context(Context&&) noexcept = default;
Context& Context::operator=(Context&&) noexcept = default;
Context::~Context() = default;

Context& Context::bind(std::string_view symbol, std::int64_t value) {
  const auto it = impl_->program->symbols.find(symbol);
  if (it == impl_->program->symbols.end()) return *this;  // optimised away: any value will do
  if (value < it->second.lo || value > it->second.hi)
    throw Error("bind", cat(symbol, " = ", value, " is outside its bounds [", it->second.lo, ", ", it->second.hi, "]"));
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

template <class T>
void fill(void* to, DType type, std::span<const T> values) {
  for (std::size_t k = 0; k < values.size(); ++k)
    if constexpr (std::is_floating_point_v<T>) store_f64(to, type, k, values[k]);
    else store_i64(to, type, k, values[k]);
}

void check_room(const Node& n, std::size_t have, std::size_t bytes) {
  if (have * size_of(n.dtype) > bytes)
    throw Error("set", cat("'", n.name, "' of shape ", str(n.shape), " takes at most ", bytes / size_of(n.dtype),
                           " elements, not ", have));
}

}  // namespace

template <class T>
void Context::Impl::set(std::string_view input, std::span<const T> values) {
  const NodeId id = given_id(input);
  const Node& n = graph()[id];
  check_room(n, values.size(), plan->nodes[id].bytes);
  fill(buffer(id), n.dtype, values);
  given[id] = static_cast<std::int64_t>(values.size());
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
Context& Context::set_bytes(std::string_view input, const void* data, std::size_t bytes) {
  const NodeId id = impl_->given_id(input);
  const Node& n = impl_->graph()[id];
  check_room(n, bytes / size_of(n.dtype), impl_->plan->nodes[id].bytes);
  void* to = impl_->buffer(id);
  if (bytes) std::memcpy(to, data, bytes);
  impl_->given[id] = static_cast<std::int64_t>(bytes / size_of(n.dtype));
  return *this;
}
Context& Context::use(std::string_view input, void* data, std::size_t bytes) {
  const NodeId id = impl_->given_id(input);
  if (bytes < impl_->plan->nodes[id].bytes)
    throw Error("use", cat("'", input, "' needs ", impl_->plan->nodes[id].bytes, " bytes, not ", bytes));
  check_alignment("use", impl_->graph()[id], data);
  impl_->owned.erase(id);
  impl_->input[id] = data;
  impl_->given[id] = -1;
  return *this;
}

void Context::clear_states() {
  for (const Assignment& a : impl_->graph().assignments())
    std::memset(const_cast<void*>(impl_->input[a.state]), 0, impl_->plan->nodes[a.state].bytes);
}

void Context::Impl::refresh() {
  for (const auto& [name, b] : program->symbols)
    if (!bindings.contains(name)) throw Error("run", cat("the size '", name, "' has no value: bind it"));
  for (std::size_t k = 0; k < dims.size(); ++k) {
    dims[k] = program->dims[k].eval(bindings);
  }
  for (NodeId id : program->order) {
    for (std::size_t k = 0; k < sizes[id].size(); ++k) sizes[id][k] = dims[program->sizes[id][k]];
    std::int64_t bytes = static_cast<std::int64_t>(size_of(graph()[id].dtype));
    for (std::size_t k : program->shapes[id]) {
      const std::int64_t n = dims[k];
      if (n < 0)
        throw Error("run", cat("an extent of ", str(graph()[id].shape), " is negative for these sizes"),
                    graph()[id].where);
      bytes *= n;
    }
    if (bytes > static_cast<std::int64_t>(plan->nodes[id].bytes))
      throw Error("run", cat(str(graph()[id].shape), " is larger than planned for these sizes"), graph()[id].where);
  }
  stale = false;
}

void Context::Impl::check_inputs() const {
  for (const auto& [name, id] : program->inputs) {
    if (!program->prepared.resident[id]) continue;
    if (!input[id]) throw Error("run", cat("input '", name, "' has no value: set or load it"));
    if (given[id] < 0) continue;
    std::int64_t want = 1;
    for (const Dim& d : graph()[id].shape) want *= d.eval(bindings);
    if (want != given[id])
      throw Error("run", cat("input '", name, "' of shape ", str(graph()[id].shape), " needs ", want,
                             " elements for these sizes, not ", given[id]));
  }
  for (NodeId id : program->prepared_order)
    if (!input[id])
      throw Error("run", "a parameter has no value: load all of them into the program before making contexts",
                  graph()[id].where);
}

void Context::Impl::interpret_node(NodeId id) {
  const Node& n = graph()[id];
  std::vector<Value> in;
  for (const Edge& e : n.in) in.push_back(read(e));
  const OpScope scope(n.where);
  write_value(evaluate(n, in, bindings, Rounding::Storage), place(id));
}

void Context::Impl::run_node(NodeId id) {
  const Node& n = graph()[id];
  if (n.op != Op::Kernel) return interpret_node(id);
  for (std::size_t k = 0; k < n.in.size(); ++k) operands[k] = place(n.in[k].node);
  Parallel& workers = profiler ? *profiler : *parallel;
  n.kernel->run({{operands.data(), n.in.size()}, place(id), sizes[id], arena.data() + plan->scratch[id], workers});
}

// The k-th kernel and those behind it that share its fork; how many they are.
std::size_t Context::Impl::run_together(std::size_t k) {
  const NodeId last = plan->fork[program->order[k]];
  const void** in = operands.data();
  together.clear();
  for (std::size_t i = k;; ++i) {
    const NodeId id = program->order[i];
    const Node& n = graph()[id];
    for (std::size_t o = 0; o < n.in.size(); ++o) in[o] = place(n.in[o].node);
    together.push_back({n.kernel.get(),
                        {{in, n.in.size()}, place(id), sizes[id], nullptr, *parallel},
                        n.kernel->iterations(sizes[id], parallel->workers())});
    in += n.in.size();
    if (id == last) break;
  }
  run_divided(together, *parallel);
  return together.size();
}

void Context::Impl::commit_states() {
  bool views = false;
  for (const Assignment* a : plan->copies)
    views = views || !a->next.view.identity() || graph()[a->next.node].op == Op::Input;
  if (!views) {
    for (const Assignment* a : plan->copies)
      std::memcpy(const_cast<void*>(input[a->state]), place(a->next.node), plan->nodes[a->state].bytes);
    return;
  }
  std::vector<Value> next;  // all are read before any is written
  for (const Assignment* a : plan->copies) next.push_back(read(a->next));
  for (std::size_t k = 0; k < next.size(); ++k) write_value(next[k], const_cast<void*>(input[plan->copies[k]->state]));
}

Context& Context::run() {
  Impl& c = *impl_;
  if (c.stale) c.refresh();
  c.check_inputs();
  if (c.profiler) c.profiler->begin_run(c.bindings);
  for (const auto& [state, offset] : c.plan->snapshots)
    std::memcpy(c.arena.data() + offset, c.input[state], c.plan->nodes[state].bytes);
  const auto& order = c.program->order;
  for (std::size_t k = 0; k < order.size(); ++k) {
    if (c.profiler) c.profiler->begin_kernel();
    if (c.profiler || c.plan->fork[order[k]] == order[k]) c.run_node(order[k]);
    else k += c.run_together(k) - 1;
    if (c.profiler) c.profiler->end_kernel(k);
  }
  c.commit_states();
  if (c.profiler) c.profiler->end_run();
  return *this;
}

Value Context::Impl::read(const Edge& e) const {
  const Node& n = graph()[e.node];
  if (n.op == Op::Input && !input[e.node]) throw Error("run", cat("input '", n.name, "' has no value: set or load it"));
  return look_through(read_value(place(e.node), n.dtype, numbers(n.shape, bindings)), e.view, bindings);
}

// Where a result lies: for a state, what it held before the run.
const std::byte* Context::Impl::output_place(NodeId id) const {
  for (const auto& [state, offset] : plan->snapshots)
    if (state == id) return arena.data() + offset;
  return place(id);
}
Value Context::Impl::read_output(const Edge& e) const {
  const Node& n = graph()[e.node];
  if (n.op == Op::Input && !input[e.node]) throw Error("get", cat("input '", n.name, "' has no value: set or load it"));
  return look_through(read_value(output_place(e.node), n.dtype, numbers(n.shape, bindings)), e.view, bindings);
}

const Edge& Context::Impl::output(std::string_view name) const {
  const auto it = program->outputs.find(name);
  if (it == program->outputs.end())
    throw Error("get", cat("the program has no output '", name, "'; retrieve() it before compiling"));
  return graph().roots()[it->second].edge;
}

Value Context::value(std::string_view output) const {
  const auto state = impl_->program->inputs.find(output);
  if (!impl_->program->outputs.contains(output) && state != impl_->program->inputs.end())
    return impl_->read({state->second, View(impl_->graph()[state->second].shape)});
  return impl_->read_output(impl_->output(output));
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
  for (double x : v.f) r.push_back(load_i64(&x, DType::F64, 0));
  return r;
}
float Context::scalar(std::string_view output) const {
  const auto v = get(output);
  if (v.size() != 1) throw Error("scalar", cat("'", output, "' has ", v.size(), " elements"));
  return v[0];
}
std::span<const std::byte> Context::bytes(std::string_view output) const {
  const Edge& e = impl_->output(output);
  if (!e.view.identity()) throw Error("bytes", cat("the output '", output, "' is a view; use get()"));
  std::size_t n = size_of(impl_->graph()[e.node].dtype);
  for (std::int64_t d : shape(output)) n *= static_cast<std::size_t>(d);
  return {impl_->output_place(e.node), n};
}
std::vector<std::int64_t> Context::shape(std::string_view output) const {
  return numbers(impl_->output(output).view.shape(), impl_->bindings);
}
void Context::profile(bool on) {
  Impl& c = *impl_;
  c.profiler = on ? std::make_unique<Profiler>(c.graph(), *c.plan, c.program->order, c.parallel) : nullptr;
}
Profile Context::profile() const {
  if (!impl_->profiler) throw Error("profile", "nothing was measured: switch it on with profile(true), then run()");
  Profile found = impl_->profiler->result();
  found.notes = impl_->program->notes();
  return found;
}

}  // namespace lc
