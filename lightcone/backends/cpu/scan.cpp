#include "lightcone/backends/cpu/scan.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "lightcone/core/composite.h"
#include "lightcone/device/host_kernel.h"
#include "lightcone/device/kernel_rule.h"
#include "lightcone/device/plan.h"
#include "lightcone/device/prepared.h"
#include "lightcone/ops/loop.h"
#include "lightcone/passes/passes.h"

namespace lc::host {
namespace {

std::size_t aligned(std::size_t n) { return (n + 63) / 64 * 64; }

// Threads that scratch memory was planned for are enough for any.
class Serial final : public Parallel {
 public:
  int workers() const override { return 1; }
  void run(int tasks, void (*task)(void*, int, int), void* arg) override {
    for (int k = 0; k < tasks; ++k) task(arg, k, 0);
  }
};

// Where a value of a step lies.
struct Ref {
  enum Base : std::uint8_t {
    Scratch,  // `at` bytes from the start of it
    Operand,  // of the loop, whole
    Slice,    // of this step
    State,    // before this step
  } base = Scratch;
  std::size_t at = 0;  // or which one
};

// A kernel of the body, and where it reads and writes.
struct Step {
  const HostKernel* kernel;
  std::vector<Ref> in;
  Ref out;
  std::vector<std::int64_t> sizes;
  std::size_t scratch;
  std::size_t table;  // where its operands stand in the table of addresses
};

class ScanKernel final : public HostKernel {
 public:
  ScanKernel(const LoopBody& body, Graph compiled, int workers, std::span<const TensorType> results);

  std::string name() const override { return "scan"; }
  Dim scratch_bytes(int) const override { return static_cast<std::int64_t>(scratch_bytes_); }
  Dim flops() const override { return flops_; }
  void run(const HostLaunch& l) const override;

 private:
  struct Run;
  Ref ref(NodeId id) const;
  void place_states(const LoopBody& body);
  void add_kernels();

