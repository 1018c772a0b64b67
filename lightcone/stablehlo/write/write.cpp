#include "lightcone/stablehlo/write.h"

#include <algorithm>
#include <set>

#include "lightcone/core/composite.h"
#include "lightcone/stablehlo/write/writer.h"

namespace lc {
namespace {

using Kind = StableHloExport::Argument::Kind;

// A size that no extent is named after is a slip of the pen.
void check_names(const Graph& g, const Bindings& sizes) {
  std::set<std::string> known;
  const auto look_at = [&](const Shape& s) {
    for (const Dim& d : s)
      for (const auto& [name, bounds] : d.symbols()) known.insert(name);
  };
  for (NodeId id = 0; id < g.size(); ++id) {
    look_at(g[id].shape);
    look_at({g[id].index});
    look_at(extents(g[id].attributes));
    for (const Edge& e : g[id].in)
      for (const Move& m : e.view.moves()) look_at(m.to), look_at(m.before);
  }
  for (const Root& r : g.roots())
    for (const Move& m : r.edge.view.moves()) look_at(m.to), look_at(m.before);
  for (const auto& [name, value] : sizes)
    if (!known.contains(name)) throw Error("export_stablehlo", str_cat("the graph has no size '", name, "'"));
}

// The inputs that anything needs, and the states.
std::vector<StableHloExport::Argument> arguments_of(const Graph& g) {
  std::vector<StableHloExport::Argument> all;
  const std::vector<bool> live = g.live();
  const auto assigned = g.assignments();
  for (NodeId id = 0; id < g.size(); ++id) {
    const Node& n = g[id];
    if (n.op != Op::Input || !live[id]) continue;
    StableHloExport::Argument a{n.name, {n.dtype, n.shape}, n.parameter ? Kind::Parameter : Kind::Input};
    const auto at = std::ranges::find(assigned, id, &Assignment::state);
    if (at != assigned.end())
      a.kind = Kind::State, a.result = static_cast<int>(g.roots().size()) + static_cast<int>(at - assigned.begin());
    all.push_back(std::move(a));
  }
  return all;
}

}  // namespace

StableHloExport export_stablehlo(const Graph& g, const Bindings& sizes, Precision products) {
  check_names(g, sizes);
  const Graph ready = hlo::prepare(g, sizes);
  StableHloExport e;
  e.module.name = "lightcone";
  e.arguments = arguments_of(ready);
  std::vector<Edge> wanted;
  for (const Root& r : ready.roots()) {
    wanted.push_back(r.edge);
    e.results.push_back({r.name, {ready[r.edge.node].dtype, r.edge.view.shape()}});
  }
  for (const Assignment& a : ready.assignments()) {
    wanted.push_back(a.next);
    e.results.push_back({ready[a.state].name, {ready[a.state].dtype, a.next.view.shape()}, true});
  }
  hlo::Builder b(e.module);
  hlo::Writer w(b, ready, products, sizes);
  hlo::Function main;
  std::vector<hlo::ValueId> values;
  std::size_t next = 0;
  for (NodeId id = 0; id < ready.size() && next < e.arguments.size(); ++id) {
    const StableHloExport::Argument& a = e.arguments[next];
    if (ready[id].op != Op::Input || ready[id].name != a.name) continue;
    values.push_back(e.module.value(hlo::type_of(a.type.dtype, a.type.shape), a.name));
    w.give(id, values.back());
    hlo::AttributeList attributes;
    if (a.result >= 0) attributes.push_back({"tf.aliasing_output", hlo::whole(a.result, "i32")});
    main.argument_attributes.push_back(std::move(attributes));
    ++next;
  }
  main.body = b.block_of(
      values, [&] { return w.write(wanted); }, "func.return");
  for (const StableHloExport::Result& r : e.results) main.results.push_back(hlo::type_of(r.type.dtype, r.type.shape));
  e.module.functions.push_back(std::move(main));
  return e;
}

}  // namespace lc
