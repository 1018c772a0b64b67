#include "lightcone/distributed/shard.h"

#include "lightcone/distributed/sharder.h"
#include "lightcone/distributed/specs.h"
#include "lightcone/passes/composites.h"

namespace lc {
namespace distributed {
namespace {

void check_used(const Graph& g, const ShardSpecs& specs) {
  for (const ShardSpec& s : specs) {
    bool used = false;
    for (NodeId id = 0; id < g.size() && !used; ++id) used = g[id].op == Op::Input && fits(s, g[id].name);
    if (!used) throw Error("shard", str_cat("the spec '", s.name, "' fits no input of the graph"));
  }
}

}  // namespace
}  // namespace distributed

Compiler shard(const Collectives& ranks, ShardSpecs specs, ShardOptions options) {
  const auto run = [ranks, specs = std::move(specs), options = std::move(options)](const Graph& g, PassLog& log) {
    distributed::check_used(g, specs);
    const Graph written_out = inline_transparent(g, log);
    return distributed::Sharder(written_out, ranks, specs, options.serial, log).run();
  };
  Pass p{"shard", run};
  p.required = true;
  p.redefines = true;
  return Compiler(std::move(p));
}

}  // namespace lc