  Graph graph_;
  int workers_;
  MemoryPlan plan_;
  Prepared prepared_;
  std::map<NodeId, std::size_t> operand_;  // of an input of the body
  std::size_t states_, slices_, ys_;
  std::int64_t length_;
  bool reverse_, keeps_;
  std::vector<Step> once_, steps_;
  std::vector<Ref> next_;                 // states behind a step, then ys
  std::vector<std::size_t> bytes_;        // of a state, then of a slice, then of a y
  std::vector<std::int64_t> result_at_;   // in the result
  std::vector<std::size_t> state_at_[2];  // in the scratch memory, for even and odd steps
  std::size_t prepared_at_, table_at_ = 0, scratch_bytes_ = 0;
  Dim flops_ = 0;
};

std::size_t bytes_of(const Node& n) {
  return static_cast<std::size_t>(*product(n.shape).constant()) * size_of(n.dtype);
}

// total + times * each, at most 2^60: the length of while_loop is a bound, and the product of two such is no Dim.
Dim repeated(const Dim& total, const Dim& each, std::int64_t times) {
  constexpr double kMost = static_cast<double>(std::int64_t{1} << 60);
  const double sum = static_cast<double>(*total.constant()) + static_cast<double>(*each.constant()) * static_cast<double>(times);
  return sum < kMost ? total + each * Dim(times) : Dim(std::int64_t{1} << 60);
}

ScanKernel::ScanKernel(const LoopBody& body, Graph compiled, int workers, std::span<const TensorType> results)
    : graph_(std::move(compiled)),
      workers_(workers),
      plan_(make_plan(graph_, workers)),
      prepared_(find_prepared(graph_)),
      states_(body.states),
      slices_(body.slices),
      ys_(body.ys),
      length_(body.length),
      reverse_(body.reverse),
      keeps_(body.keeps),
      prepared_at_(aligned(plan_.arena_bytes)) {
  result_at_ = result_offsets(results);
  for (std::size_t k = 0; k < body.inputs.size(); ++k) {
    const Node& in = body.graph[body.inputs[k]];
    if (k < states_ + slices_) bytes_.push_back(bytes_of(in));
    for (NodeId id = 0; id < graph_.size(); ++id)
      if (graph_[id].op == Op::Input && graph_[id].name == in.name) operand_[id] = k;
  }
  scratch_bytes_ = aligned(prepared_at_ + plan_.prepared_bytes);
  place_states(body);
  add_kernels();
}

void ScanKernel::place_states(const LoopBody& body) {
  for (auto& places : state_at_)
    for (std::size_t k = 0; k < states_; ++k) {
      places.push_back(scratch_bytes_);
      scratch_bytes_ = aligned(scratch_bytes_ + bytes_[k]);
    }
  for (std::size_t k = 0; k < states_ + ys_; ++k) {
    const Root& r = graph_.roots()[k];
    check(r.edge.view.identity(), "an output of a compiled loop is a view");
    next_.push_back(ref(r.edge.node));
    if (k >= states_) bytes_.push_back(bytes_of(body.graph[body.graph.roots()[k].edge.node]));
  }
  for (std::size_t k = 0; k < ys_; ++k) {
    const Edge& e = body.graph.roots()[states_ + k].edge;  // which may be a view
    bytes_[states_ + slices_ + k] =
        static_cast<std::size_t>(*product(e.view.shape()).constant()) * size_of(body.graph[e.node].dtype);
  }
}

Ref ScanKernel::ref(NodeId id) const {
  if (prepared_.node[id]) return {Ref::Scratch, prepared_at_ + plan_.nodes[id].offset};
  if (graph_[id].op != Op::Input) return {Ref::Scratch, plan_.nodes[id].offset};
  const std::size_t k = operand_.at(id);
  return {k < states_ ? Ref::State : k < states_ + slices_ ? Ref::Slice : Ref::Operand, k};
}

void ScanKernel::add_kernels() {
  const std::vector<bool> live = graph_.live();
  std::size_t operands = 0;
  for (NodeId id = 0; id < graph_.size(); ++id) {
    const Node& n = graph_[id];
    if (!live[id] || n.op == Op::Input || (n.kernel->part() && !prepared_.node[id])) continue;
    Step s{dynamic_cast<const HostKernel*>(n.kernel.get()), {}, ref(id), {}, plan_.scratch[id], operands};
    check(s.kernel != nullptr, "a kernel of a loop is not one of the host's");
    for (const Edge& e : n.in) s.in.push_back(ref(e.node));
    for (const Dim& d : n.kernel->sizes()) s.sizes.push_back(*d.constant());
    operands += s.in.size();
    flops_ = repeated(flops_, n.kernel->flops(), prepared_.node[id] ? 1 : length_);
    (prepared_.node[id] ? once_ : steps_).push_back(std::move(s));
  }
  table_at_ = scratch_bytes_;
  scratch_bytes_ += operands * sizeof(void*);
}

struct ScanKernel::Run {
  const ScanKernel& k;
  const HostLaunch& l;
  Parallel& parallel;
  int parity = 0;
  std::int64_t slice = 0;

