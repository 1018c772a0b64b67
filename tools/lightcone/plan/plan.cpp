// lightcone plan: what a training needs on many ranks, without them.
#include <algorithm>
#include <thread>

#include <nlohmann/json.hpp>

#include "../command.h"
#include "../commands.h"
#include "../ranks.h"
#include "lightcone/base/error.h"
#include "lightcone/base/numbers.h"
#include "lightcone/distributed/exchange.h"
#include "lightcone/lowering/types/mixed_precision.h"
#include "lightcone/passes/compiler.h"
#include "report.h"

namespace lc::tool {
namespace {

using Json = nlohmann::ordered_json;

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
  double computing_seconds = 0;  // a step is busy for so long, in kernels that exchange nothing and outside of kernels
  std::size_t memory_bytes = 0;
};
Ran run_steps(const PlanCommand& o, const Graph& g, const Layout& layout, const Cluster& cluster,
              std::shared_ptr<Communicator> ranks) {
  if (o.slowed) ranks = slowed(std::move(ranks), cluster);
  const Program p = compile_rank(g, layout, std::move(ranks), {.threads = o.threads, .runs = true});
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

// Every rank's program begins with it, and so do those of all meshes.
Graph rounded(Graph step, const std::string& to) {
  if (to.empty()) return step;
  return transform(step, autocast(to == "bf16" ? DType::BF16 : DType::F16)).graph;
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
  const Graph g = rounded(step_graph(config, first ? &*first : nullptr, classifier.get()), o.autocast);
  if (o.mesh == "auto") return plan_all(o, g, config);
  Layout layout{config.ranks, config.model, o.microbatches};
  if (!o.mesh.empty()) layout.ranks = {Mesh::parse(o.mesh)};
  if (!o.sharding.empty()) layout.ranks.shard = o.sharding;
  if (o.steps > 0) return plan_and_run(o, g, layout, config.train.batch);
  const Cluster cluster = cluster_of(o, layout.mesh().size());
  const Planned p = planned(o, g, layout, cluster);
  write_stdout(o.json ? json_of(p, cluster).dump(1) + "\n" : text_of(p, cluster, config.train.batch));
}

}  // namespace lc::tool
