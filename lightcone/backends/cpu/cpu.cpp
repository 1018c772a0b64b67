// The CPU back end as a compiler: partitions graphs into kernels and compiles the loops of all of them in one batch.
#include "lightcone/backends/cpu/cpu.h"

#include <algorithm>
#include <mutex>
#include <set>

#include "lightcone/backends/cpu/bf16_propagation.h"
#include "lightcone/backends/cpu/conv/algorithms.h"
#include "lightcone/backends/cpu/conv/filter_gradients_last.h"
#include "lightcone/backends/cpu/conv/nhwc.h"
#include "lightcone/backends/cpu/cross_compile_device.h"
#include "lightcone/backends/cpu/jit/llvm.h"
#include "lightcone/backends/cpu/lower.h"
#include "lightcone/backends/cpu/machine.h"
#include "lightcone/backends/cpu/scan.h"
#include "lightcone/backends/cpu/threads/thread_pool.h"
#include "lightcone/device/fork.h"
#include "lightcone/device/host_device.h"
#include "lightcone/lowering/attention.h"
#include "lightcone/lowering/pipeline.h"

namespace lc::backends::cpu {
namespace {

// Options with their machine-dependent defaults filled in, and the device with its thread pool. Both are created
// lazily, when the first graph is compiled.
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

using Loops = std::vector<std::shared_ptr<LoopKernel>>;

void compile_kernels(const Loops& loops, const JitOptions& o, PassLog& log) {
  const bool llvm = o.compiler == kLlvm;
  const codegen::llvm::Target target = llvm ? find_llvm(o).target(o.vector) : codegen::llvm::Target{};
  std::vector<Source> sources;
  std::set<std::string> known;  // equal kernels share a name and are compiled once
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

// Compiles the loops with the available compiler; if it does not work, with LLVM's library; otherwise the loops stay
// interpreted, and a note reports it. A compiler that the user named is never replaced, and `compiler = false` counts
// as an explicit choice, which needs no note.
void install(const Loops& loops, const CpuOptions& o, PassLog& log) {
  if (loops.empty()) return;
  JitOptions jit = o.jit;
  jit.compiler = o.compiler ? find_compiler(o.jit) : "";
  const bool named = !o.compiler || compiler_named(o.jit);
  std::string problem;
  while (!jit.compiler.empty()) {
    try {
      compile_kernels(loops, jit, log);
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

// Returns the traits of the CPU for the pipeline.
lowering::DeviceTraits traits(const CpuOptions& o, const std::shared_ptr<ResolvedOptions>& resolved) {
  const Target target = o.target ? *o.target : this_target();
  // This is evaluated only for graphs with a convolution, because it may request AMX tiles from the system
  // (target/target.h).
  const auto bf16 = [target, p = o.precision] { return p == Precision::Medium && bf16_is_fast(target); };
  lowering::DeviceTraits d;
  d.has_kernel = has_kernel;
  d.compile_loops = [resolved](const Graph& g, PassLog& log) {
    return compile_loops(g, log, resolved->options(), resolved->device()->workers());
  };
  d.channels_last = Pass{.name = "channels-last",
                         .run =
                             [target, bf16](const Graph& g, PassLog& log) {
                               auto nhwc =
                                   channels_last(g, log, target, bf16() ? Precision::Medium : Precision::Highest);
                               return nhwc ? std::move(*nhwc) : g.clone();
                             },
                         .applies =
                             [target, bf16, p = o.precision](const Graph& g) {
                               if (!may_keep_channels_last(g, target, p)) return false;
                               return target.isa != Isa::Neon || !bf16();  // Arm's bf16 products need pixels last
                             }};
  d.filter_gradients =
      Pass{.name = "filter-gradients",
           .run = [target, p = o.precision](const Graph& g,
                                            PassLog& log) { return filter_gradients_last(g, log, target, p); },
           .applies = [target, p = o.precision](const Graph& g) { return may_have_filter_gradients(g, target, p); }};
  d.fuse_attention = [resolved](const Graph& g, PassLog& log, lowering::AttentionFusion fuse) {
    return fuse(g, log, [&](const Graph& from, NodeId result, auto match) {
      auto k = attention(from, result, std::move(match), resolved->device(), resolved->options());
      return lowering::NamedKernel{k, k->name()};
    });
  };
  d.is_convolution = [target, p = o.precision](const Graph& g, const lowering::Factors& f) {
    return find_convolution(g, f, target, p).has_value();
  };
  d.bf16_propagation =
      Pass{.name = "bf16-propagation",
           .run = [resolved](const Graph& g, PassLog& log) { return bf16_propagation(g, log, resolved->options()); },
           .applies = [target, p = o.precision](const Graph& g) { return may_propagate_bf16(g, p, target); }};
  d.emit_kernels = {.name = "cpu", .run = [resolved](const Graph& g, PassLog& log) {
                      codegen::KernelNames names;
                      Lowered l = lower(g, resolved->device(), log, resolved->options(), names);
                      install(l.loops, resolved->options(), log);
                      return std::move(l.graph);
                    }};
  // Also where one thread runs the kernels: their order must not depend on how many there are.
  d.run_concurrently = Pass{.name = "run-concurrently",
                            .run = [](const Graph& g, PassLog&) { return run_concurrently(g); },
                            .applies = has_small_kernels};
  return d;
}

}  // namespace

}  // namespace lc::backends::cpu

namespace lc {

Compiler cpu(CpuOptions options) {
  if (options.threads < 0)
    throw Error("cpu", str_cat(options.threads, " threads: there is at least 1, and 0 is one for each core"));
  const auto resolved = std::make_shared<backends::cpu::ResolvedOptions>(options);
  return lowering::pipeline(backends::cpu::traits(options, resolved));
}

std::vector<Graph> cpu_batch(std::vector<const Graph*> graphs, const CpuOptions& wanted, PassLog* log) {
  using namespace backends::cpu;
  const auto resolved = std::make_shared<ResolvedOptions>(wanted);
  const lowering::DeviceTraits device = traits(wanted, resolved);
  const std::vector<Pass> before = lowering::canonical_passes(device), after = lowering::scheduling_passes(device);
  PassLog whole;
  whole.pass = "cpu";
  std::vector<Graph> done;
  Loops loops;
  codegen::KernelNames names;
  for (const Graph* given : graphs) {
    PassLog own;
    const Graph g = lowering::run_passes(*given, before, own);
    Lowered l = lower(g, resolved->device(), own, resolved->options(), names);
    loops.insert(loops.end(), l.loops.begin(), l.loops.end());
    done.push_back(lowering::run_passes(l.graph, after, own));
  }
  install(loops, resolved->options(), whole);
  if (log) *log = std::move(whole);
  return done;
}

}  // namespace lc