  std::byte* scratch(std::size_t at) const { return l.scratch + at; }
  std::byte* state(std::size_t i, int of) const { return scratch(k.state_at_[of][i]); }
  const std::byte* operand(std::size_t i) const { return static_cast<const std::byte*>(l.in[i]); }
  std::byte* result(std::size_t i) const { return static_cast<std::byte*>(l.out) + k.result_at_[i]; }
  const std::byte* at(const Ref& r) const {
    switch (r.base) {
      case Ref::Scratch: return scratch(r.at);
      case Ref::Operand: return operand(r.at);
      case Ref::Slice: return operand(r.at) + static_cast<std::size_t>(slice) * k.bytes_[r.at];
      case Ref::State: return state(r.at, parity);
    }
    return nullptr;
  }
  void launch(const Step& s) const {
    const auto** in = reinterpret_cast<const void**>(scratch(k.table_at_)) + s.table;
    for (std::size_t i = 0; i < s.in.size(); ++i) in[i] = at(s.in[i]);
    s.kernel->run({{in, s.in.size()}, scratch(s.out.at), s.sizes, scratch(s.scratch), parallel});
  }
  void step() {
    if (k.keeps_)
      for (std::size_t i = 0; i < k.states_; ++i)
        copy(result(k.states_ + k.ys_ + i) + static_cast<std::size_t>(slice) * k.bytes_[i], state(i, parity), k.bytes_[i]);
    for (const Step& s : k.steps_) launch(s);
    for (std::size_t i = 0; i < k.states_; ++i) copy(state(i, 1 - parity), at(k.next_[i]), k.bytes_[i]);
    for (std::size_t i = 0; i < k.ys_; ++i) {
      const std::size_t bytes = k.bytes_[k.states_ + k.slices_ + i];
      copy(result(k.states_ + i) + static_cast<std::size_t>(slice) * bytes, at(k.next_[k.states_ + i]), bytes);
    }
    parity = 1 - parity;
  }
  // Nothing will change any more: without slices a step is a function of the states alone.
  bool settled() const {
    for (std::size_t i = 0; i < k.states_; ++i)
      if (k.bytes_[i] && std::memcmp(state(i, 0), state(i, 1), k.bytes_[i]) != 0) return false;
    return true;
  }
  // What the steps that are left would have kept and given: what this one did.
  void repeat_results(std::int64_t of, std::int64_t at) const {
    for (std::size_t i = 0; i < k.states_ && k.keeps_; ++i) repeat(result(k.states_ + k.ys_ + i), k.bytes_[i], of, at);
    for (std::size_t i = 0; i < k.ys_; ++i) repeat(result(k.states_ + i), k.bytes_[k.states_ + k.slices_ + i], of, at);
  }
  static void repeat(std::byte* all, std::size_t bytes, std::int64_t of, std::int64_t at) {
    copy(all + static_cast<std::size_t>(at) * bytes, all + static_cast<std::size_t>(of) * bytes, bytes);
  }
  static void copy(std::byte* to, const std::byte* from, std::size_t bytes) {
    if (bytes) std::memcpy(to, from, bytes);
  }
};

void ScanKernel::run(const HostLaunch& l) const {
  Serial serial;
  Run r{*this, l, l.parallel.workers() <= workers_ ? l.parallel : static_cast<Parallel&>(serial)};
  for (const Step& s : once_) r.launch(s);
  for (std::size_t i = 0; i < states_; ++i) Run::copy(r.state(i, 0), r.operand(i), bytes_[i]);
  for (std::int64_t step = 0; step < length_; ++step) {
    r.slice = reverse_ ? length_ - 1 - step : step;
    r.step();
    if (slices_ > 0 || !r.settled()) continue;
    if (ys_ == 0 && !keeps_) break;
    for (const std::int64_t of = r.slice; ++step < length_;) r.repeat_results(of, reverse_ ? length_ - 1 - step : step);
  }
  for (std::size_t i = 0; i < states_; ++i) Run::copy(r.result(i), r.state(i, r.parity), bytes_[i]);
}

// ---- compiling a body ---------------------------------------------------------------------------

bool is_loop(const Node& n) { return n.composite && n.composite->loop; }

// Is every node a kernel that runs for these sizes?
bool compiled_whole(const Graph& g) {
  const std::vector<bool> live = g.live();
  for (NodeId id = 0; id < g.size(); ++id) {
    if (!live[id] || g[id].op == Op::Input) continue;
    if (g[id].op != Op::Kernel) return false;
    for (const Dim& d : g[id].kernel->sizes())
      if (!d.is_constant()) return false;
  }
  return true;
}

CompositeRef with_kernel(const CompositeRef& c, PassLog& log, const CpuOptions& options, int workers) {
  Compiled body = transform(c->loop->graph, generic() | cpu(options));
  for (const PassLog& part : body.log) {
    for (const auto& [what, n] : part.fired) log.fired[what] += n;
    log.notes.insert(log.notes.end(), part.notes.begin(), part.notes.end());
  }
  if (!compiled_whole(body.graph)) return c;
  ++log.fired["loop compiled"];
  auto own = std::make_shared<Composite>(*c);
  const std::vector<TensorType> results = c->infer({}, {});
  const auto kernel = std::make_shared<ScanKernel>(*c->loop, std::move(body.graph), workers, results);
  own->kernels = {std::make_shared<const KernelRule>(
      KernelRule{"cpu", [kernel](const Node&, std::span<const TensorType>) { return kernel; }})};
  return own;
}

}  // namespace

bool has_loops(const Graph& g) { return any_node(g, is_loop); }

Graph compile_loops(const Graph& g, PassLog& log, const CpuOptions& options, int workers) {
  std::map<CompositeRef, CompositeRef> made;
  return copy_graph(g, [&](Graph& dst, NodeId, Node n) {
    if (is_loop(n)) {
      CompositeRef& own = made[n.composite];
      if (!own) own = with_kernel(n.composite, log, options, workers);
      n.composite = own;
    }
    const NodeId id = dst.add(std::move(n));
    return Edge{id, View(dst[id].shape)};
  });
}

}  // namespace lc::host
