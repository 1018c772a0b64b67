#include "lightcone/device/plan.h"

#include <algorithm>
#include <unordered_map>

#include "lightcone/device/arena.h"
#include "lightcone/device/fork.h"
#include "lightcone/device/kernel.h"
#include "lightcone/device/prepared.h"

namespace lc {
namespace {

constexpr std::int64_t kMostBytes = std::int64_t{1} << 46;  // most bytes of one value

std::string names_of(const Dim& d) {
  std::string names;
  for (const auto& [name, b] : d.symbols()) names += str_cat(names.empty() ? "" : ", ", name, " <= ", b.hi);
  return names;
}

std::int64_t largest(const Dim& d, const Bindings& sizes) {
  if (d.is_constant() || sizes.empty()) return d.bounds().hi;
  const auto names = d.symbols();
  if (std::all_of(names.begin(), names.end(), [&](const auto& n) { return sizes.contains(n.first); }))
    return d.eval(sizes);
  return d
      .substitute([&](const std::string& name) {
        const auto it = sizes.find(name);
        return it == sizes.end() ? std::nullopt : std::optional<Dim>(it->second);
      })
      .bounds()
      .hi;
}

std::size_t upper(const Dim& d, const Bindings& sizes, const char* what, const Location& where) {
  const std::int64_t most = largest(d, sizes);
  if (most < 0) return 0;
  if (most > kMostBytes)
    throw Error("plan",
                d.is_constant()
                    ? str_cat(what, " needs ", most, " bytes")
                    : str_cat(what, " may need ", most, " bytes; lower the bounds of its sizes: ", names_of(d)),
                where);
  return static_cast<std::size_t>(most);
}

std::size_t bytes_of(const Node& n, const Bindings& sizes) {
  return upper(product(n.shape) * Dim(static_cast<std::int64_t>(size_of(n.dtype))), sizes, "a tensor", n.where);
}

struct Planner {
  const Graph& g;
  const Bindings& sizes;
  MemoryPlan plan;
  std::vector<NodeId> last;   // last reader of each node; size() means that the value is kept until the end
  std::vector<bool> shared;   // another reader runs in the same fork as the last one
  std::vector<NodeId> later;  // blocks that are freed when the current fork is done
  std::vector<bool> is_state;
  const Prepared prepared;
  std::unordered_multimap<NodeId, const Assignment*> assigned;  // keyed by the node that computes the new value
  Arena arena;
  std::vector<std::size_t> block, scratch_block;  // arena block, by NodeId; kNone: it has none of its own
  static constexpr std::size_t kNone = ~std::size_t{0};

  Planner(const Graph& graph, int workers, const Bindings& at) : g(graph), sizes(at), prepared(find_prepared(graph)) {
    plan.workers = workers;
    plan.fork = find_forks(g, prepared, workers);
    plan.nodes.resize(g.size());
    plan.scratch.resize(g.size());
    plan.scratch_bytes.resize(g.size());
    block.resize(g.size(), kNone), scratch_block.resize(g.size(), kNone);
    last.resize(g.size());
    is_state.resize(g.size());
    const auto live = g.live();
    for (NodeId id = 0; id < g.size(); ++id)
      if (live[id])
        for (const Edge& e : g[id].in) last[e.node] = id;
    const auto end = static_cast<NodeId>(g.size());
    for (const Assignment& a : g.assignments()) is_state[a.state] = true;
    for (const Root& r : g.roots())
      if (!is_state[r.edge.node]) last[r.edge.node] = end;  // a snapshot has the state's value from before the run
    for (const Assignment& a : g.assignments()) {
      last[a.next.node] = end;
      assigned.emplace(a.next.node, &a);
    }
    for (NodeId id = static_cast<NodeId>(g.size()); id-- > 0;)  // a value lives as long as its parts
      if (live[id] && owner(id) != id) last[owner(id)] = std::max(last[owner(id)], last[id]);
    shared.resize(g.size());
    for (NodeId id = 0; id < g.size(); ++id)
      if (live[id])
        for (const Edge& e : g[id].in) {
          const NodeId read = owner(e.node), end_of = last[read];
          if (end_of < end && end_of != id && plan.fork[end_of] == plan.fork[id]) shared[read] = true;
        }
  }

  // Returns the node that owns the memory of a value: itself, or the operand of which it is a part.
  NodeId owner(NodeId id) const {
    const Node& n = g[id];
    return n.op == Op::Kernel && n.kernel->part() && !prepared.node[id] ? n.in[0].node : id;
  }

  // Returns the assignment whose state node `id` may overwrite: `id` is the state's next value, its kernel works in
  // place on the state, and nothing reads the old value later.
  const Assignment* overwrites(NodeId id) const {
    const Node& n = g[id];
    if (n.op != Op::Kernel) return nullptr;
    for (auto [it, end] = assigned.equal_range(id); it != end; ++it) {
      const Assignment& a = *it->second;
      if (!a.next.view.identity() || last[a.state] != id || shared[a.state]) continue;
      for (std::size_t k = 0; k < n.in.size(); ++k)
        if (n.in[k].node == a.state && n.kernel->in_place(k) &&
            std::count_if(n.in.begin(), n.in.end(), [&](const Edge& e) { return e.node == a.state; }) == 1)
          return &a;
    }
    return nullptr;
  }

