#include "lightcone/device/fork.h"

#include <algorithm>
#include <map>

#include "lightcone/device/kernel.h"
#include "lightcone/passes/compiler.h"

namespace lc {
namespace {

constexpr std::int64_t kSmall = 1 << 20;     // bytes of a result; larger kernels keep all workers busy alone
constexpr std::size_t kFar = 128;            // most positions by which a kernel may move forward
constexpr std::int64_t kInFlight = 1 << 20;  // bytes of results that are made earlier than before, per fork

std::int64_t bytes(const Node& n) {
  std::int64_t all = static_cast<std::int64_t>(size_of(n.dtype));
  for (const Dim& d : n.shape) {
    const std::int64_t most = d.bounds().hi;
    if (most <= 0) return 0;
    if (most > kSmall) return kSmall + 1;
    all = std::min(all * most, kSmall + 1);
  }
  return all;
}
bool is_part(const Node& n) { return n.op == Op::Kernel && n.kernel->part(); }
bool reads_node(const Node& n, NodeId id) {
  return std::any_of(n.in.begin(), n.in.end(), [&](const Edge& e) { return e.node == id; });
}
// Returns the state that each node's value becomes.
std::map<NodeId, NodeId> states(const Graph& g) {
  std::map<NodeId, NodeId> becomes;
  for (const Assignment& a : g.assignments()) becomes.emplace(a.next.node, a.state);
  return becomes;
}
bool may_share(const Node& n) {
  return n.op == Op::Kernel && !is_part(n) && n.kernel->divisible() && bytes(n) <= kSmall;
}

}  // namespace

std::vector<NodeId> find_forks(const Graph& g, const Prepared& prepared, int workers) {
  std::vector<NodeId> last(g.size());
  for (NodeId id = 0; id < g.size(); ++id) last[id] = id;
  if (workers == 1) return last;
  const auto live = g.live();
  const auto becomes = states(g);
  std::vector<NodeId> open;  // kernels of the fork being built
  const auto close = [&] {
    for (const NodeId id : open) last[id] = open.back();
    open.clear();
  };
  for (NodeId id = 0; id < g.size(); ++id) {
    const Node& n = g[id];
    if (!live[id] || n.op == Op::Input || is_part(n) || prepared.node[id]) continue;
    const bool reads = std::any_of(n.in.begin(), n.in.end(), [&](const Edge& e) {
      const NodeId from = is_part(g[e.node]) ? g[e.node].in[0].node : e.node;
      return std::find(open.begin(), open.end(), from) != open.end();
    });
    // The node may overwrite a state in place, but not while other kernels of the fork read it.
    const auto state = becomes.find(id);
    const bool overwrites = state != becomes.end() && std::any_of(open.begin(), open.end(), [&](NodeId k) {
                              return reads_node(g[k], state->second);
                            });
    if (reads || overwrites || !may_share(n) || open.size() == kMostTogether) close();
    if (may_share(n)) open.push_back(id);
  }
  close();
  return last;
}

bool has_small_kernels(const Graph& g) {
  int found = 0;
  for (NodeId id = 0; id < g.size() && found < 2; ++id) found += may_share(g[id]);
  return found > 1;
}

Graph run_concurrently(const Graph& g) {
  std::vector<int> readers(g.size());  // readers not emitted yet
  for (NodeId id = 0; id < g.size(); ++id)
    for (const Edge& e : g[id].in) ++readers[e.node];
  const auto becomes = states(g);
  Graph out;
  constexpr NodeId kNone = ~NodeId{0};
  std::vector<NodeId> to(g.size(), kNone);
  const auto emit = [&](NodeId id) {
    Node n = g[id];
    for (Edge& e : n.in) --readers[e.node], e.node = to[e.node];
    to[id] = out.add(std::move(n));
  };
  // A node may join if all its operands are made before the fork and, if it may overwrite a state, all other readers of
  // that state come before the fork.
  const auto may_come = [&](NodeId id, const std::vector<NodeId>& together) {
    const Node& n = g[id];
    const NodeId first = to[together[0]];
    if (!std::all_of(n.in.begin(), n.in.end(),
                     [&](const Edge& e) { return to[e.node] != kNone && to[e.node] < first; }))
      return false;
    const auto state = becomes.find(id);
    if (state == becomes.end()) return true;
    const auto own = std::count_if(n.in.begin(), n.in.end(), [&](const Edge& e) { return e.node == state->second; });
    return readers[state->second] == own &&
           std::none_of(together.begin(), together.end(), [&](NodeId k) { return reads_node(g[k], state->second); });
  };
  for (NodeId id = 0; id < g.size(); ++id)
    if (g[id].op == Op::Input) emit(id);
  for (NodeId id = 0; id < g.size(); ++id) {
    if (to[id] != kNone) continue;
    emit(id);
    if (!may_share(g[id])) continue;
    std::vector<NodeId> together{id};
    std::int64_t earlier = 0;
    for (NodeId k = id + 1; k < g.size() && k <= id + kFar && together.size() < kMostTogether; ++k) {
      if (to[k] != kNone || !may_share(g[k]) || !may_come(k, together)) continue;
      if (!becomes.contains(k)) earlier += bytes(g[k]);
      if (earlier > kInFlight) break;
      emit(k);
      together.push_back(k);
    }
  }
  copy_results(g, to, out);
  return out;
}

}  // namespace lc
