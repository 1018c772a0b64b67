#include "lightcone/passes/compiler.h"

#include <algorithm>
#include <chrono>

#include "lightcone/base/numbers.h"

namespace lc {
namespace {

std::size_t live_nodes(const Graph& g) {
  const auto live = g.live();
  return static_cast<std::size_t>(std::count(live.begin(), live.end(), true));
}

// Throws Error unless a pass kept the outputs (names, order, shapes, dtypes) and the number of assignments.
void check_contract(const Pass& p, const Graph& before, const Graph& after) {
  const auto broken = [&](const std::string& what) { throw Error("compile", "the pass '" + p.name + "' " + what); };
  if (p.extends ? before.roots().size() > after.roots().size() : before.roots().size() != after.roots().size())
    broken("changed the number of outputs");
  for (std::size_t k = 0; k < before.roots().size(); ++k) {
    const Root &a = before.roots()[k], &b = after.roots()[k];
    if (a.name != b.name) broken("renamed the output '" + a.name + "'");
    if (a.edge.view.shape() != b.edge.view.shape())
      broken("changed the shape of '" + a.name + "' from " + str(a.edge.view.shape()) + " to " +
             str(b.edge.view.shape()));
    if (before[a.edge.node].dtype != after[b.edge.node].dtype) broken("changed the element type of '" + a.name + "'");
  }
  const std::size_t a = before.assignments().size(), b = after.assignments().size();
  const bool of_a_part = p.divides && b < a;  // the other stages have the others
  if ((p.extends ? a > b : a != b) && !of_a_part) broken("changed the number of assignments");
}

Graph run_once(const Compiler& c, const Graph& src, PassLog& log) {
  Graph g = c.passes()[0].run(src, log);
  for (const Pass& p : c.passes().subspan(1)) g = p.run(g, log);
  return g;
}

}  // namespace

Compiler operator|(Compiler a, const Compiler& b) {
  a.passes_.insert(a.passes_.end(), b.passes_.begin(), b.passes_.end());
  return a;
}

Compiler repeat(const Compiler& c, int limit) {
  Pass p;
  for (const Pass& part : c.passes()) {
    p.name += (p.name.empty() ? "" : "+") + part.name;
    p.parts.insert(p.parts.end(), part.parts.begin(), part.parts.end());
  }
  p.run = [c, limit](const Graph& src, PassLog& log) {
    if (c.passes().empty() || limit < 1) return src.clone();
    Graph g = run_once(c, src, log);
    bool changed = !(g == src);
    for (int k = 1; changed && k < limit; ++k) {
      const Graph before = std::move(g);
      g = run_once(c, before, log);
      changed = !(g == before);
    }
    return g;
  };
  return Compiler(std::move(p));
}

namespace {
void check_skipped(const Compiler& c, const CompileOptions& options) {
  for (const std::string& s : options.skip) {
    const auto is = [&](const Pass& p) { return p.name == s; };
    if (std::any_of(c.passes().begin(), c.passes().end(), is)) continue;
    std::string names;
    for (const Pass& p : c.passes()) names += (names.empty() ? "" : ", ") + p.name;
    throw Error("compile", str_cat("there is no pass '", s, "' to skip; there are ", names.empty() ? "none" : names));
  }
}
}  // namespace

Compiled transform(const Graph& g, const Compiler& c, const CompileOptions& options) {
  check_skipped(c, options);
  Compiled result{g.clone(), {}};
  std::size_t nodes = live_nodes(g);
  for (const Pass& p : c.passes()) {
    if (std::find(options.skip.begin(), options.skip.end(), p.name) != options.skip.end()) {
      if (p.required) throw Error("compile", "the pass '" + p.name + "' cannot be skipped: later ones need it");
      continue;
    }
    if ((p.redefines || p.extends) && any_node(result.graph, [](const Node& n) { return n.op == Op::Kernel; }))
      throw Error("compile",
                  "the pass '" + p.name +
                      "' stands behind one that made kernels, as cpu() does, and would change nothing: put it before");
    PassLog log{p.name, 0, nodes, 0, {}};
    if (p.applies && !p.applies(result.graph)) {
      log.nodes_after = log.nodes_before;
      result.log.push_back(std::move(log));
      continue;
    }
    const auto start = std::chrono::steady_clock::now();
    Graph next = p.run(result.graph, log);
    log.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    log.nodes_after = nodes = live_nodes(next);
    check_contract(p, result.graph, next);
    if (options.observe) options.observe(p, result.graph, next);
    result.graph = std::move(next);
    result.log.push_back(std::move(log));
  }
  return result;
}

bool any_node(const Graph& g, const std::function<bool(const Node&)>& is) {
  std::vector<bool> live;  // asked only if a node fits, because most passes find none
  for (NodeId id = 0; id < g.size(); ++id) {
    if (!is(g[id])) continue;
    if (live.empty()) live = g.live();
    if (live[id]) return true;
  }
  return false;
}

int fired(std::span<const PassLog> log, const std::string& what) {
  int n = 0;
  for (const PassLog& l : log)
    if (const auto it = l.fired.find(what); it != l.fired.end()) n += it->second;
  return n;
}

std::string report(std::span<const PassLog> log) {
  std::string s;
  for (const PassLog& l : log) {
    s += formatted("%-16s%8zu -> %6zu nodes%10.2f ms", l.pass.c_str(), l.nodes_before, l.nodes_after, l.seconds * 1e3);
    for (const auto& [rule, n] : l.fired) s += str_cat("  ", rule, " x", n);
    s += '\n';
    for (const std::string& note : l.notes) s += "  note: " + note + '\n';
  }
  return s;
}

Graph copy_graph(const Graph& src, const std::function<Edge(Graph&, NodeId, Node)>& emit,
                 const std::function<Edge(Graph&, Edge, ResultKind)>& result) {
  Graph dst;
  std::vector<Edge> to(src.size());
  const auto live = src.live();
  const auto moved = [&](const Edge& e) { return Edge{to[e.node].node, to[e.node].view.then(e.view)}; };
  for (NodeId id = 0; id < src.size(); ++id) {
    if (!live[id]) continue;
    Node n = src[id];
    for (Edge& e : n.in) e = moved(e);
    const OpScope scope(n.where);  // replacement nodes keep the source line
    to[id] = emit(dst, id, std::move(n));
    if (to[id].view.shape() != src[id].shape || dst[to[id].node].dtype != src[id].dtype)
      throw Error("compile",
                  str_cat("a pass turned ", str(src[id].shape), " ", name(src[id].dtype), " into ",
                          str(to[id].view.shape()), " ", name(dst[to[id].node].dtype),
                          "; a node keeps its shape and its element type, so cast back what replaces it"),
                  src[id].where);
  }
  const auto last = [&](const Edge& e, ResultKind kind) { return result ? result(dst, moved(e), kind) : moved(e); };
  for (const Root& r : src.roots()) dst.root(r.name, last(r.edge, ResultKind::Output));
  for (const Assignment& a : src.assignments()) {
    if (dst[to[a.state].node].op != Op::Input) throw Error("compile", "a pass replaced a state input");
    dst.assignment(to[a.state].node, last(a.next, ResultKind::State));
  }
  return dst;
}

void copy_results(const Graph& src, std::span<const NodeId> to, Graph& dst) {
  for (const Root& r : src.roots()) dst.root(r.name, {to[r.edge.node], r.edge.view});
  for (const Assignment& a : src.assignments()) dst.assignment(to[a.state], {to[a.next.node], a.next.view});
}

}  // namespace lc
