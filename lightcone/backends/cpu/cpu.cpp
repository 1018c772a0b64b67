// The CPU back end as a compiler: graphs cut into kernels, and one batch of code for all of their loops.
#include "lightcone/backends/cpu/cpu.h"

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

void install(std::vector<std::shared_ptr<LoopKernel>>& loops, const CpuOptions& o, PassLog* log) {
  const std::string compiler = o.compiler ? find_compiler(o.jit) : "";
  if (compiler.empty()) return;
  const bool llvm = compiler == kLlvm;
  const ir::llvm::Target target = llvm ? find_llvm(o.jit).target(o.jit.vector) : ir::llvm::Target{};
  std::vector<Source> sources;
  std::set<std::string> known;  // equal kernels share a name: one text is enough
  for (const auto& k : loops) {
    const bool first = known.insert(k->name()).second;
    sources.push_back({k->name(), !first ? "" : llvm ? k->llvm_text(target) : k->text(k->name())});
  }
  const Jitted done = jit(sources, o.jit);
  const auto code = std::make_shared<const std::vector<std::shared_ptr<void>>>(done.libraries);
  for (std::size_t k = 0; k < loops.size(); ++k) loops[k]->install(done.functions[k], code);
  if (log && done.compiled) log->fired[llvm ? "LLVM units compiled" : "C units compiled"] = done.compiled;
  if (log && done.cached) log->fired[llvm ? "LLVM units from cache" : "C units from cache"] = done.cached;
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
                     host::Lowered l = host::lower(g, host::threads(o.threads), log, o);
                     host::install(l.loops, o, &log);
                     return std::move(l.graph);
                   }});
}

std::vector<Graph> cpu_batch(std::vector<const Graph*> graphs, const CpuOptions& wanted) {
  const CpuOptions options = host::settled(wanted);
  const auto parallel = host::threads(options.threads);
  std::vector<Graph> done;
  std::vector<std::shared_ptr<host::LoopKernel>> loops;
  for (const Graph* g : graphs) {
    PassLog log;
    host::Lowered l = host::lower(*g, parallel, log, options);
    loops.insert(loops.end(), l.loops.begin(), l.loops.end());
    done.push_back(std::move(l.graph));
  }
  host::install(loops, options, nullptr);
  return done;
}

}  // namespace lc
