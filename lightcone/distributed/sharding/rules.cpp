#include "lightcone/distributed/sharding/rules.h"

#include <map>
#include <numeric>
#include <string_view>

#include "lightcone/composites/composites.h"
#include "lightcone/distributed/sharding/ring.h"
#include "lightcone/passes/barrier.h"
#include "lightcone/passes/gradient_marks.h"

namespace lc::distributed {
namespace {

using Labels = std::vector<int>;

Labels first_labels(std::size_t n) {
  Labels l(n);
  std::iota(l.begin(), l.end(), 0);
  return l;
}
const Shape& shape_of(const Node& n, std::size_t operand) { return n.in[operand].view.shape(); }
std::size_t axis_of(const Node& n) { return static_cast<std::size_t>(n.attributes.integer("axis")); }

ShardingRule elementwise(const Node& n) {
  const std::size_t rank = n.shape.size();
  ShardingRule r{std::vector(rank, LabelKind::Parallel),
                 std::vector(n.in.size(), first_labels(rank)),
                 {first_labels(rank)},
                 std::vector(n.in.size(), false)};
  return r;
}

ShardingRule reduction(const Node& n) {
  const std::size_t rank = n.shape.size() + 1;
  ShardingRule r{std::vector(rank, LabelKind::Parallel), {first_labels(rank)}, {first_labels(rank)}, {false}};
  r.results[0].erase(r.results[0].begin() + n.axis);
  r.labels[static_cast<std::size_t>(n.axis)] =
      n.op == Op::MaxReduce || n.dtype == DType::Bool ? LabelKind::Max : LabelKind::Sum;
  return r;
}

// Operands and results have the same axes, of which one is whole.
ShardingRule along_axis(const Node& n, std::size_t operands) {
  const std::size_t rank = n.shape.size();
  ShardingRule r{std::vector(rank, LabelKind::Parallel),
                 std::vector(operands, first_labels(rank)),
                 {first_labels(rank)},
                 std::vector(operands, false)};
  r.labels[axis_of(n)] = LabelKind::Whole;
  return r;
}

// out[.., j, ..] = data[.., index[.., j, ..], ..]
ShardingRule gather_rule(const Node& n) {
  const std::size_t rank = n.shape.size(), axis = axis_of(n);
  ShardingRule r{std::vector(rank + 1, LabelKind::Parallel),
                 {first_labels(rank), first_labels(rank)},
                 {first_labels(rank)},
                 {true, false},
                 1};
  r.operands[0][axis] = static_cast<int>(rank);
  r.labels[rank] = LabelKind::Indexed;
  return r;
}

// base[.., index[.., j, ..], ..] += src[.., j, ..]
// Parts of src may be added to zeros on several ranks, which gives parts of the sum.
ShardingRule scatter_rule(const Graph& g, const Node& n) {
  const Node& base = g[n.in[0].node];
  const bool to_zeros = base.op == Op::Constant && base.value == 0 && n.dtype != DType::Bool;
  const std::size_t rank = n.shape.size(), axis = axis_of(n);
  const Labels all = first_labels(rank);
  ShardingRule r{std::vector(rank + 1, LabelKind::Parallel), {all, all, all}, {all}, {false, false, false}, 1};
  r.operands[1][axis] = r.operands[2][axis] = static_cast<int>(rank);
  r.labels[axis] = LabelKind::Indexed;
  r.labels[rank] = to_zeros ? LabelKind::Sum : LabelKind::Whole;
  return r;
}

// Rows of quantised blocks are divided between blocks.
void keep_blocks(ShardingRule& r, int label, std::int64_t format, const Dim& bytes) {
  if (format >= 0) r.in_pieces = label, r.pieces = bytes / Dim(info(static_cast<QuantFormat>(format)).bytes);
}

ShardingRule gather_mm_rule(const Node& n) {
  enum { Row, K, Expert, Column };
  using enum LabelKind;
  ShardingRule r{{Parallel, Sum, Indexed, Parallel},
                 {{Row, K}, {Expert, Column, K}, {Row}},
                 {{Row, Column}},
                 {false, false, false},
                 2};
  keep_blocks(r, K, n.attributes.integer("format"), shape_of(n, 1).back());
  return r;
}

// [..., bytes of blocks] -> [..., elements of blocks]
ShardingRule dequantize_rule(const Node& n) {
  const std::size_t rank = n.shape.size();
  ShardingRule r{std::vector(rank, LabelKind::Parallel), {first_labels(rank)}, {first_labels(rank)}, {false}};
  keep_blocks(r, static_cast<int>(rank) - 1, n.attributes.integer("format"), shape_of(n, 0).back());
  return r;
}

// q [..., h, s, d], k [..., kv, t, d], v [..., kv, t, e] and perhaps a mask; the derivative has the cotangent of the
// result as a fourth operand. Leading axes and heads are independent; grouped heads are divided as their keys are.
// Queries are independent, too, and keys may be divided with them.
ShardingRule attention_rule(const Node& n, bool derivative) {
  const std::size_t rank = shape_of(n, 0).size();
  enum { Head = 0, Query, Key, Depth, Value, Lead };
  using enum LabelKind;
  ShardingRule r{{Parallel, Sum, Parallel, Whole, Whole}, {}, {}, std::vector(n.in.size(), false)};
  for (std::size_t k = 3; k < rank; ++k) r.labels.push_back(Parallel);
  const auto with = [&](int row, int column, std::size_t axes) {
    Labels l;
    for (int k = Lead; k < static_cast<int>(r.labels.size()); ++k) l.push_back(k);
    l.insert(l.end(), {Head, row, column});
    l.erase(l.begin(), l.end() - static_cast<std::ptrdiff_t>(axes));
    return l;
  };
  r.operands = {with(Query, Depth, rank), with(Key, Depth, rank), with(Key, Value, rank)};
  if (derivative) r.operands.push_back(with(Query, Value, rank));
  if (n.in.size() > r.operands.size()) {
    const Shape& mask = shape_of(n, r.operands.size());
    Labels l = with(Query, -1, mask.size());  // a mask has all keys
    for (std::size_t k = 0; k < mask.size(); ++k)
      if (mask[k] == Dim(1)) l[k] = -1;
    r.operands.push_back(l);
  }
  if (derivative) r.results = {with(Query, Depth, rank), with(Key, Depth, rank), with(Key, Value, rank)};
  else r.results = {with(Query, Value, rank)};
  r.together = {Query, Key};
  r.local = [derivative](const LocalCall& c) {
    if (c.axes[Query].empty()) return call(c.node.composite, c.in, c.node.attributes);
    const TextAttention a{c.ranks, c.axes[Query], !c.axes[Key].empty(), c.place(c.axes[Query]), c.node.attributes};
    return derivative ? text_attention_gradients(a, c.in) : text_attention(a, c.in);
  };
  return r;
}

std::optional<ShardingRule> composite_rule(const Graph& g, const Node& n) {
  if (is(n, barrier()) || is(n, gradient_seed()) || is(n, gradient_result()) || is(n, builtin::index_in_range())) {
    ShardingRule r = elementwise(n);
    r.linear = {true};
    return r;
  }
  if (is(n, builtin::gather())) return gather_rule(n);
  if (is(n, builtin::scatter_add())) return scatter_rule(g, n);
  if (is(n, builtin::gather_mm())) return gather_mm_rule(n);
  if (is(n, builtin::attention())) return attention_rule(n, false);
  if (is(n, builtin::attention_gradients())) return attention_rule(n, true);
  if (is(n, builtin::argsort())) return along_axis(n, 1);
  if (is(n, builtin::dequantize())) return dequantize_rule(n);
  if (is(n, builtin::slice_scatter())) {
    ShardingRule r = along_axis(n, 2);
    r.linear = {true, true};
    return r;
  }
  return std::nullopt;
}

}  // namespace

std::optional<ShardingRule> sharding_rule(const Graph& g, const Node& n) {
  switch (info(n.op).kind) {
    case Kind::Reduce: {
      ShardingRule r = reduction(n);
      r.linear[0] = n.op == Op::SumReduce && n.dtype != DType::Bool;
      return r;
    }
    case Kind::Copy: {
      ShardingRule r = elementwise(n);
      r.linear[0] = n.dtype == g[n.in[0].node].dtype || n.dtype == DType::F64;
      return r;
    }
    case Kind::Elementwise: {
      ShardingRule r = elementwise(n);
      if (n.dtype == DType::Bool) return r;
      if (n.op == Op::Add) r.linear = {true, true};
      if (n.op == Op::Where) r.linear = {false, true, true};
      if (n.op == Op::Mul) r.linear = {true, true};  // but for numbers
      return r;
    }
    case Kind::Composite: return composite_rule(g, n);
    default: return std::nullopt;
  }
}

}  // namespace lc::distributed