  // Returns an operand whose block the result can take over. A kernel that reads it twice has to work in place on both:
  // scatter(x, index, x) does not.
  std::optional<NodeId> reusable(NodeId id) const {
    const Node& n = g[id];
    if (n.op != Op::Kernel) return std::nullopt;
    const auto works_on = [&](NodeId read) {
      for (std::size_t k = 0; k < n.in.size(); ++k)
        if (owner(n.in[k].node) == read && (n.in[k].node != read || !n.kernel->in_place(k))) return false;
      return true;
    };
    for (const Edge& e : n.in) {
      const Placement& p = plan.nodes[e.node];
      if (owner(e.node) != e.node || shared[e.node]) continue;
      if (p.where == Placement::Where::Arena && last[e.node] == id && works_on(e.node) &&
          p.bytes == plan.nodes[id].bytes)
        return e.node;
    }
    return std::nullopt;
  }

  void place(NodeId id) {
    const Node& n = g[id];
    Placement& p = plan.nodes[id];
    p.bytes = bytes_of(n, sizes);
    if (n.op == Op::Input || prepared.node[id]) {
      p = {Placement::Where::Input, 0, id, p.bytes};
      if (prepared.node[id]) {
        p.offset = aligned(plan.prepared_bytes);
        plan.prepared_bytes = p.offset + p.bytes;
      } else if (is_state[id]) {
        plan.state_bytes = aligned(plan.state_bytes) + p.bytes;
        if (std::all_of(n.shape.begin(), n.shape.end(), [](const Dim& d) { return d.is_constant(); })) {
          p.offset = aligned(plan.state_block);
          plan.state_block = p.offset + p.bytes;
        }
      } else if (prepared.resident[id]) {
        plan.input_bytes += p.bytes;
      }
      return;
    }
    if (owner(id) != id) {
      const Placement& whole = plan.nodes[owner(id)];  // possibly a state that is overwritten in place
      p.where = whole.where, p.input = whole.input;
      p.offset = whole.offset;  // offset of the state; in the arena, offsets() computes it from the owner
      check(p.where == Placement::Where::Arena || *n.kernel->part() == Dim(0), "a part of a state");
      return;
    }
    std::size_t& scratch = plan.scratch_bytes[id];
    if (n.op == Op::Kernel) {
      scratch = upper(n.kernel->scratch_bytes(plan.workers), sizes, "scratch memory", n.where);
      if (scratch) scratch_block[id] = arena.take(scratch);
    }
    std::vector<NodeId> done;
    for (const Edge& e : n.in) {
      const NodeId read = owner(e.node);
      if (last[read] == id && std::find(done.begin(), done.end(), read) == done.end()) done.push_back(read);
    }
    if (const Assignment* a = overwrites(id)) {
      p.where = Placement::Where::Input;
      p.input = a->state;
    } else if (const auto read = reusable(id)) {
      p.where = Placement::Where::Arena;
      block[id] = block[*read];
      std::erase(done, *read);  // the block lives on as the result
    } else {
      p.where = Placement::Where::Arena;
      block[id] = arena.take(p.bytes);
    }
    later.insert(later.end(), done.begin(), done.end());
    if (plan.fork[id] != id) return;  // the other kernels of the fork still run
    for (NodeId d : later)
      if (plan.nodes[d].where == Placement::Where::Arena) arena.give(block[d]);
    later.clear();
    if (scratch) arena.give(scratch_block[id]);
  }

  // Assigns arena offsets after the last node has been placed.
  void offsets() {
    const std::vector<std::size_t> at = arena.settle();
    for (NodeId id = 0; id < g.size(); ++id) {
      if (scratch_block[id] != kNone) plan.scratch[id] = at[scratch_block[id]];
      if (block[id] != kNone) plan.nodes[id].offset = at[block[id]];
      if (plan.nodes[id].where == Placement::Where::Arena && owner(id) != id)
        plan.nodes[id].offset =
            plan.nodes[owner(id)].offset + upper(*g[id].kernel->part(), sizes, "an offset", g[id].where);
    }
    plan.arena_bytes = arena.bytes();
    plan.alive_bytes = arena.alive_bytes();
  }
};

}  // namespace

std::size_t upper_bytes(const Node& n) { return bytes_of(n, {}); }

MemoryPlan make_plan(const Graph& g, int workers, const Bindings& sizes) {
  Planner p(g, workers, sizes);
  const auto live = g.live();
  for (NodeId id = 0; id < g.size(); ++id)
    if (live[id]) p.place(id);
  for (const Assignment& a : g.assignments()) {
    const Placement& next = p.plan.nodes[a.next.node];
    if (!(next.where == Placement::Where::Input && next.input == a.state && a.next.node != a.state))
      p.plan.copies.push_back(&a);
  }
  p.offsets();
  std::vector<bool> kept(g.size());
  for (const Root& r : g.roots()) {
    if (g[r.edge.node].op != Op::Input || !p.is_state[r.edge.node] || kept[r.edge.node]) continue;
    kept[r.edge.node] = true;
    const std::size_t offset = (p.plan.arena_bytes + 63) / 64 * 64;
    p.plan.snapshots.emplace_back(r.edge.node, offset);
    p.plan.arena_bytes = offset + p.plan.nodes[r.edge.node].bytes;
  }
  return std::move(p.plan);
}

std::string MemoryPlan::str() const {
  return str_cat("inputs and weights ", input_bytes, " B, prepared weights ", prepared_bytes, " B, state ", state_bytes,
                 " B, arena ", arena_bytes, " B");
}

}  // namespace lc
