// The plan of a layout on machines that the options of `lightcone plan` describe.
#include "planned.h"

#include <algorithm>
#include <thread>

#include "lightcone/backends/cpu/target/limits.h"
#include "lightcone/backends/cpu/threads/thread_pool.h"
#include "lightcone/base/error.h"

namespace lc::tool {
namespace {

// The ranks on one machine. Those behind slowed links are all on this one.
int ranks_here(const PlanCommand& o, const Cluster& c, int ranks) {
  return o.slowed ? ranks : std::min(ranks, c.ranks_per_machine);
}

}  // namespace

Cluster cluster_of(const PlanCommand& o, int ranks) {
  Cluster c;
  if (o.ranks_per_machine > 0) c.ranks_per_machine = o.ranks_per_machine;
  if (!o.links.empty()) {
    const std::size_t semicolon = std::min(o.links.find(';'), o.links.size());
    c.between = c.within = parse_link(std::string_view(o.links).substr(0, semicolon));
    if (semicolon < o.links.size()) c.within = parse_link(std::string_view(o.links).substr(semicolon + 1));
  } else if (ranks > 1) {
    throw Error("plan",
                "--links is missing: the latency and the bandwidth of the links between ranks, as in "
                "20us,4GB/s. `mpirun -n 2 lightcone plan --measure-links` measures those of this machine");
  }
  if (!o.memory.empty()) c.memory_bytes = parse_quantity(o.memory, "B");
  const bool elsewhere = !o.flops.empty();
  if (elsewhere) {
    c.flops_per_second = parse_quantity(o.flops, "FLOP/s");
    if (o.bandwidth.empty()) throw Error("plan", "--flops is given, and --bandwidth is not: 3.3TB/s");
    c.bytes_per_second = parse_quantity(o.bandwidth, "B/s");
  } else {
    const auto pool = backends::cpu::threads(o.threads);
    c.flops_per_second = backends::cpu::fma_rate(*pool), c.bytes_per_second = backends::cpu::read_bandwidth(*pool);
  }
  c.reduced_bytes_per_second = !o.sums.empty() ? parse_quantity(o.sums, "B/s")
                               : elsewhere     ? c.bytes_per_second
                                               : measure_sums();
  const int cores = o.cores > 0 ? o.cores : elsewhere ? 0 : static_cast<int>(std::thread::hardware_concurrency());
  if (cores > 0) {
    const double here = ranks_here(o, c, ranks);
    c.ranks_per_processor = std::max(1.0, here * o.threads / cores);
    c.spare_processors = std::clamp(cores / here - o.threads, 0.0, 1.0);
  }
  return c;
}

namespace {

// Ranks that wait as long as slower links would take do so after they have exchanged on the machine's own.
Cluster with_both_links(Cluster c) {
  const double turns = c.ranks_per_processor;
  c.between.latency += turns * c.within.latency;
  c.between.seconds_per_byte += turns * c.within.seconds_per_byte;
  c.between.seconds_per_message += turns * c.within.seconds_per_message;
  c.copied_between = c.within;
  return c;
}

StepPlan plan_rank(const PlanCommand& o, const Graph& g, const Layout& layout, const Cluster& cluster, int rank) {
  StepPlanOptions with{.overlap = o.overlap};
  if (o.measure) {
    KernelTimes t = measure_kernels(g, layout, rank, o.threads, ranks_here(o, cluster, layout.mesh().size()), 7);
    with.kernel_seconds = std::move(t.kernel_seconds), with.other_seconds = t.other_seconds;
  }
  const auto alone = planned_ranks(layout.mesh().size(), rank);
  return plan_step(compile_rank(g, layout, alone, {.threads = o.threads}),
                   o.slowed ? with_both_links(cluster) : cluster, with);
}

}  // namespace

Planned planned(const PlanCommand& o, const Graph& g, const Layout& layout, const Cluster& cluster) {
  if (layout.stages() == 1) return {layout, plan_rank(o, g, layout, cluster, 0)};
  if (o.overlap) throw Error("plan", "what could be reached at best is not planned for the stages of a pipeline");
  std::vector<StepPlan> stages;
  for (const int rank : layout.rank_of_each_stage()) stages.push_back(plan_rank(o, g, layout, cluster, rank));
  PipelinePlan p = join_stages(std::move(stages));
  StepPlan step = p.stages[p.slowest];
  step.memory = p.stages[p.fullest].memory;
  return {layout, std::move(step), std::move(p)};
}

}  // namespace lc::tool
