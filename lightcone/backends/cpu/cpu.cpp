// The CPU back end as a compiler: graphs cut into kernels, and one batch of code for all of their loops.
#include "lightcone/backends/cpu/cpu.h"

#include <algorithm>
#include <mutex>
#include <set>

#include "lightcone/backends/cpu/conv/filter_gradient.h"
#include "lightcone/backends/cpu/conv/nhwc.h"
#include "lightcone/backends/cpu/cross_compile_device.h"
#include "lightcone/backends/cpu/jit/llvm.h"
#include "lightcone/backends/cpu/lower.h"
#include "lightcone/backends/cpu/machine.h"
#include "lightcone/backends/cpu/scan.h"
#include "lightcone/backends/cpu/threads/thread_pool.h"
#include "lightcone/device/fork.h"
#include "lightcone/device/host_device.h"
#include "lightcone/device/loop_plan.h"
#include "lightcone/lowering/attention.h"
#include "lightcone/lowering/canonical.h"
#include "lightcone/lowering/order.h"
#include "lightcone/passes/composites.h"

namespace lc::backends::cpu {
namespace {

// The options with what they leave to the machine, and the threads: made when the first graph is compiled.
class ResolvedOptions {
 public:
  explicit ResolvedOptions(CpuOptions o) : options_(std::move(o)) {}
  const CpuOptions& options() { return settle(), options_; }
  const std::shared_ptr<Device>& device() { return settle(), device_; }

 private:
  void settle() {
    std::call_once(once_, [&] {
      if (!options_.machine) options_.machine = this_machine();
      if (!options_.target) options_.target = this_target();
      options_.jit.isa = options_.target->isa;
      options_.jit.vector = static_cast<int>(options_.machine->vector);
      const auto pool = threads(options_.threads);
      device_ = runs_here(*options_.target) ? host_device(pool) : cross_compile_device(pool, str(*options_.target));
    });
  }
  CpuOptions options_;
  std::shared_ptr<Device> device_;
  std::once_flag once_;
};

// What brings a graph into the form in which it is cut. Without them it computes the same, but for those that are
// required.
std::vector<Pass> canonical_passes(const CpuOptions& o, const std::shared_ptr<ResolvedOptions>& options_of) {
  const Target target = o.target ? *o.target : this_target();
  std::vector<Pass> passes;
  const auto add = [&](const char* name, std::function<bool(const Graph&)> applies,
                       std::function<Graph(const Graph&, PassLog&)> run, bool required = false) {
    passes.push_back({name, std::move(run), {}, required, std::move(applies)});
  };
  const auto is_foreign = [](const Graph& g, const Node& n) { return n.op == Op::Composite && !has_kernel(g, n); };
  add("compile-loops", has_loops, [options_of](const Graph& g, PassLog& log) {
    return compile_loops(g, log, options_of->options(), options_of->device()->workers());
  });
  add(
      "inline-composites", [=](const Graph& g) { return any_node(g, [&](const Node& n) { return is_foreign(g, n); }); },
      [=](const Graph& g, PassLog& log) { return inline_composites(g, log, is_foreign); }, true);
  add("unroll-windows", lowering::has_windows, lowering::unroll_windows);
  // Asked when there is a convolution: the answer may be the system's (target/target.h).
  const auto bf16 = [target, p = o.precision] { return p == Precision::Medium && bf16_is_fast(target); };
  add(
      "channels-last",
      [target, bf16](const Graph& g) {  // tiles of bf16 products want pixels last
        return may_keep_channels_last(g) && (!bf16() || bf16_dots_are_fast(target));
      },
      [target, bf16](const Graph& g, PassLog& log) {
        auto nhwc = channels_last(g, log, target, bf16());
        return nhwc ? std::move(*nhwc) : g.clone();
      });
  add("filter-gradients", may_have_filter_gradients, filter_gradients_last);
  add(
      "materialize-views", {}, [](const Graph& g, PassLog&) { return lowering::make_contiguous(g); }, true);
  add(
      "fuse-attention",
      [](const Graph& g) { return any_node(g, [](const Node& n) { return n.op == Op::Exp || n.op == Op::Exp2; }); },
      [options_of](const Graph& g, PassLog& log) {
        return lowering::fuse_attention(g, log, [&](const Graph& from, NodeId result, auto match) {
          auto k = attention(from, result, std::move(match), options_of->device(), options_of->options());
          return lowering::NamedKernel{k, k->name()};
        });
      });
  add(
      "prepare-contractions",
      [](const Graph& g) {
        return any_node(g, [&](const Node& n) { return n.op == Op::SumReduce && g[n.in[0].node].op == Op::Mul; });
      },
      [target](const Graph& g, PassLog& log) {
        return lowering::prepare_contractions(g, log, [&](const Graph& of, const lowering::Factors& f) {
          return find_convolution(of, f, target).has_value();
        });
      });
  return passes;
}

using Loops = std::vector<std::shared_ptr<LoopKernel>>;

void compile_loops(const Loops& loops, const JitOptions& o, PassLog& log) {
  const bool llvm = o.compiler == kLlvm;
  const codegen::llvm::Target target = llvm ? find_llvm(o).target(o.vector) : codegen::llvm::Target{};
  std::vector<Source> sources;
  std::set<std::string> known;  // equal kernels share a name: one text is enough
  for (const auto& k : loops) {
    const bool first = known.insert(k->name()).second;
    sources.push_back({k->name(), !first ? "" : llvm ? k->llvm_text(target) : k->text(k->name())});
  }
  const Jitted done = jit(sources, o);
  const auto code = std::make_shared<const std::vector<std::shared_ptr<void>>>(done.libraries);
  for (std::size_t k = 0; k < loops.size(); ++k) loops[k]->install(done.functions[k], code);
  if (done.compiled) log.fired[llvm ? "LLVM units compiled" : "C units compiled"] = done.compiled;
  if (done.cached) log.fired[llvm ? "LLVM units from cache" : "C units from cache"] = done.cached;
  if (!done.cache_problem.empty()) log.notes.push_back(done.cache_problem);
}

std::string on_one_line(std::string words) {
  std::replace_if(
      words.begin(), words.end(), [](unsigned char c) { return c < ' ' || c == 127; }, ' ');
  return words;
}

// By the compiler that is there; where it does not work, by LLVM's library; else the loops stay interpreted, which is
// never silent. A compiler that was named is not replaced by another, and none is a wish like any other.
void install(const Loops& loops, const CpuOptions& o, PassLog& log) {
  if (loops.empty()) return;
  JitOptions jit = o.jit;
  jit.compiler = o.compiler ? find_compiler(o.jit) : "";
  const bool named = !o.compiler || compiler_named(o.jit);
  std::string problem;
  while (!jit.compiler.empty()) {
    try {
      compile_loops(loops, jit, log);
      if (!problem.empty()) log.notes.push_back(problem + "; LLVM's library compiled the kernels instead");
      return;
    } catch (const CompilerUnfit& e) {
      if (named) throw;
      problem += (problem.empty() ? "" : "; ") + on_one_line(e.problem());
    }
    jit.compiler = jit.compiler != kLlvm && !find_llvm(jit).path.empty() ? kLlvm : "";
  }
  log.fired["loops interpreted"] = static_cast<int>(loops.size());
  if (named) return;
  log.notes.push_back(
      str_cat(problem.empty() ? "neither a C compiler nor LLVM's library was found" : problem,
              ": kernels are interpreted, 2 to 18 times slower; install gcc, clang or libllvm14, or name a "
              "compiler that works in LIGHTCONE_CC"));
}

}  // namespace

}  // namespace lc::backends::cpu

