#include "lightcone/lowering/order.h"

#include <algorithm>

#include "lightcone/device/halves.h"

namespace lc::lowering {
namespace {

std::int64_t bytes(const Node& n) { return product(n.shape).bounds().hi * static_cast<std::int64_t>(size_of(n.dtype)); }

// Small updates stay together at the end, where small kernels share a fork.
bool is_large(const Graph& g, const Assignment& a) {
  constexpr std::int64_t kLarge = 64 << 10;
  const auto large = [](const Node& n) { return bytes(n) >= kLarge; };
  return large(g[a.state]) || std::ranges::any_of(g[a.next.node].in, [&](const Edge& e) { return large(g[e.node]); });
}
bool is_number(const Node& n) { return bytes(n) <= 8; }

class Order {
 public:
  explicit Order(const Graph& g);
  std::vector<NodeId> run();
  int moved() const { return moved_; }

 private:
  void find_updates();
  void put(NodeId id);

  const Graph& g_;
  const std::vector<bool> live_;
  std::vector<std::vector<NodeId>> readers_;
  std::vector<std::vector<NodeId>> waiting_;  // updates that follow a node
  std::vector<int> missing_;                  // number of nodes that an update still waits for; -1: not an update
  std::vector<bool> done_;
  std::vector<NodeId> order_;
  int moved_ = 0;
};

Order::Order(const Graph& g)
    : g_(g), live_(g.live()), readers_(g.size()), waiting_(g.size()), missing_(g.size(), -1), done_(g.size()) {
  for (NodeId id = 0; id < g.size(); ++id) {
    if (!live_[id]) continue;
    for (const Edge& e : g[id].in)
      if (readers_[e.node].empty() || readers_[e.node].back() != id) readers_[e.node].push_back(id);
  }
  find_updates();
}

void Order::find_updates() {
  for (const Assignment& a : g_.assignments())
    if (is_large(g_, a) && a.next.view.identity() && g_[a.next.node].op != Op::Input && !is_wait(g_[a.next.node]))
      missing_[a.next.node] = 0;
  // A node whose readers are all next values (one kernel with several results) is scheduled with them.
  for (NodeId id = 0; id < g_.size(); ++id) {
    const bool parts = !readers_[id].empty() && std::ranges::all_of(readers_[id], [&](NodeId r) {
      return missing_[r] == 0 && g_[r].in.size() == 1;
    });
    if (parts && missing_[id] < 0 && !is_number(g_[id]) && g_[id].op != Op::Input && !is_wait(g_[id])) missing_[id] = 0;
  }
  const auto wait = [&](NodeId update, NodeId on) {
    if (g_[on].op == Op::Input || on == update) return;
    waiting_[on].push_back(update);
    ++missing_[update];
  };
  for (NodeId id = 0; id < g_.size(); ++id)
    if (missing_[id] >= 0)
      for (const Edge& e : g_[id].in) wait(id, e.node);
  for (const Assignment& a : g_.assignments())
    if (missing_[a.next.node] >= 0)
      for (const NodeId r : readers_[a.state]) wait(a.next.node, r);
}

void Order::put(NodeId id) {
  std::vector<NodeId> ready{id};
  while (!ready.empty()) {
    const NodeId at = ready.back();
    ready.pop_back();
    if (done_[at]) continue;
    done_[at] = true;
    order_.push_back(at);
    moved_ += at == id ? 0 : 1;
    for (const NodeId u : waiting_[at])
      if (--missing_[u] == 0) ready.push_back(u);
  }
}

// Inputs come first, then scalars computed from inputs and other such scalars (learning rates, bias corrections), which
// updates read.
std::vector<NodeId> Order::run() {
  std::vector<bool> early(g_.size());
  for (NodeId id = 0; id < g_.size(); ++id) {
    const Node& n = g_[id];
    early[id] = n.op == Op::Input || (is_number(n) && std::ranges::all_of(n.in, [&](const Edge& e) {
                                        return early[e.node] && is_number(g_[e.node]);
                                      }));
    if (live_[id] && early[id]) put(id);
  }
  for (NodeId id = 0; id < g_.size(); ++id)
    if (live_[id] && !done_[id]) put(id);
  return order_;
}

}  // namespace

bool has_large_updates(const Graph& g) {
  return std::ranges::any_of(g.assignments(), [&](const Assignment& a) { return is_large(g, a); });
}

Graph schedule_state_updates(const Graph& g, PassLog& log) {
  Order order(g);
  Graph dst;
  std::vector<NodeId> to(g.size());
  for (const NodeId id : order.run()) {
    std::vector<Edge> in = g[id].in;
    for (Edge& e : in) e.node = to[e.node];
    to[id] = dst.adopt(g[id], std::move(in));
  }
  copy_results(g, to, dst);
  if (order.moved()) log.fired["update moved"] += order.moved();
  return dst;
}

}  // namespace lc::lowering
