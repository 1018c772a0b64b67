// The order of the nodes of a graph. ONNX demands that a node comes after those that make its operands; ONNX Runtime
// takes any order, and some published files have another one.
#include <algorithm>
#include <functional>
#include <queue>

#include "lightcone/onnx/model/parser.h"

namespace lc::onnx {
namespace {

// Calls visit() with the names that a node reads, in the graphs of its attributes, too: these see the values around
// them.
void each_operand(const NodeData& n, const std::function<void(std::string_view)>& visit) {
  for (const std::string_view name : n.inputs)
    if (!name.empty()) visit(name);
  for (const Attribute& a : n.attributes)
    for (const auto& g : a.graphs) {
      for (const NodeData& inner : g->nodes) each_operand(inner, visit);
      for (const ValueInfo& v : g->outputs) visit(v.name);
    }
}

// Pairs of nodes: the one that makes a value, and the one that reads it.
std::vector<std::pair<std::size_t, std::size_t>> dependences(const std::vector<NodeData>& nodes) {
  std::vector<std::pair<std::string_view, std::size_t>> makers;
  for (std::size_t k = 0; k < nodes.size(); ++k)
    for (const std::string_view name : nodes[k].outputs)
      if (!name.empty()) makers.emplace_back(name, k);
  std::ranges::sort(makers);
  std::vector<std::pair<std::size_t, std::size_t>> all;
  for (std::size_t k = 0; k < nodes.size(); ++k)
    each_operand(nodes[k], [&](std::string_view name) {
      const auto m = std::ranges::lower_bound(makers, name, {}, &decltype(makers)::value_type::first);
      if (m != makers.end() && m->first == name) all.emplace_back(m->second, k);
    });
  std::ranges::sort(all);
  all.erase(std::ranges::unique(all).begin(), all.end());
  return all;
}

}  // namespace

void sort_nodes(std::vector<NodeData>& nodes) {
  const auto reads = dependences(nodes);
  if (std::ranges::all_of(reads, [](const auto& r) { return r.first < r.second; })) return;
  std::vector<std::size_t> waits(nodes.size()), order;
  for (const auto& [maker, reader] : reads) ++waits[reader];
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;  // the first of the file first
  for (std::size_t k = 0; k < nodes.size(); ++k)
    if (waits[k] == 0) ready.push(k);
  while (!ready.empty()) {
    const std::size_t k = ready.top();
    ready.pop();
    order.push_back(k);
    const auto readers = std::ranges::equal_range(reads, k, {}, &std::pair<std::size_t, std::size_t>::first);
    for (const auto& [maker, reader] : readers)
      if (--waits[reader] == 0) ready.push(reader);
  }
  if (order.size() < nodes.size()) return;  // a circle: the importer names an operand that is not defined
  std::vector<NodeData> sorted;
  sorted.reserve(nodes.size());
  for (const std::size_t k : order) sorted.push_back(std::move(nodes[k]));
  nodes = std::move(sorted);
}

}  // namespace lc::onnx
