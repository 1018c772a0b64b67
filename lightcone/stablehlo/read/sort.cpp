// Rule for sort: several operands along an axis, in the order of a comparator.
#include <algorithm>

#include "lightcone/composites/composites.h"
#include "lightcone/stablehlo/read/reader.h"

namespace lc::stablehlo {
namespace {

constexpr std::int64_t kMostByCounting = 1 << 14;

// The last operation of the comparator: a comparison LT or GT of the same function of the first and of the second
// element of one operand (the key).
struct Key {
  Tensor key;
  bool descending;
};

// Checks whether two values of a body depend on arguments a and b in the same way.
class Mirror {
 public:
  Mirror(const Block& b, ValueId first, ValueId second) : body_(b), first_(first), second_(second) {}
  bool same(ValueId p, ValueId q, int depth = 0) const {
    if (depth > 50) return false;
    if (p == first_ || q == second_) return p == first_ && q == second_;
    const Operation *f = maker(p), *g = maker(q);
    if (!f || !g) return p == q && !f && !g && !is_argument(p);  // captured
    if (f->name != g->name || f->operands.size() != g->operands.size() || !f->regions.empty() || !g->regions.empty())
      return false;
    if (f->results.size() != 1 || g->results.size() != 1 || !same_attributes(f->attributes, g->attributes))
      return false;
    for (std::size_t k = 0; k < f->operands.size(); ++k)
      if (!same(f->operands[k], g->operands[k], depth + 1)) return false;
    return true;
  }

 private:
  const Operation* maker(ValueId v) const {
    for (const Operation& op : body_.operations)
      if (std::ranges::find(op.results, v) != op.results.end()) return &op;
    return nullptr;
  }
  bool is_argument(ValueId v) const { return std::ranges::find(body_.arguments, v) != body_.arguments.end(); }
  static bool same_attributes(const AttributeList& a, const AttributeList& b) {
    return std::ranges::equal(a, b, [](const NamedAttribute& p, const NamedAttribute& q) {
      return p.first == q.first && p.second.text == q.second.text && p.second.integer == q.second.integer &&
             p.second.data == q.second.data && p.second.integers == q.second.integers;
    });
  }
  const Block& body_;
  ValueId first_, second_;
};

std::optional<Key> key_of(const Call& c, const Block& body) {
  const Operation& last = body.operations.back();
  if (last.name != "stablehlo.return" || last.operands.size() != 1) return std::nullopt;
  const auto compare = std::ranges::find_if(
      body.operations, [&](const Operation& op) { return op.results == std::vector{last.operands[0]}; });
  if (compare == body.operations.end() || compare->name != "stablehlo.compare") return std::nullopt;
  const Attribute *direction = compare->find("comparison_direction"), *type = compare->find("compare_type");
  if (!direction || (direction->text != "LT" && direction->text != "GT")) return std::nullopt;
  for (std::size_t k = 0; k < c.in.size(); ++k) {
    const ValueId a = body.arguments[2 * k], b = body.arguments[2 * k + 1];
    bool descending = direction->text == "GT";
    if (Mirror(body, b, a).same(compare->operands[0], compare->operands[1])) descending = !descending;
    else if (!Mirror(body, a, b).same(compare->operands[0], compare->operands[1])) continue;
    // Compute the key of every element: the body with all elements as its first and as its second argument.
    std::vector<Tensor> arguments;
    for (const Tensor& t : c.in) arguments.push_back(t), arguments.push_back(t);
    c.reader.elementwise(body, arguments);
    Tensor key = to_shape(c.reader.value(compare->operands[0]), c.x().shape());
    if (is_float(key.dtype())) {
      if (!type || type->text != "TOTALORDER") return std::nullopt;  // NaN has no order
      key = total_order(key);
    }
    return Key{key, descending};
  }
  return std::nullopt;
}

// Returns the number of elements that precede each one: smaller ones, and equal ones that came earlier.
Tensor order_by_counting(const Call& c, const Block& body, int axis) {
  const std::int64_t n = *c.x().extent(axis).constant();
  if (n > kMostByCounting)
    c.refuse(str_cat("of more than ", kMostByCounting, " elements by an order of its own is not supported"));
  Shape s = c.x().shape();
  s.insert(s.begin() + axis, n);  // [.., j, i, ..]
  std::vector<Tensor> forward, backward;
  for (const Tensor& t : c.in) {
    const Tensor i = t.unsqueeze(axis).expand(s), j = t.unsqueeze(axis + 1).expand(s);
    forward.push_back(j), forward.push_back(i);
    backward.push_back(i), backward.push_back(j);
  }
  const Tensor less = c.reader.elementwise(body, forward)[0], more = c.reader.elementwise(body, backward)[0];
  const Tensor before = prim::less_than(index_along(c.graph(), s, axis), index_along(c.graph(), s, axis + 1));
  const Tensor first = logical_or(less, logical_and(logical_not(more), before));
  const Tensor rank = prim::sum_reduce(prim::cast(first, DType::I64), axis);
  return prim::scatter(full_like(rank, 0), rank, index_along(c.graph(), rank.shape(), axis), axis);
}

std::vector<Tensor> sort(const Call& c) {
  if (c.in.empty()) c.refuse("sorts nothing");
  for (const Tensor& t : c.in)
    if (!(t.shape() == c.x().shape())) c.refuse("operands have different shapes");
  const Block& body = c.region(0, 2 * c.in.size(), 1);
  std::int64_t axis = c.integer("dimension", -1);
  if (axis < 0) axis += c.x().rank();
  if (axis < 0 || axis >= c.x().rank()) c.refuse(str_cat("there is no axis ", axis));
  if (product(c.x().shape()) == Dim(0)) return c.in;
  const int a = static_cast<int>(axis);
  const auto key = key_of(c, body);
  const Tensor order = key ? prim::argsort(key->key, a, key->descending) : order_by_counting(c, body, a);
  std::vector<Tensor> r;
  for (const Tensor& t : c.in) r.push_back(prim::gather(t, order, a));
  return r;
}

}  // namespace

void add_sort(Rules& r) { r["stablehlo.sort"] = sort; }

}  // namespace lc::stablehlo
