#include "lightcone/stablehlo/write/writer.h"

#include <algorithm>
#include <set>

#include "lightcone/core/composite.h"
#include "lightcone/stablehlo/write/index.h"

namespace lc::stablehlo {

Writer::Writer(Builder& b, const Graph& g, const WriteOptions& options)
    : b_(b), g_(g), options_(options), uses_(g.uses()) {}

const Writer::Plan& Writer::plan(NodeId id) {
  const auto [at, is_new] = plans_.try_emplace(id);
  Plan& p = at->second;
  const Node& n = g_[id];
  if (!is_new || product(n.shape) == Dim(0)) return p;
  const auto found = [&](auto match) {
    if (match) p = std::move(*match);
    return match.has_value();
  };
  if (info(n.op).kind == Kind::Reduce && !(product(n.in[0].view.shape()) == Dim(0))) {
    if (!found(match_product(b_.sizes(), g_, id))) p = match_reduction(b_.sizes(), g_, id, uses_);
  } else if (n.op == Op::Where) {
    if (!found(match_padding(b_.sizes(), g_, id))) found(match_joint(b_.sizes(), g_, id, uses_));
  }
  return p;
}

std::vector<NodeId> Writer::operands_of(NodeId id) {
  const Plan& p = plan(id);
  std::vector<NodeId> all;
  if (const auto* product = std::get_if<Product>(&p)) {
    for (const Edge& e : product->operand) all.push_back(e.node);
  } else if (const auto* reduction = std::get_if<Reduction>(&p)) {
    all.push_back(reduction->operand.node);
  } else if (const auto* padding = std::get_if<Padding>(&p)) {
    all.push_back(padding->x.node);
  } else if (const auto* joint = std::get_if<Joint>(&p)) {
    for (const Edge& e : joint->pieces) all.push_back(e.node);
  } else {
    for (const Edge& e : g_[id].in) all.push_back(e.node);
  }
  return all;
}

std::vector<ValueId> Writer::write(std::span<const Edge> results) {
  std::set<NodeId> needed;
  std::vector<NodeId> open;
  for (const Edge& e : results) open.push_back(e.node);
  while (!open.empty()) {
    const NodeId id = open.back();
    open.pop_back();
    if (g_[id].op == Op::Constant || values_.contains(id) || !needed.insert(id).second) continue;
    const OpScope scope(g_[id].where);
    for (const NodeId operand : operands_of(id)) open.push_back(operand);
  }
  for (const NodeId id : needed) {  // operands come before their readers
    const OpScope scope(g_[id].where);
    values_[id] = written(id);
  }
  std::vector<ValueId> values;
  for (const Edge& e : results) values.push_back(value(e));
  return values;
}

std::vector<ValueId> Writer::written(NodeId id) {
  const Node& n = g_[id];
  const Plan& p = plan(id);
  if (const auto* product = std::get_if<Product>(&p)) return {write_product(*this, n, *product)};
  if (const auto* reduction = std::get_if<Reduction>(&p)) return {write_reduction(*this, n, *reduction)};
  if (const auto* padding = std::get_if<Padding>(&p)) return {write_padding(*this, *padding)};
  if (const auto* joint = std::get_if<Joint>(&p)) return {write_joint(*this, *joint)};
  if (options_.named && options_.named(n)) return write_named(*this, n);
  const Sizes shape = b_.sizes(n.shape);
  switch (info(n.op).kind) {
    case Kind::Leaf:
      if (n.op == Op::Input)
        throw Error("export_stablehlo", str_cat("nothing was given for the input '", n.name, "'"), n.where);
      return {write_index(b_, n.index, shape, n.dtype)};
    case Kind::Elementwise: {
      std::vector<ValueId> in;
      for (const Edge& e : n.in) in.push_back(value(e));
      const bool divides = n.op == Op::Div || n.op == Op::Mod;
      const Node* divisor = divides ? &g_[n.in[1].node] : nullptr;
      const bool by_zero = divides && (divisor->op != Op::Constant || divisor->value == 0 || pads(n.in[1].view));
      return {write_elementwise(b_, n, in, by_zero)};
    }
    case Kind::Reduce: {  // reduces an empty axis
      const bool sums = n.op == Op::SumReduce || n.dtype == DType::Bool;
      if (sums) return {b_.splat(element_of(n.dtype), shape, 0)};
      if (is_float(n.dtype)) return {b_.splat(element_of(n.dtype), shape, info(n.op).identity)};
      return {b_.splat_whole(element_of(n.dtype), shape, info(n.dtype).lowest)};
    }
    case Kind::Copy: return {b_.convert(value(n.in[0]), element_of(n.dtype))};
    case Kind::Composite: return write_composite(*this, id);
    case Kind::Result: return {results(n.in[0].node).at(static_cast<std::size_t>(n.axis))};
    case Kind::Kernel: break;
  }
  throw Error("export_stablehlo", str_cat(info(n.op).name, " has no counterpart in StableHLO"), n.where);
}

std::vector<ValueId> write_named(Writer& w, const Node& n) {
  Builder& b = w.builder();
  std::vector<ValueId> in;
  for (const Edge& e : n.in) in.push_back(w.value(e));
  const auto type_of = [&](const TensorType& t) {
    return Type{true, std::string(element_of(t.dtype)), b.sizes(t.shape)};
  };
  std::vector<Type> types;
  for (const TensorType& t : n.results) types.push_back(type_of(t));
  if (types.empty()) types.push_back(type_of({n.dtype, n.shape}));
  AttributeList attributes;
  for (const Attributes::Entry& e : n.attributes.entries()) {
    Attribute a;
    if (const auto* i = std::get_if<std::int64_t>(&e.value)) a = whole(*i);
    else if (const auto* r = std::get_if<double>(&e.value)) a.kind = Attribute::Kind::Real, a.real = *r;
    else if (const auto* t = std::get_if<std::string>(&e.value)) a.kind = Attribute::Kind::String, a.text = *t;
    else throw Error("export_stablehlo", str_cat("'", e.name, "' is a size, which a name cannot have"), n.where);
    attributes.push_back({e.name, std::move(a)});
  }
  const std::string_view name = n.composite ? std::string_view(n.composite->name) : info(n.op).name;
  return b.operation(str_cat(kNamed, name), std::move(in), std::move(types), std::move(attributes));
}

bool pads(const View& v) {
  return std::ranges::any_of(v.moves(), [](const Move& m) { return m.kind == MoveKind::Pad; });
}

ValueId Writer::value(const Edge& e) {
  const Node& n = g_[e.node];
  if (n.op == Op::Constant) {  // written where it is read
    if (!pads(e.view)) return b_.splat(element_of(n.dtype), b_.sizes(e.view.shape()), n.value);
    return write_view(b_, b_.splat(element_of(n.dtype), b_.sizes(n.shape), n.value), e.view);
  }
  const ValueId whole = values_.at(e.node)[0];
  if (e.view.identity()) return whole;
  auto& seen = seen_[e.node];
  for (const auto& [view, v] : seen)
    if (view == e.view) return v;
  const ValueId v = write_view(b_, whole, e.view);
  seen_[e.node].emplace_back(e.view, v);
  return v;
}

}  // namespace lc::stablehlo
