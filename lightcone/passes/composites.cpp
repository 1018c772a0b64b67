#include "lightcone/passes/composites.h"

#include "lightcone/composites/composites.h"

namespace lc {
namespace {

Graph sweep(const Graph& src, PassLog& log, const std::function<bool(const Graph&, const Node&)>& wanted, bool& again) {
  std::map<NodeId, std::vector<Tensor>> defined;  // results of replaced nodes; nothing reads the nodes
  return copy_graph(src, [&](Graph& dst, NodeId, Node n) {
    if (n.op == Op::Result)
      if (const auto it = defined.find(n.in[0].node); it != defined.end())
        return it->second[static_cast<std::size_t>(n.axis)].edge();
    if (is_composite(n) && wanted(dst, n)) {
      ++log.fired[n.composite ? n.composite->name : std::string(info(n.op).name)];
      again = true;
      std::vector<Tensor> in;
      for (const Edge& e : n.in) in.emplace_back(dst, e);
      std::vector<Tensor> results = define_all(n, in);
      if (n.results.empty()) return results.at(0).edge();
      const NodeId id = dst.add(std::move(n));
      defined.emplace(id, std::move(results));
      return Edge{id, View(dst[id].shape)};
    }
    const NodeId id = dst.add(std::move(n));
    return Edge{id, View(dst[id].shape)};
  });
}

}  // namespace

bool is_composite(const Node& n) {
  const OpInfo& op = info(n.op);
  return op.kind == Kind::Composite || (op.kind == Kind::Elementwise && !op.has(kPrimitive));
}

Graph inline_composites(const Graph& g, PassLog& log, const std::function<bool(const Graph&, const Node&)>& wanted) {
  Graph done = g.clone();
  for (bool again = true; again;) {
    again = false;
    done = sweep(done, log, wanted, again);
  }
  return done;
}

Graph inline_transparent(const Graph& g, PassLog& log, const CompositeRef& also) {
  const auto wanted = [&](const Node& n) { return n.composite && (n.composite->transparent || n.composite == also); };
  if (!any_node(g, wanted)) return g.clone();
  return inline_composites(g, log, [&](const Graph&, const Node& n) { return wanted(n); });
}

}  // namespace lc
