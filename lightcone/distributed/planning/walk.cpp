#include "lightcone/distributed/planning/walk.h"

#include "lightcone/device/prepared.h"

namespace lc::distributed {

std::vector<NodeId> order_of_run(const Graph& g) {
  const auto live = g.live();
  const Prepared prepared = find_prepared(g);
  std::vector<NodeId> order;
  for (NodeId id = 0; id < g.size(); ++id)
    if (live[id] && g[id].op != Op::Input && !prepared.node[id]) order.push_back(id);
  return order;
}

}  // namespace lc::distributed
