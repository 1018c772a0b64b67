// The program of one rank of a layout.
#include <algorithm>
#include <array>
#include <random>

#include "../train/ranks.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/base/error.h"
#include "lightcone/distributed/collectives.h"
#include "lightcone/lowering/types/mixed_precision.h"
#include "lightcone/passes/passes.h"
#include "planned.h"

namespace lc::tool {
ShardSpecs specs_of(const Graph& g, const Layout& layout) {
  for (const MeshAxis& a : layout.mesh().axes())
    if (a.name != "data" && a.name != "model")
      throw Error("plan", str_cat("the mesh axis '", a.name, "' is neither data nor model"));
  check_mesh(layout.model, layout.ranks);
  const ShardSpecs specs = specs_of(g, layout.model, layout.ranks);
  const auto along_model = [](const ShardSpec& s) {
    return std::ranges::any_of(s.axes, [](const std::string& a) { return a.starts_with("model"); });
  };
  if (layout.ranks.model() > 1 && std::ranges::none_of(specs, along_model))
    throw Error("plan",
                str_cat("no parameter of this model is divided by ", layout.ranks.model(), " ranks along 'model'"));
  return specs;
}

Program compile_rank(const Graph& g, const Layout& layout, std::shared_ptr<Communicator> rank, const RankOptions& o) {
  const Collectives ranks(layout.mesh(), std::move(rank));
  Compiler c = shard(ranks, specs_of(g, layout)) | generic() | cpu({.threads = o.threads});
  if (o.autocast) c = autocast(*o.autocast) | c;
  return compile(g, c);
}

void fill(const Program& p, Context& c) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 0.02F);
  const Graph& g = p.graph();
  const auto live = g.live();
  for (NodeId id = 0; id < g.size(); ++id) {
    const Node& n = g[id];
    if (n.op != Op::Input || !live[id]) continue;
    const auto elements = static_cast<std::size_t>(product(n.shape).constant().value_or(0));
    if (!is_float(n.dtype)) {
      c.set(n.name, std::vector<std::int64_t>(elements, 0));
      continue;
    }
    std::vector<float> v(elements);
    // The optimiser's sums of squares are not negative.
    for (float& x : v) x = n.parameter ? normal(random) : std::abs(normal(random));
    c.set(n.name, v);
  }
}

}  // namespace lc::tool
