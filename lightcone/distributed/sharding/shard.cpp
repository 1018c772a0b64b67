#include "lightcone/distributed/sharding/shard.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>
#include <unordered_set>

#include "lightcone/distributed/sharding/pipeline.h"
#include "lightcone/distributed/sharding/sharder.h"
#include "lightcone/distributed/sharding/specs.h"
#include "lightcone/passes/composites.h"

namespace lc {
namespace distributed {
namespace {

void check_used(const Graph& g, const ShardSpecs& specs) {
  std::unordered_set<std::string_view> inputs;
  for (NodeId id = 0; id < g.size(); ++id)
    if (g[id].op == Op::Input) inputs.insert(g[id].name);
  for (const ShardSpec& s : specs) {
    const bool used =
        inputs.contains(s.name) || std::ranges::any_of(inputs, [&](std::string_view name) { return fits(s, name); });
    if (!used) throw Error("shard", str_cat("the spec '", s.name, "' fits no input of the graph"));
  }
}

void check_pipeline(const Mesh& mesh, const ShardSpecs& specs, const std::string& axis) {
  mesh.axis(axis);
  for (const ShardSpec& s : specs)
    for (const std::string& axes : s.axes)
      if (("+" + axes + "+").find("+" + axis + "+") != std::string::npos)
        throw Error("shard", str_cat("the spec '", s.name, "' divides along '", axis,
                                     "', whose ranks are the stages of the pipeline"));
}

Graph run(const Graph& whole, const Collectives& ranks, const ShardSpecs& specs, const ShardOptions& o, PassLog& log) {
  check_used(whole, specs);
  if (!o.pipeline.empty()) check_pipeline(ranks.mesh(), specs, o.pipeline);
  const Graph g = inline_transparent(whole, log);
  Sharder sharder(g, ranks, specs, o, log);
  Graph sharded = sharder.run();
  if (o.serial.empty() && o.pipeline.empty()) return sharded;
  const int stages =
      o.pipeline.empty() ? 1 : ranks.mesh().axes()[static_cast<std::size_t>(ranks.mesh().axis(o.pipeline))].size;
  const Stages found = find_stages(g, stages, o.cost ? o.cost : operation_cost);
  for (int s = 0; s < stages && stages > 1; ++s)
    log.notes.push_back(str_cat(
        "stage ", s, " of the pipeline has ",
        std::round(1000 * found.cost[static_cast<std::size_t>(s)] /
                   std::accumulate(found.cost.begin(), found.cost.end(), 0.0)) /
            10,
        " % of the forward pass",
        s + 1 < stages ? str_cat(" and sends ", found.bytes_sent[static_cast<std::size_t>(s)] / 1e6, " MB") : ""));
  return schedule_stages(found, sharded, sharder.purposes(), Mesh(o.serial).size(), ranks, o, log);
}

}  // namespace
}  // namespace distributed

Compiler shard(const Collectives& ranks, ShardSpecs specs, ShardOptions options) {
  const Compiler combine = narrow_exchanges(ranks) | combine_exchanges(ranks, options.exchanges);
  Pass p;
  p.name = "shard";
  p.divides = !options.pipeline.empty();
  p.run = [ranks, specs = std::move(specs), options = std::move(options)](const Graph& g, PassLog& log) {
    return distributed::run(g, ranks, specs, options, log);
  };
  p.required = true;
  p.redefines = ranks.mesh().size() > 1;  // otherwise it is the same function
  return Compiler(std::move(p)) | combine;
}

Compiler shard_on_one_rank(const Mesh& mesh, ShardSpecs specs) {
  const Collectives alone(Mesh(), threads(1)[0]);
  return shard(alone, std::move(specs), {.serial = {mesh.axes().begin(), mesh.axes().end()}});
}

}  // namespace lc
