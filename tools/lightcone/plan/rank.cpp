// The program of one rank of a layout.
#include <algorithm>
#include <random>
#include <set>

#include "../train/ranks.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/base/error.h"
#include "lightcone/distributed/collectives.h"
#include "lightcone/passes/passes.h"
#include "planned.h"

namespace lc::tool {
namespace {

constexpr const char* kPipe = "pipe";
constexpr const char* kPart = "micro";

// The batch is divided along data, and what a rank has of it into parts.
void divide_batch(ShardSpecs& specs, const Graph& g) {
  std::set<NodeId> states;
  for (const Assignment& a : g.assignments()) states.insert(a.state);
  for (NodeId id = 0; id < g.size(); ++id) {
    const Node& n = g[id];
    if (n.op != Op::Input || n.parameter || states.contains(id) || n.shape.empty()) continue;
    auto known = std::ranges::find(specs, n.name, &ShardSpec::name);
    if (known == specs.end()) known = specs.insert(specs.end(), {n.name, {""}});
    known->axes[0] += known->axes[0].empty() ? kPart : str_cat("+", kPart);
  }
}

}  // namespace

int Layout::stages() const {
  for (const MeshAxis& a : mesh().axes())
    if (a.name == kPipe) return a.size;
  return 1;
}

std::vector<int> Layout::rank_of_each_stage() const {
  return stages() == 1 ? std::vector{0} : mesh().group(0, std::vector{mesh().axis(kPipe)});
}

ShardSpecs specs_of(const Graph& g, const Layout& layout) {
  for (const MeshAxis& a : layout.mesh().axes())
    if (a.name != "data" && a.name != "model" && a.name != kPipe)
      throw Error("plan", str_cat("the mesh axis '", a.name, "' is none of data, model and ", kPipe));
  check_mesh(layout.model, layout.ranks);
  ShardSpecs specs = specs_of(g, layout.model, layout.ranks);
  const auto along_model = [](const ShardSpec& s) {
    return std::ranges::any_of(s.axes, [](const std::string& a) { return a.starts_with("model"); });
  };
  if (layout.ranks.model() > 1 && std::ranges::none_of(specs, along_model))
    throw Error("plan",
                str_cat("no parameter of this model is divided by ", layout.ranks.model(), " ranks along 'model'"));
  if (layout.microbatches > 1) divide_batch(specs, g);
  return specs;
}

Program compile_rank(const Graph& g, const Layout& layout, std::shared_ptr<Communicator> rank, const RankOptions& o) {
  const Collectives ranks(layout.mesh(), std::move(rank));
  ShardOptions how;
  if (layout.microbatches > 1) how.serial = {{kPart, layout.microbatches}};
  if (layout.stages() > 1) how.pipeline = kPipe;
  return compile(g,
                 shard(ranks, specs_of(g, layout), how) | generic() | cpu({.threads = o.threads, .compiler = o.runs}));
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
