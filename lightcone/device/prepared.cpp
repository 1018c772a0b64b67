#include "lightcone/device/prepared.h"

#include <algorithm>

#include "lightcone/device/kernel.h"
#include "lightcone/device/plan.h"

namespace lc {
namespace {

bool constant(const Shape& s) {
  return std::all_of(s.begin(), s.end(), [](const Dim& d) { return d.is_constant(); });
}

// Limits the memory spent to save time: a weight that would be unpacked to f32 is not prepared.
bool worth_keeping(const Graph& g, const Node& n) {
  if (n.kernel->packs()) return true;
  std::size_t from = 0;
  for (const Edge& e : n.in) from += upper_bytes(g[e.node]);
  return upper_bytes(n) <= kAlwaysPrepared + from + from / 4;
}

}  // namespace

Prepared find_prepared(const Graph& g) {
  constexpr NodeId kSeveral = ~NodeId{0};
  Prepared p{std::vector<bool>(g.size()), std::vector<bool>(g.size())};
  std::vector<bool> fixed(g.size());   // the same in every run
  std::vector<NodeId> made(g.size());  // the parameter it is made of
  for (NodeId id = 0; id < g.size(); ++id)
    fixed[id] = g[id].op == Op::Input && g[id].parameter && constant(g[id].shape), made[id] = id;
  for (const Assignment& a : g.assignments()) fixed[a.state] = false;
  const auto live = g.live();
  for (NodeId id = 0; id < g.size(); ++id) {
    const Node& n = g[id];
    if (!live[id] || n.op == Op::Input) continue;
    if (n.op == Op::Kernel && !n.in.empty() && n.kernel->same_every_run() && constant(n.shape) &&
        constant(n.kernel->sizes()))
      p.node[id] = fixed[id] =
          std::all_of(n.in.begin(), n.in.end(), [&](const Edge& e) { return fixed[e.node]; }) && worth_keeping(g, n);
    if (p.node[id]) made[id] = made[n.in[0].node];
    for (const Edge& e : n.in)
      if (p.node[id] && made[e.node] != made[id]) made[id] = kSeveral;
    // A value made of several parameters needs the others when one of them is loaded again.
    if (!p.node[id] || made[id] == kSeveral)
      for (const Edge& e : n.in) p.resident[e.node] = true;
  }
  for (const Root& r : g.roots()) p.resident[r.edge.node] = true;
  for (const Assignment& a : g.assignments()) p.resident[a.next.node] = p.resident[a.state] = true;
  return p;
}

}  // namespace lc
