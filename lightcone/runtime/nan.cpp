#include "lightcone/runtime/nan.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lightcone/runtime/profile/profiler.h"

namespace lc {
namespace {

constexpr std::size_t kMostNames = 6;

bool is_parameter(const Node& n) { return n.op == Op::Input && n.parameter; }

// Returns the parameters nearest to a value among its direct and indirect operands.
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
    // A value prepared from parameters alone counts as these parameters.
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

// Returns the first value that has the mark of `id`: no computed operand of it has the mark.
NodeId first_with(const Graph& g, NodeId id, const std::vector<bool>& marks) {
  for (bool first = false; !first;) {
    first = true;
    for (const Edge& e : g[id].in)
      if (marks[e.node] && g[e.node].op != Op::Input) {
        id = e.node, first = false;
        break;
      }
  }
  return id;
}

// Returns "matmul (at model.cpp:12)".
std::string computed(const Graph& g, NodeId id) {
  const std::string lines = lines_of(g[id]);
  return str_cat(what_it_computes(g[id]), lines.empty() ? "" : " (at " + lines + ")");
}

// Returns ", which reads 'layers.3.weight'".
std::string reads(const Graph& g, NodeId id) {
  std::string names;
  const std::vector<NodeId> parameters = nearest_parameters(g, id);
  for (std::size_t k = 0; k < parameters.size() && k < kMostNames; ++k)
    names += str_cat(names.empty() ? ", which reads '" : ", '", g[parameters[k]].name, "'");
  return names + (parameters.size() > kMostNames ? ", ..." : "");
}

// Returns the names of the inputs and parameters with the mark from which a value is made.
std::string given(const Graph& g, NodeId id, const std::vector<bool>& marks) {
  std::string names;
  const auto add = [&](NodeId input) { names += str_cat(names.empty() ? "'" : ", '", g[input].name, "'"); };
  for (const NodeId p : nearest_parameters(g, id))
    if (marks[p]) add(p);
  for (const Edge& e : g[id].in)
    if (marks[e.node] && g[e.node].op == Op::Input && !is_parameter(g[e.node])) add(e.node);
  return names;
}

bool holds_infinity(const void* data, DType type, std::size_t elements) {
  if (type == DType::F32) {
    const auto* v = static_cast<const float*>(data);
    unsigned some = 0;
    for (std::size_t k = 0; k < elements; ++k) some |= std::fabs(v[k]) > std::numeric_limits<float>::max();
    return some;
  }
  for (std::size_t k = 0; k < elements; ++k)
    if (std::isinf(load_f64(data, type, k))) return true;
  return false;
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

void NotFinite::look(NodeId id, const void* data, std::size_t elements) {
  const DType type = g_[id].dtype;
  if (!is_float(type)) return;
  nan_[id] = holds_nan(data, type, elements), infinite_[id] = holds_infinity(data, type, elements);
}

std::string NotFinite::where_from(NodeId id) const {
  const std::vector<bool>& marks = nan_[id] ? nan_ : infinite_;
  const std::string what = nan_[id] ? "NaN" : "an infinity";
  id = first_with(g_, id, marks);
  const std::string said = str_cat("holds ", what, ": it first appears in ", computed(g_, id)),
                    bad = given(g_, id, marks);
  if (!bad.empty()) return str_cat(said, reads(g_, id), "; there is ", what, " in ", bad);
  if (&marks == &infinite_) return str_cat(said, reads(g_, id));
  for (const Edge& e : g_[id].in) {
    if (!infinite_[e.node]) continue;
    if (g_[e.node].op == Op::Input) return str_cat(said, "; there is an infinity in '", g_[e.node].name, "'");
    const NodeId from = first_with(g_, e.node, infinite_);
    const std::string in = given(g_, from, infinite_);
    return str_cat(said, ", of an infinity that first appears in ", computed(g_, from), reads(g_, from),
                   in.empty() ? "" : "; there is an infinity in " + in);
  }
  return str_cat(said, reads(g_, id));
}

}  // namespace lc
