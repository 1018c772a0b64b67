// Prepares a graph for writing: sizes become numbers, composites without a StableHLO name their definitions, and
// generic() simplifies it.
#include <map>

#include "lightcone/passes/composites.h"
#include "lightcone/passes/passes.h"
#include "lightcone/stablehlo/write/writer.h"

namespace lc::stablehlo {
namespace {

class Binder {
 public:
  Binder(const Bindings& sizes, UnboundSizes unbound) : sizes_(sizes), unbound_(unbound) {}

  Dim bound(const Dim& d) const {
    if (d.is_constant()) return d;
    for (const auto& [name, bounds] : d.symbols()) check_symbol(name, bounds);
    return d.substitute([&](const std::string& name) { return value(name); });
  }
  // Binds sizes in an expression whose indices run over the axes of the shape.
  Dim bound(const Dim& d, const Shape& shape) const {
    std::map<std::string, Dim> indices;
    for (std::size_t i = 0; i < shape.size(); ++i)
      indices.emplace(Dim::index_name(static_cast<int>(i)), Dim::index(static_cast<int>(i), shape[i]));
    for (const auto& [name, bounds] : d.symbols())
      if (!indices.contains(name)) check_symbol(name, bounds);
    return d.substitute([&](const std::string& name) {
      const auto i = indices.find(name);
      return i == indices.end() ? value(name) : std::optional(i->second);
    });
  }
  Shape bound(const Shape& s) const {
    Shape to;
    for (const Dim& d : s) to.push_back(bound(d));
    return to;
  }
  View bound(const View& v) const {
    View to(bound(v.base()));
    for (const Move& m : v.moves()) to = moved(to, m);
    return to;
  }
  Attributes bound(const Attributes& a) const {
    std::vector<Attributes::Entry> entries = a.entries();
    for (Attributes::Entry& e : entries)
      if (Dim* d = std::get_if<Dim>(&e.value)) *d = bound(*d);
    return Attributes(std::move(entries));
  }

 private:
  View moved(const View& v, const Move& m) const {
    const Shape to = bound(m.to), before = bound(m.before);
    switch (m.kind) {
      case MoveKind::Permute: return v.permute(m.axes);
      case MoveKind::Expand: return v.expand(to);
      case MoveKind::Reshape: return v.reshape(to);
      case MoveKind::Slice: return v.slice(before, to, m.step);
      case MoveKind::Pad: {
        Shape after;
        for (std::size_t i = 0; i < to.size(); ++i) after.push_back(to[i] - before[i] - v.shape()[i]);
        return v.pad(before, after);
      }
      case MoveKind::Unfold: return v.unfold(m.axes[0], to.back(), m.step[0], m.step[1]);
    }
    return v;
  }
  std::optional<Dim> value(const std::string& name) const {
    const auto at = sizes_.find(name);
    return at == sizes_.end() ? std::nullopt : std::optional<Dim>(at->second);
  }
  void check_symbol(const std::string& name, const Bounds& bounds) const {
    const auto at = sizes_.find(name);
    if (at == sizes_.end() && unbound_ != UnboundSizes::Error) return;
    if (at == sizes_.end())
      throw Error("export_stablehlo",
                  str_cat("'", name, "' is a size without a number, and StableHLO needs one: give it, as in ",
                          "export_stablehlo(graph, {{\"", name, "\", ", bounds.hi,
                          "}}), or leave it open with UnboundSizes::Open"));
    if (at->second < bounds.lo || at->second > bounds.hi)
      throw Error("export_stablehlo",
                  str_cat("'", name, "' is ", at->second, ", and lies in [", bounds.lo, ", ", bounds.hi, "]"));
  }

  const Bindings& sizes_;
  UnboundSizes unbound_;
};

Graph with_sizes(const Graph& g, const Binder& binder) {
  Graph to;
  std::vector<NodeId> moved(g.size());
  const std::vector<bool> live = g.live();
  for (NodeId id = 0; id < g.size(); ++id) {
    if (!live[id]) continue;
    Node n = g[id];
    const OpScope scope(n.where);
    if (n.op == Op::Kernel)
      throw Error("export_stablehlo",
                  str_cat("the graph holds ", n.name.empty() ? "a kernel" : n.name,
                          ", which a back end made: give the graph as it was before cpu() compiled it"));
    for (Edge& e : n.in) {
      const NodeId from = moved[e.node];
      // All results of a node are in one buffer, which has their current size.
      e = {from, n.op == Op::Result ? View(to[from].shape) : binder.bound(e.view)};
    }
    n.shape = info(n.op).kind == Kind::Leaf ? binder.bound(n.shape) : Shape{};
    if (n.op == Op::Index) n.index = binder.bound(n.index, n.shape);
    n.attributes = binder.bound(n.attributes);
    moved[id] = to.add(std::move(n));
  }
  for (const Root& r : g.roots()) to.root(r.name, {moved[r.edge.node], binder.bound(r.edge.view)});
  for (const Assignment& a : g.assignments())
    to.assignment(moved[a.state], {moved[a.next.node], binder.bound(a.next.view)});
  return to;
}

}  // namespace

Graph prepare(const Graph& g, const WriteOptions& o) {
  PassLog log;
  const auto by_definition = [&](const Graph&, const Node& n) {
    return is_composite(n) && !is_written(n) && !(o.named && o.named(n));
  };
  // generic() would replace named composites, too
  const Compiler tidy = o.named ? repeat(rewrite("generic", generic_rules()), 3) : generic();
  return transform(inline_composites(with_sizes(g, Binder(o.sizes, o.unbound)), log, by_definition), tidy).graph;
}

}  // namespace lc::stablehlo
