#include "lightcone/stablehlo/write.h"

#include <algorithm>
#include <optional>
#include <set>

#include "lightcone/core/composite.h"
#include "lightcone/passes/symbols.h"
#include "lightcone/stablehlo/write/writer.h"

namespace lc {
namespace {

using ArgumentKind = StableHloExport::Argument::Kind;

}  // namespace

void stablehlo::check_names(const Graph& g, const Bindings& sizes) {
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

namespace {

// Returns the inputs that are needed, and the states.
std::vector<StableHloExport::Argument> arguments_of(const Graph& g) {
  std::vector<StableHloExport::Argument> all;
  const std::vector<bool> live = g.live();
  const auto assigned = g.assignments();
  for (NodeId id = 0; id < g.size(); ++id) {
    const Node& n = g[id];
    if (n.op != Op::Input || !live[id]) continue;
    StableHloExport::Argument a{
        n.name, {n.dtype, n.shape}, n.parameter ? ArgumentKind::Parameter : ArgumentKind::Input};
    const auto at = std::ranges::find(assigned, id, &Assignment::state);
    if (at != assigned.end())
      a.kind = ArgumentKind::State,
      a.result = static_cast<int>(g.roots().size()) + static_cast<int>(at - assigned.begin());
    all.push_back(std::move(a));
  }
  return all;
}

// An axis whose extent is a multiple of a symbol plus a constant.
struct Teller {
  std::size_t argument, axis;
  std::int64_t multiple, more;
};
std::optional<Teller> teller_of(const std::string& symbol, const std::vector<StableHloExport::Argument>& arguments) {
  for (std::size_t k = 0; k < arguments.size(); ++k)
    for (std::size_t axis = 0; axis < arguments[k].type.shape.size(); ++axis) {
      const Dim& d = arguments[k].type.shape[axis];
      if (d.terms().size() != 1 || d.terms()[0].factors.size() != 1 || d.terms()[0].coefficient <= 0) continue;
      const Dim::Atom& a = *d.terms()[0].factors[0];
      if (a.kind == Dim::Kind::Symbol && a.name == symbol) return Teller{k, axis, d.terms()[0].coefficient, d.offset()};
    }
  return std::nullopt;
}

void add_all(Symbols& to, const Graph& g) {
  to.merge(symbols_of(g));
  for (NodeId id = 0; id < g.size(); ++id)
    if (g[id].composite && g[id].composite->loop) add_all(to, g[id].composite->loop->graph);
}

// Sizes that the module determines at run time.
class OpenSizes {
 public:
  // Sizes that no argument's shape determines become arguments.
  OpenSizes(const Graph& g, std::vector<StableHloExport::Argument>& arguments) {
    Symbols all;
    add_all(all, g);
    for (const auto& [name, bounds] : all) {
      if (const auto t = teller_of(name, arguments)) {
        tellers_.emplace_back(name, *t);
      } else {
        tellers_.emplace_back(name, Teller{arguments.size(), 0, 0, 0});
        arguments.push_back({name, {DType::I64, {}}, ArgumentKind::Size});
      }
    }
  }
  void write(stablehlo::Builder& b, const std::vector<stablehlo::ValueId>& arguments) const {
    for (const auto& [name, t] : tellers_) {
      const stablehlo::ValueId x = arguments[t.argument];
      b.tell(name, t.multiple == 0 ? x : told(b, x, t));
    }
  }

 private:
  static stablehlo::ValueId told(stablehlo::Builder& b, stablehlo::ValueId x, const Teller& t) {
    const stablehlo::Type scalar{.element = "i32"};
    stablehlo::ValueId n = b.one("stablehlo.get_dimension_size", {x}, scalar,
                                 {{"dimension", stablehlo::whole(static_cast<std::int64_t>(t.axis))}});
    n = b.convert(n, "i64");
    if (t.more != 0) n = b.add(n, b.like_whole(n, -t.more));
    return t.multiple == 1 ? n : b.binary("stablehlo.divide", n, b.like_whole(n, t.multiple));
  }
  std::vector<std::pair<std::string, Teller>> tellers_;
};

}  // namespace

StableHloExport stablehlo::write_module(const Graph& g, const WriteOptions& options) {
  const Graph ready = prepare(g, options);
  StableHloExport e;
  e.module.name = "lightcone";
  e.arguments = arguments_of(ready);
  const OpenSizes open(ready, e.arguments);
  std::vector<Edge> wanted;
  for (const Root& r : ready.roots()) {
    wanted.push_back(r.edge);
    e.results.push_back({r.name, {ready[r.edge.node].dtype, r.edge.view.shape()}});
  }
  for (const Assignment& a : ready.assignments()) {
    wanted.push_back(a.next);
    e.results.push_back({ready[a.state].name, {ready[a.state].dtype, a.next.view.shape()}, true});
  }
  stablehlo::Builder b(e.module);
  b.sizes().open_windows = static_cast<bool>(options.named);
  stablehlo::Writer w(b, ready, options);
  const auto type_of = [&](const TensorType& t) {
    return stablehlo::Type{true, std::string(stablehlo::element_of(t.dtype)), b.sizes(t.shape)};
  };
  stablehlo::Function main;
  std::vector<stablehlo::ValueId> values;
  for (const StableHloExport::Argument& a : e.arguments) {
    values.push_back(e.module.value(type_of(a.type), a.name));
    stablehlo::AttributeList attributes;
    if (a.result >= 0) attributes.push_back({"tf.aliasing_output", stablehlo::whole(a.result, "i32")});
    main.argument_attributes.push_back(std::move(attributes));
  }
  std::size_t next = 0;
  for (NodeId id = 0; id < ready.size() && next < e.arguments.size(); ++id)
    if (ready[id].op == Op::Input && ready[id].name == e.arguments[next].name) w.give(id, values[next++]);
  const auto body = [&] {
    open.write(b, values);
    return w.write(wanted);
  };
  main.body = b.block_of(values, body, "func.return");
  const auto sealed = [&](stablehlo::Type t) {
    return b.sizes().sealed(std::move(t), options.unbound == UnboundSizes::Bounded);
  };
  for (const StableHloExport::Result& r : e.results) main.results.push_back(sealed(type_of(r.type)));
  for (stablehlo::Value& v : e.module.values) v.type = sealed(std::move(v.type));
  e.module.functions.push_back(std::move(main));
  return e;
}

StableHloExport export_stablehlo(const Graph& g, const Bindings& sizes, Precision products, UnboundSizes unbound) {
  stablehlo::check_names(g, sizes);
  return stablehlo::write_module(g, {sizes, products, unbound});
}

}  // namespace lc
