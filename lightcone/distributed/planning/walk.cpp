#include "lightcone/distributed/planning/walk.h"

#include "lightcone/device/kernel.h"
#include "lightcone/device/prepared.h"

namespace lc::distributed {

const ExchangingKernel* exchanging(const Node& n) {
  return n.op == Op::Kernel ? dynamic_cast<const ExchangingKernel*>(n.kernel.get()) : nullptr;
}

std::vector<NodeId> order_of_run(const Graph& g) {
  const auto live = g.live();
  const Prepared prepared = find_prepared(g);
  std::vector<NodeId> order;
  for (NodeId id = 0; id < g.size(); ++id)
    if (live[id] && g[id].op != Op::Input && !prepared.node[id]) order.push_back(id);
  return order;
}

}  // namespace lc::distributed
