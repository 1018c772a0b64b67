// Graph::dot(): prints the graph in Graphviz's language.
#include "lightcone/core/composite.h"
#include "lightcone/core/graph_impl.h"

namespace lc {
namespace {

std::string quoted(std::string_view text) {
  std::string s;
  for (const char c : text) (c == '"' || c == '\\' ? s += '\\' : s) += c;
  return str_cat('"', s, '"');
}

}  // namespace

std::string Graph::label(NodeId id) const {
  const Node& n = (*this)[id];
  if (n.op == Op::Input) return n.name;
  if (n.op == Op::Constant) return str_cat(n.value);
  if (n.op == Op::Kernel) return n.name.empty() ? "kernel" : n.name;
  std::string s(n.composite ? n.composite->name : info(n.op).name);
  if (n.op == Op::Index) s += " " + n.index.str();
  for (const Edge& e : n.in)
    if ((*this)[e.node].op == Op::Constant) s += str_cat(" ", (*this)[e.node].value);
  return s;
}

std::string Graph::dot() const {
  std::string s = "digraph lightcone {\n  node [shape=box, fontname=monospace];\n";
  const std::vector<bool> alive = live();
  for (NodeId id = 0; id < size(); ++id) {
    const Node& n = (*this)[id];
    if (!alive[id] || n.op == Op::Constant) continue;
    s += str_cat("  n", id, " [label=", quoted(str_cat(label(id), " ", lc::name(n.dtype), lc::str(n.shape))), "];\n");
    for (const Edge& e : n.in)
      if ((*this)[e.node].op != Op::Constant)
        s += str_cat("  n", e.node, " -> n", id, e.view.identity() ? "" : " [style=dashed]", ";\n");
  }
  for (const Root& r : roots()) s += str_cat("  n", r.edge.node, " -> ", quoted(r.name), ";\n");
  for (const Assignment& a : assignments())
    s += str_cat("  n", a.next.node, " -> n", a.state, " [style=dotted, constraint=false];\n");
  return s + "}\n";
}

}  // namespace lc
