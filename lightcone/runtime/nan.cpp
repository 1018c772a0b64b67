#include "lightcone/runtime/nan.h"

#include <algorithm>
#include <cmath>

#include "lightcone/runtime/profile/profiler.h"

namespace lc {
namespace {

constexpr std::size_t kMostNames = 6;

bool is_parameter(const Node& n) { return n.op == Op::Input && n.parameter; }

// The parameters that a value is made of: the nearest ones, whatever lies between.
std::vector<NodeId> nearest_parameters(const Graph& g, NodeId from) {
  std::vector<NodeId> found, now{from};
  std::vector<bool> seen(g.size());
  while (found.empty() && !now.empty()) {
    std::vector<NodeId> next;
    for (const NodeId id : now)
      for (const Edge& e : g[id].in) {
        if (seen[e.node]) continue;
        seen[e.node] = true;
        (is_parameter(g[e.node]) ? found : next).push_back(e.node);
      }
    // what was made of parameters alone when they were loaded stands for them
    for (std::size_t k = 0; k < next.size(); ++k) {
      const Node& n = g[next[k]];
      const auto parameter = [&](const Edge& e) { return is_parameter(g[e.node]); };
      if (n.in.empty() || !std::all_of(n.in.begin(), n.in.end(), parameter)) continue;
      for (const Edge& e : n.in) {
        if (!seen[e.node]) found.push_back(e.node);
        seen[e.node] = true;
      }
    }
    now = std::move(next);
  }
  return found;
}

}  // namespace

bool holds_nan(const void* data, DType type, std::size_t elements) {
  if (type == DType::F32) {
    const auto* v = static_cast<const float*>(data);
    unsigned some = 0;
    for (std::size_t k = 0; k < elements; ++k) some |= v[k] != v[k];
    return some;
  }
  for (std::size_t k = 0; k < elements; ++k)
    if (std::isnan(load_f64(data, type, k))) return true;
  return false;
}

std::string where_from(const Graph& g, NodeId node, const std::vector<bool>& nan) {
  for (bool first = false; !first;) {
    first = true;
    for (const Edge& e : g[node].in)
      if (nan[e.node] && g[e.node].op != Op::Input) {
        node = e.node, first = false;
        break;
      }
  }
  const Node& n = g[node];
  std::string names, bad;
  const std::vector<NodeId> parameters = nearest_parameters(g, node);
  for (std::size_t k = 0; k < parameters.size(); ++k) {
    const std::string name = cat("'", g[parameters[k]].name, "'");
    if (k < kMostNames) names += cat(names.empty() ? "" : ", ", name);
    if (k == kMostNames) names += ", ...";
    if (nan[parameters[k]]) bad += cat(bad.empty() ? "" : ", ", name);
  }
  for (const Edge& e : n.in)
    if (nan[e.node] && g[e.node].op == Op::Input && !is_parameter(g[e.node]))
      bad += cat(bad.empty() ? "" : ", ", "'", g[e.node].name, "'");
  const std::string lines = lines_of(n);
  return cat("holds NaN: it first appears in ", what_it_computes(n), lines.empty() ? "" : " (at " + lines + ")",
             names.empty() ? "" : ", which reads " + names, bad.empty() ? "" : "; there is NaN in " + bad);
}

}  // namespace lc