namespace lc {

Compiler cpu(CpuOptions options) {
  if (options.threads < 0)
    throw Error("cpu", str_cat(options.threads, " threads: there is at least 1, and 0 is one for each core"));
  const auto options_of = std::make_shared<backends::cpu::ResolvedOptions>(options);
  Compiler all;
  for (Pass& p : backends::cpu::canonical_passes(options, options_of)) all = all | Compiler(std::move(p));
  all = all | Compiler({"cpu", [options_of](const Graph& g, PassLog& log) {
                          codegen::KernelNames names;
                          backends::cpu::Lowered l =
                              backends::cpu::lower(g, options_of->device(), log, options_of->options(), names);
                          backends::cpu::install(l.loops, options_of->options(), log);
                          return std::move(l.graph);
                        }});
  all = all |
        Compiler({"schedule-state-updates", lowering::schedule_state_updates, {}, false, lowering::has_large_updates});
  const auto several = [options_of](const Graph&) { return options_of->device()->workers() > 1; };
  return all |
         Compiler(
             {"run-concurrently", [](const Graph& g, PassLog&) { return run_concurrently(g); }, {}, false, several});
}

std::vector<Graph> cpu_batch(std::vector<const Graph*> graphs, const CpuOptions& wanted, PassLog* log) {
  const auto options_of = std::make_shared<backends::cpu::ResolvedOptions>(wanted);
  const std::vector<Pass> passes = backends::cpu::canonical_passes(wanted, options_of);
  PassLog whole;
  whole.pass = "cpu";
  std::vector<Graph> done;
  backends::cpu::Loops loops;
  codegen::KernelNames names;
  for (const Graph* given : graphs) {
    PassLog own;
    Graph g = given->clone();
    for (const Pass& p : passes)
      if (!p.applies || p.applies(g)) g = p.run(g, own);
    backends::cpu::Lowered l = backends::cpu::lower(g, options_of->device(), own, options_of->options(), names);
    loops.insert(loops.end(), l.loops.begin(), l.loops.end());
    Graph ordered = lowering::schedule_state_updates(l.graph, own);
    done.push_back(options_of->device()->workers() > 1 ? run_concurrently(ordered) : std::move(ordered));
  }
  backends::cpu::install(loops, options_of->options(), whole);
  if (log) *log = std::move(whole);
  return done;
}

}  // namespace lc
