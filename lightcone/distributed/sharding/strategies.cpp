#include "lightcone/distributed/sharding/strategies.h"

#include <algorithm>
#include <set>

#include "lightcone/distributed/sharding/specs.h"

namespace lc {
namespace {

std::set<NodeId> states_of(const Graph& g) {
  std::set<NodeId> all;
  for (const Assignment& a : g.assignments()) all.insert(a.state);
  return all;
}

// The spec of an input, or of the parameter whose memory it is; null if there is none.
const ShardSpec* find(const ShardSpecs& specs, std::string_view name) {
  int found = distributed::spec_of(specs, name);
  if (const std::size_t dot = name.rfind('.'); found < 0 && dot != std::string_view::npos)
    found = distributed::spec_of(specs, name.substr(0, dot));
  return found < 0 ? nullptr : &specs[static_cast<std::size_t>(found)];
}

ShardSpec both(const ShardSpec& outer, const ShardSpec& inner, const std::string& name) {
  ShardSpec s{name, std::vector<std::string>(std::max(outer.axes.size(), inner.axes.size()))};
  for (std::size_t i = 0; i < s.axes.size(); ++i) {
    const std::string a = i < outer.axes.size() ? outer.axes[i] : "", b = i < inner.axes.size() ? inner.axes[i] : "";
    s.axes[i] = a.empty() || b.empty() ? a + b : a + "+" + b;
  }
  return s;
}

// Divides an axis of all inputs that are neither parameters nor states.
ShardSpecs of_inputs(const Graph& g, std::size_t axis, const std::string& mesh_axis, int ranks) {
  const auto states = states_of(g);
  ShardSpecs specs;
  for (NodeId id = 0; id < g.size(); ++id) {
    const Node& n = g[id];
    if (n.op != Op::Input || n.parameter || states.contains(id) || n.shape.size() <= axis) continue;
    if (!distributed::divides(ranks, n.shape[axis])) continue;
    specs.push_back({n.name, std::vector<std::string>(axis + 1)});
    specs.back().axes.back() = mesh_axis;
  }
  return specs;
}

bool is_pattern(const ShardSpec& s) { return s.name.find('*') != std::string::npos; }

}  // namespace

ShardSpecs data_parallel(const Graph& g, const std::string& mesh_axis, int ranks) {
  ShardSpecs specs = of_inputs(g, 0, mesh_axis, ranks);
  if (specs.empty()) throw Error("data_parallel", str_cat("no input has a first axis that ", ranks, " ranks divide"));
  return specs;
}

ShardSpecs sequence_parallel(const Graph& g, const std::string& mesh_axis, int ranks) {
  ShardSpecs specs = of_inputs(g, 1, mesh_axis, ranks);
  if (specs.empty())
    throw Error("sequence_parallel", str_cat("no input has a second axis that ", ranks, " ranks divide"));
  return specs;
}

ShardSpecs fully_sharded(const Graph& g, const std::string& mesh_axis, int ranks, ShardedState what) {
  const auto states = states_of(g);
  ShardSpecs specs;
  for (NodeId id = 0; id < g.size(); ++id) {
    const Node& n = g[id];
    const bool wanted = n.op == Op::Input && (what == ShardedState::All ? n.parameter || states.contains(id)
                                                                        : states.contains(id) && !n.parameter);
    if (!wanted) continue;
    const auto axis = std::ranges::find_if(
        n.shape, [&](const Dim& d) { return d.is_constant() && d != Dim(1) && distributed::divides(ranks, d); });
    if (axis == n.shape.end()) continue;
    ShardSpec s{n.name, std::vector<std::string>(static_cast<std::size_t>(axis - n.shape.begin()) + 1)};
    s.axes.back() = mesh_axis;
    specs.push_back(std::move(s));
  }
  return specs;
}

ShardSpecs joined(const ShardSpecs& a, const ShardSpecs& b) {
  ShardSpecs all;
  const auto is_new = [&](const ShardSpec& s) {
    return std::ranges::none_of(all, [&](const ShardSpec& known) { return known.name == s.name; });
  };
  for (const ShardSpec& s : a)
    if (const ShardSpec* other = is_pattern(s) ? nullptr : find(b, s.name)) all.push_back(both(s, *other, s.name));
  for (const ShardSpec& s : b)
    if (const ShardSpec* other = is_pattern(s) || !is_new(s) ? nullptr : find(a, s.name))
      all.push_back(both(*other, s, s.name));
  // Names come before patterns, so that the first spec that fits is the exact one.
  for (const bool patterns : {false, true})
    for (const ShardSpecs* specs : {&a, &b})
      for (const ShardSpec& s : *specs)
        if (is_pattern(s) == patterns && is_new(s)) all.push_back(s);
  return all;
}

}  // namespace lc
