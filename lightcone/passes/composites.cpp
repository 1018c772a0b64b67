#include "lightcone/passes/composites.h"

#include "lightcone/composites/composites.h"

namespace lc {
namespace {

using Wanted = std::function<bool(const Graph&, const Node&)>;

Graph sweep(const Graph& src, PassLog& log, const Wanted& wanted) {
  std::map<NodeId, std::vector<Tensor>> defined;  // results of replaced nodes; nothing reads the nodes
  return copy_graph(src, [&](Graph& dst, NodeId, Node n) {
    if (n.op == Op::Result)
      if (const auto it = defined.find(n.in[0].node); it != defined.end()) return it->second[n.axis].edge();
    if (is_composite(n) && wanted(dst, n)) {
      ++log.fired[n.composite ? n.composite->name : std::string(info(n.op).name)];
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

Graph inline_composites(const Graph& g, PassLog& log, const Wanted& wanted) {
  const auto any_left = [&](const Graph& of) {
    return any_node(of, [&](const Node& n) { return is_composite(n) && wanted(of, n); });
  };
  if (!any_left(g)) return g.clone();
  Graph done = sweep(g, log, wanted);
  while (any_left(done)) done = sweep(done, log, wanted);  // definitions contain composites
  return done;
}

bool is_transparent(const Node& n) { return n.composite && n.composite->transparent; }

Graph inline_transparent(const Graph& g, PassLog& log, const CompositeRef& also) {
  return inline_composites(
      g, log, [&](const Graph&, const Node& n) { return is_transparent(n) || (n.composite && n.composite == also); });
}

}  // namespace lc
