#include "lightcone/passes/origin.h"

#include <set>

namespace lc {

std::vector<Origin::Step> steps(const Graph& g, NodeId result, const std::vector<NodeId>& operands) {
  std::set<NodeId> seen(operands.begin(), operands.end()), computed{result};
  std::vector<NodeId> stack{result};
  while (!stack.empty()) {
    const NodeId id = stack.back();
    stack.pop_back();
    for (const Edge& e : g[id].in)
      if (info(g[e.node].op).kind != Kind::Leaf && seen.insert(e.node).second) {
        computed.insert(e.node);
        stack.push_back(e.node);
      }
  }
  std::vector<Origin::Step> made;
  for (NodeId id : computed) made.push_back({info(g[id].op).name, g[id].where});
  return made;
}

}  // namespace lc
