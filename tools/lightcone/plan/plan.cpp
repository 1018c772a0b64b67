// lightcone plan: what a training needs on many ranks, without them.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <thread>

#include <nlohmann/json.hpp>

#include "../command.h"
#include "../commands.h"
#include "../ranks.h"
#include "lightcone/backends/cpu/target/limits.h"
#include "lightcone/backends/cpu/threads/thread_pool.h"
#include "lightcone/base/error.h"
#include "lightcone/base/numbers.h"
#include "lightcone/distributed/exchange.h"
#include "lightcone/distributed/sharding/sharding.h"
#include "lightcone/distributed/sharding/specs.h"
#include "report.h"

namespace lc::tool {
namespace {

using Json = nlohmann::ordered_json;

// The ranks on one machine. Those behind slowed links are all on this one.
int ranks_here(const PlanCommand& o, const Cluster& c, int ranks) {
  return o.slowed ? ranks : std::min(ranks, c.ranks_per_machine);
}

// The machines, as the options describe them; what they leave out is measured here.
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

// Ranks that wait as long as slower links would take do so after they have exchanged on the machine's own.
Cluster with_both_links(Cluster c) {
  const double turns = c.ranks_per_processor;
  c.between.latency += turns * c.within.latency;
  c.between.seconds_per_byte += turns * c.within.seconds_per_byte;
  c.between.seconds_per_message += turns * c.within.seconds_per_message;
  c.copied_between = c.within;
  return c;
}

RankOptions rank_options(const PlanCommand& o) {
  RankOptions r{.threads = o.threads};
  if (!o.autocast.empty()) r.autocast = o.autocast == "bf16" ? DType::BF16 : DType::F16;
  return r;
}

Planned planned(const PlanCommand& o, const Graph& g, const Layout& layout, const Cluster& cluster) {
  StepPlanOptions with{.overlap = o.overlap};
  const RankOptions r = rank_options(o);
  if (o.measure) {
    KernelTimes t = measure_kernels(g, layout, r, ranks_here(o, cluster, layout.mesh().size()), 7);
    with.kernel_seconds = std::move(t.kernel_seconds), with.other_seconds = t.other_seconds;
  }
  const Program p = compile_rank(g, layout, planned_ranks(layout.mesh().size()), r);
  return {layout, plan_step(p, o.slowed ? with_both_links(cluster) : cluster, with)};
}

// ---- all meshes -----------------------------------------------------------------------------------------------------

// Bytes of the parameters and states of a rank, which are known before anything is compiled.
double state_bytes(const Graph& g, const Layout& layout) {
  const ShardSpecs specs = specs_of(g, layout);
  std::vector<bool> is_state(g.size());
  for (const Assignment& a : g.assignments()) is_state[a.state] = true;
  double sum = 0;
  for (NodeId id = 0; id < g.size(); ++id) {
    const Node& n = g[id];
    if (n.op != Op::Input || !(n.parameter || is_state[id])) continue;
    const auto s = distributed::sharding_of(layout.mesh(), specs, n.name, n.shape);
    sum += static_cast<double>(product(distributed::local(layout.mesh(), n.shape, s)).constant().value_or(0)) *
           static_cast<double>(size_of(n.dtype));
  }
  return sum;
}

struct Candidate {
  Layout layout;
  std::optional<Planned> planned;  // none: it is impossible, or too large at once
  std::string why_not;
};

Candidate tried(const PlanCommand& o, const Graph& g, const Layout& layout, const Cluster& cluster) {
  Candidate c{layout, {}, ""};
  try {
    const double least = state_bytes(g, layout);
    if (cluster.memory_bytes > 0 && least > cluster.memory_bytes) {
      c.why_not = str_cat("parameters and states alone are ", human_bytes(least));
      return c;
    }
    c.planned = planned(o, g, layout, cluster);
    const auto total = static_cast<double>(c.planned->step.memory.total());
    if (cluster.memory_bytes > 0 && total > cluster.memory_bytes)
      c.why_not = str_cat("a rank needs ", human_bytes(total), ", of which ",
                          human_bytes(static_cast<double>(c.planned->step.memory.values)), " are activations");
  } catch (const Error& e) {
    c.why_not = e.what();
  }
  return c;
}

std::vector<Candidate> all_meshes(const PlanCommand& o, const Graph& g, const ModelConfig& config,
                                  const Cluster& cluster) {
  std::vector<Candidate> all;
  for (int model = 1; model <= o.ranks; ++model) {
    if (o.ranks % model) continue;
    const int data = o.ranks / model;
    for (const char* shard : {"none", "optimizer", "full"}) {
      if ((shard != std::string_view("none") && data == 1) || (!o.sharding.empty() && shard != o.sharding)) continue;
      all.push_back(tried(o, g, {{Mesh({{"data", data}, {"model", model}}), shard}, config}, cluster));
      if (!all.back().planned && all.back().why_not.find("alone") == std::string::npos) break;  // whatever is divided
    }
  }
  std::ranges::stable_sort(all, [](const Candidate& a, const Candidate& b) {
    const auto rank = [](const Candidate& c) {
      return std::pair(!c.why_not.empty(), c.planned ? c.planned->step.seconds : 1e300);
    };
    return rank(a) < rank(b);
  });
  return all;
}

std::string table_of(const std::vector<Candidate>& all) {
  std::string s =
      "mesh                    sharding    memory a rank   a step     computing  exchanges, exposed  bound by\n";
  for (const Candidate& c : all) {
    const std::string head = formatted("%-22s  %-10s", c.layout.mesh().str().c_str(), c.layout.ranks.shard.c_str());
    if (!c.planned || !c.why_not.empty()) {
      s += str_cat(head, "  no: ", c.why_not, "\n");
      continue;
    }
    const StepPlan& t = c.planned->step;
    s += formatted("%s  %13s  %9s  %9s  %8s, %8s  %s\n", head.c_str(),
                   human_bytes(static_cast<double>(t.memory.total())).c_str(), human_seconds(t.seconds).c_str(),
                   human_seconds(t.computing_seconds()).c_str(), human_seconds(t.exchange_seconds).c_str(),
                   human_seconds(t.exposed_seconds).c_str(), t.bound().c_str());
  }
  return s;
}

void plan_all(const PlanCommand& o, const Graph& g, const TrainConfig& config) {
  if (o.ranks < 1) throw Error("plan", "--mesh auto needs the number of ranks: --ranks 8");
  const Cluster cluster = cluster_of(o, o.ranks);
  const std::vector<Candidate> all = all_meshes(o, g, config.model, cluster);
  const bool found = !all.empty() && all.front().why_not.empty();
  if (o.json) {
    Json j = Json::array();
    for (const Candidate& c : all) {
      Json one = c.planned ? json_of(*c.planned, cluster)
                           : Json{{"mesh", c.layout.mesh().str()}, {"sharding", c.layout.ranks.shard}, {"fits", false}};
      if (!c.why_not.empty()) one["why_not"] = c.why_not;
      j.push_back(std::move(one));
    }
    write_stdout(j.dump(1) + "\n");
    return;
  }
  write_stdout(table_of(all));
  if (!found) throw Error("plan", str_cat("no mesh of ", o.ranks, " ranks fits; the lines above say why"));
  write_stdout("\nthe quickest that fits:\n" + text_of(*all.front().planned, cluster, config.train.batch));
}

// ---- ranks that mpirun has started ----------------------------------------------------------------------------------

void print_links(const PlanCommand& o) {
  constexpr std::size_t kShort = 1024;
  const auto ranks = mpi_processes({}), short_messages = mpi_processes({.message_bytes = kShort});
  if (ranks->size() < 2)
    throw Error("plan", "links are measured by at least two ranks: mpirun -n 2 lightcone plan ...");
  const MeasuredLinks m = measure_links(*ranks, *short_messages, kShort);
  if (ranks->rank() != 0) return;
  const Link& l = m.link;
  if (o.json) {
    const Json j{{"latency", l.latency},
                 {"bandwidth", 1 / l.seconds_per_byte},
                 {"seconds_per_message", l.seconds_per_message},
                 {"sums", m.reduced_bytes_per_second}};
    write_stdout(j.dump() + "\n");
    return;
  }
  write_stdout(formatted("--links %.3gus,%.4gGB/s,%.3gus --sums %.4gGB/s\n", 1e6 * l.latency, 1e-9 / l.seconds_per_byte,
                         1e6 * l.seconds_per_message, 1e-9 * m.reduced_bytes_per_second));
}

struct Ran {
  double seconds = 0;
  double computing_seconds = 0;  // of a step, in kernels that exchange nothing, and outside of kernels
  std::size_t memory_bytes = 0;
};
Ran run_steps(const PlanCommand& o, const Graph& g, const Layout& layout, const Cluster& cluster,
              std::shared_ptr<Communicator> ranks) {
  if (o.slowed) ranks = slowed(std::move(ranks), cluster);
  const Program p = compile_rank(g, layout, std::move(ranks), rank_options(o));
  Context c(p);
  fill(p, c);
  for (int k = 0; k < 3; ++k) c.run();
  std::vector<double> all;
  for (int k = 0; k < o.steps; ++k) {
    const double begin = now();
    c.run();
    all.push_back(now() - begin);
  }
  const KernelTimes t = kernel_times(p, c, o.steps);
  double computing = t.other_seconds;
  for (NodeId id = 0; id < p.graph().size(); ++id)
    if (!distributed::exchanging(p.graph()[id])) computing += t.kernel_seconds[id];
  return {median(all), computing, c.memory_bytes()};
}

// Rank 0 predicts while the others wait for it, and then all of them run.
void plan_and_run(const PlanCommand& o, const Graph& g, const Layout& layout, std::int64_t batch) {
  const auto ranks = mpi_processes({});
  if (ranks->size() != layout.mesh().size())
    throw Error("plan", str_cat("the mesh (", layout.mesh(), ") has ", layout.mesh().size(),
                                " ranks, and mpirun started ", ranks->size()));
  const Collectives all(layout.mesh(), ranks);
  all.check_same("the graph", g.str());
  const Cluster cluster = cluster_of(o, layout.mesh().size());
  std::optional<Planned> p;
  if (ranks->rank() == 0) p = planned(o, g, layout, cluster);
  all.check_same("what follows the plan", "steps");
  const Ran ran = run_steps(o, g, layout, cluster, ranks);
  if (ranks->rank() != 0) return;
  if (o.json) {
    Json j = json_of(*p, cluster);
    j["ran"] = Json{{"steps", o.steps},
                    {"seconds", ran.seconds},
                    {"computing", ran.computing_seconds},
                    {"memory", ran.memory_bytes}};
    write_stdout(j.dump(1) + "\n");
    return;
  }
  write_stdout(
      text_of(*p, cluster, batch) +
      formatted("%d steps took %s each (median), %+.0f %% of the prediction; computing %s of it, %s predicted\n",
                o.steps, human_seconds(ran.seconds).c_str(), 100 * (ran.seconds / p->step.seconds - 1),
                human_seconds(ran.computing_seconds).c_str(), human_seconds(p->step.computing_seconds()).c_str()));
}

}  // namespace

void plan(const PlanCommand& given) {
  PlanCommand o = given;
  if (o.threads == 0) o.threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  if (o.measure_links) return print_links(o);
  if (o.config.empty()) throw Error("plan", "CONFIG is missing: a configuration of `lightcone train`");
  TrainConfig config = read_train_config(o.config);
  if (o.mesh.empty() && config.ranks.mesh.axes().empty())
    throw Error("plan", "--mesh is missing, as the configuration's own: data=2,model=2, or auto with --ranks");
  const std::optional<Pretrained> first = Pretrained::of(config);
  const std::unique_ptr<PretrainedClassifier> classifier = PretrainedClassifier::of(config);
  const Graph g = step_graph(config, first ? &*first : nullptr, classifier.get());
  if (o.mesh == "auto") return plan_all(o, g, config);
  Layout layout{config.ranks, config.model};
  if (!o.mesh.empty()) layout.ranks = {Mesh::parse(o.mesh)};
  if (!o.sharding.empty()) layout.ranks.shard = o.sharding;
  if (o.steps > 0) return plan_and_run(o, g, layout, config.train.batch);
  const Cluster cluster = cluster_of(o, layout.mesh().size());
  const Planned p = planned(o, g, layout, cluster);
  write_stdout(o.json ? json_of(p, cluster).dump(1) + "\n" : text_of(p, cluster, config.train.batch));
}

}  // namespace lc::tool
