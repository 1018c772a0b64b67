// The CPU back end as a compiler: graphs cut into kernels, and one batch of code for all of their loops.
#include "lightcone/backends/cpu/cpu.h"

#include <algorithm>
#include <set>

#include "lightcone/backends/cpu/llvm.h"
#include "lightcone/backends/cpu/lower.h"
#include "lightcone/backends/cpu/machine.h"
#include "lightcone/backends/cpu/thread_pool.h"

namespace lc::host {
namespace {

// The options with what they leave to the machine.
CpuOptions settled(CpuOptions o) {
  if (!o.machine) o.machine = this_machine();
  o.jit.vector = static_cast<int>(o.machine->vector);
  return o;
}

using Loops = std::vector<std::shared_ptr<LoopKernel>>;

void compile_loops(const Loops& loops, const JitOptions& o, PassLog& log) {
  const bool llvm = o.compiler == kLlvm;
  const ir::llvm::Target target = llvm ? find_llvm(o).target(o.vector) : ir::llvm::Target{};
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
  std::replace_if(words.begin(), words.end(), [](unsigned char c) { return c < ' ' || c == 127; }, ' ');
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
  log.notes.push_back(cat(problem.empty() ? "neither a C compiler nor LLVM's library was found" : problem,
                          ": kernels are interpreted, some 14 times slower; install gcc, clang or libllvm14, or name a "
                          "compiler that works in LIGHTCONE_CC"));
}

}  // namespace

std::vector<Origin::Step> steps(const Graph& g, NodeId result, const std::vector<NodeId>& operands) {
  std::set<NodeId> seen(operands.begin(), operands.end()), computed{result};
  std::vector<NodeId> stack{result};
  while (!stack.empty()) {
    const NodeId id = stack.back();
    stack.pop_back();
    for (const Edge& e : g[id].in)
      if (info(g[e.node].op).kind != Kind::Leaf && seen.insert(e.node).second) {
        computed.insert(e.node);
        stack.push_back(e.node);
      }
  }
  std::vector<Origin::Step> made;
  for (NodeId id : computed) made.push_back({info(g[id].op).name, g[id].where});
  return made;
}

}  // namespace lc::host

namespace lc {

Compiler cpu(CpuOptions options) {
  return Compiler({"cpu", [options](const Graph& g, PassLog& log) {
                     const CpuOptions o = host::settled(options);
                     host::KernelNames names;
                     host::Lowered l = host::lower(g, host::threads(o.threads), log, o, names);
                     host::install(l.loops, o, log);
                     return std::move(l.graph);
                   }});
}

std::vector<Graph> cpu_batch(std::vector<const Graph*> graphs, const CpuOptions& wanted, PassLog* log) {
  const CpuOptions options = host::settled(wanted);
  const auto parallel = host::threads(options.threads);
  PassLog whole;
  whole.pass = "cpu";
  std::vector<Graph> done;
  host::Loops loops;
  host::KernelNames names;
  for (const Graph* g : graphs) {
    PassLog own;
    host::Lowered l = host::lower(*g, parallel, own, options, names);
    loops.insert(loops.end(), l.loops.begin(), l.loops.end());
    done.push_back(std::move(l.graph));
  }
  host::install(loops, options, whole);
  if (log) *log = std::move(whole);
  return done;
}

}  // namespace lc
