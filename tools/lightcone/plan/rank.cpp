// The program of one rank of a layout.
#include <algorithm>
#include <array>
#include <random>

#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/base/error.h"
#include "lightcone/distributed/collectives.h"
#include "lightcone/distributed/sharding/sharding.h"
#include "lightcone/distributed/sharding/strategies.h"
#include "lightcone/lowering/types/mixed_precision.h"
#include "lightcone/passes/passes.h"
#include "planned.h"

namespace lc::tool {
namespace {

constexpr std::string_view kData = "data", kModel = "model";

int size_of_axis(const Mesh& mesh, std::string_view name) {
  for (const MeshAxis& a : mesh.axes())
    if (a.name == name) return a.size;
  return 1;
}

// Which axis of a parameter is divided along "model": 0, 1, or -1 for none. `layer` is the last component but one of
// its name, `number` what stands there as a number.
int divided_axis(const Node& n) {
  const std::size_t dot = n.name.rfind('.');
  if (dot == std::string::npos) return -1;
  const std::string last = n.name.substr(dot + 1), path = n.name.substr(0, dot),
                    layer = path.substr(path.rfind('.') == std::string::npos ? 0 : path.rfind('.') + 1);
  const auto is = [&](std::initializer_list<const char*> names) {
    return std::ranges::any_of(names, [&](const char* name) { return layer == name; });
  };
  const bool bias = last == "bias",
             numbered = !layer.empty() && std::ranges::all_of(layer, [](char c) { return c >= '0' && c <= '9'; });
  if (last != "weight" && !bias) return -1;
  if (is({"q_proj", "k_proj", "v_proj", "gate_proj", "up_proj", "embed_tokens", "lm_head"})) return 0;
  if (is({"o_proj", "down_proj"})) return bias ? -1 : 1;
  if (numbered && path.starts_with("layers.") && n.shape.size() <= 2) {  // a multilayer perceptron's
    const bool rows = (layer.back() - '0') % 2 == 0;
    return rows ? 0 : bias ? -1 : 1;
  }
  return -1;
}

ShardSpecs tensor_parallel(const Graph& g, int ranks) {
  ShardSpecs specs;
  for (NodeId id = 0; id < g.size(); ++id) {
    const Node& n = g[id];
    if (n.op != Op::Input || !n.parameter) continue;
    const int axis = divided_axis(n);
    if (axis < 0 || axis >= static_cast<int>(n.shape.size())) continue;
    if (!distributed::divides(ranks, n.shape[static_cast<std::size_t>(axis)])) continue;
    ShardSpec s{n.name, std::vector<std::string>(static_cast<std::size_t>(axis) + 1)};
    s.axes.back() = kModel;
    specs.push_back(std::move(s));
  }
  return specs;
}

// The axis of an input, or of the parameter whose memory it is, that the specs divide; -1 if there is none.
int axis_in(const ShardSpecs& specs, std::string_view name) {
  for (const std::string_view of : {name, name.substr(0, name.rfind('.'))})
    for (const ShardSpec& s : specs)
      if (s.name == of) return static_cast<int>(s.axes.size()) - 1;
  return -1;
}

// What fully_sharded() divides, but each along another axis than "model" divides: parts along "model" stay parts when
// those along "data" are gathered.
ShardSpecs sharded_beside(const ShardSpecs& tensor, const Graph& g, int data, ShardedState what) {
  std::vector<bool> wanted(g.size());
  for (const Assignment& a : g.assignments()) wanted[a.state] = true;
  ShardSpecs specs;
  for (NodeId id = 0; id < g.size(); ++id) {
    const Node& n = g[id];
    if (n.op != Op::Input || (what == ShardedState::All ? !n.parameter && !wanted[id] : n.parameter || !wanted[id]))
      continue;
    const int taken = axis_in(tensor, n.name);
    const auto fits = [&](std::size_t axis) {
      return static_cast<int>(axis) != taken && n.shape[axis].is_constant() && n.shape[axis] != Dim(1) &&
             distributed::divides(data, n.shape[axis]);
    };
    std::size_t axis = 0;
    while (axis < n.shape.size() && !fits(axis)) ++axis;
    if (axis == n.shape.size()) continue;
    ShardSpec s{n.name, std::vector<std::string>(axis + 1)};
    s.axes.back() = kData;
    specs.push_back(std::move(s));
  }
  return specs;
}

}  // namespace

std::string_view name(StateSharding s) {
  constexpr std::array<std::string_view, 3> names{"none", "optimizer", "full"};
  return names[static_cast<std::size_t>(s)];
}

ShardSpecs specs_of(const Graph& g, const Layout& layout) {
  for (const MeshAxis& a : layout.mesh.axes())
    if (a.name != kData && a.name != kModel)
      throw Error("plan", str_cat("the mesh axis '", a.name, "' is neither data nor model"));
  const int data = size_of_axis(layout.mesh, kData), model = size_of_axis(layout.mesh, kModel);
  ShardSpecs specs;
  if (model > 1) {
    specs = tensor_parallel(g, model);
    if (specs.empty())
      throw Error("plan", str_cat("no parameter of this model is divided by ", model, " ranks along 'model'"));
  }
  if (data > 1) {
    const ShardSpecs tensor = specs;
    specs = joined(data_parallel(g, std::string(kData), data), tensor);
    if (layout.sharding != StateSharding::None) {
      const auto what = layout.sharding == StateSharding::All ? ShardedState::All : ShardedState::Moments;
      specs = joined(specs, sharded_beside(tensor, g, data, what));
    }
  }
  return specs;
}

Program compile_rank(const Graph& g, const Layout& layout, std::shared_ptr<Communicator> rank, const RankOptions& o) {
  const Collectives ranks(layout.mesh, std::move(rank));
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
