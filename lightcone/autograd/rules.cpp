#include "lightcone/autograd/rules.h"

#include <numbers>

#include "lightcone/composites/definitions.h"

namespace lc {
namespace {

using namespace definitions;
using Cotangents = std::vector<Tensor>;

Tensor scaled(const Tensor& t, double by) { return mul(t, like(t, by)); }
Tensor zero_where(const Tensor& condition, const Tensor& t) { return where(condition, like(t, 0), t); }

Cotangents vjp_log2(const Node&, const VjpCall& c) { return {scaled(div(c.g(), c.x()), std::numbers::log2e)}; }
Cotangents vjp_exp2(const Node&, const VjpCall& c) { return {scaled(mul(c.g(), c.y()), std::numbers::ln2)}; }
Cotangents vjp_sin(const Node&, const VjpCall& c) { return {mul(c.g(), cos(c.x()))}; }
Cotangents vjp_cos(const Node&, const VjpCall& c) { return {negate(mul(c.g(), sin(c.x())))}; }
Cotangents vjp_sqrt(const Node&, const VjpCall& c) { return {div(c.g(), scaled(c.y(), 2))}; }
Cotangents vjp_recip(const Node&, const VjpCall& c) { return {negate(mul(c.g(), mul(c.y(), c.y())))}; }
Cotangents vjp_exp(const Node&, const VjpCall& c) { return {mul(c.g(), c.y())}; }
Cotangents vjp_add(const Node&, const VjpCall& c) { return {c.g(), c.g()}; }

Cotangents vjp_mul(const Node&, const VjpCall& c) {
  Cotangents d(2);
  if (c.wanted[0]) d[0] = mul(c.g(), c.in[1]);
  if (c.wanted[1]) d[1] = mul(c.g(), c.in[0]);
  return d;
}
Cotangents vjp_div(const Node&, const VjpCall& c) {
  Cotangents d(2);
  if (c.wanted[0]) d[0] = div(c.g(), c.in[1]);
  if (c.wanted[1]) d[1] = negate(mul(c.g(), div(c.y(), c.in[1])));
  return d;
}
// a mod b is a - b trunc(a / b), and the derivative of trunc is 0.
Cotangents vjp_mod(const Node&, const VjpCall& c) {
  Cotangents d{c.g(), {}};
  if (c.wanted[1]) d[1] = mul(c.g(), div(add(c.y(), negate(c.in[0])), c.in[1]));
  return d;
}
Cotangents vjp_pow(const Node&, const VjpCall& c) {
  const Tensor &a = c.in[0], &b = c.in[1], zero = like(a, 0);
  Cotangents d(2);
  if (c.wanted[0]) d[0] = mul(c.g(), zero_where(equal(b, zero), mul(b, pow(a, add(b, like(b, -1))))));
  if (c.wanted[1]) {  // 0^b is constant near b >= 0
    const Tensor flat = and_(equal(a, zero), not_(less_than(b, zero)));
    d[1] = mul(c.g(), zero_where(flat, mul(c.y(), scaled(log2(a), std::numbers::ln2))));
  }
  return d;
}
Cotangents vjp_where(const Node&, const VjpCall& c) {
  const Tensor zero = like(c.g(), 0);
  return {{}, where(c.in[0], c.g(), zero), where(c.in[0], zero, c.g())};
}
// Equal operands split the gradient evenly, as in PyTorch.
Cotangents vjp_extreme(const VjpCall& c, const Tensor& a_loses, const Tensor& b_loses) {
  const Tensor shared = where(equal(c.in[0], c.in[1]), scaled(c.g(), 0.5), c.g());
  return {zero_where(a_loses, shared), zero_where(b_loses, shared)};
}
Cotangents vjp_maximum(const Node&, const VjpCall& c) {
  return vjp_extreme(c, less_than(c.in[0], c.in[1]), less_than(c.in[1], c.in[0]));
}
Cotangents vjp_minimum(const Node&, const VjpCall& c) {
  return vjp_extreme(c, less_than(c.in[1], c.in[0]), less_than(c.in[0], c.in[1]));
}
Tensor spread(const Tensor& reduced, const Node& n, const Tensor& x) {
  return reduced.unsqueeze(n.axis).expand(x.shape());
}
Cotangents vjp_sum(const Node& n, const VjpCall& c) { return {spread(c.g(), n, c.x())}; }
// The gradient is split evenly among all maxima, as in PyTorch's amax.
Cotangents vjp_max(const Node& n, const VjpCall& c) {
  const Tensor largest = equal(c.x(), spread(c.y(), n, c.x()));
  const Tensor share = div(c.g(), sum_reduce(cast(largest, c.g().dtype()), n.axis));
  return {where(largest, spread(share, n, c.x()), like(c.x(), 0))};
}
Cotangents vjp_copy(const Node&, const VjpCall& c) { return {cast(c.g(), c.x().dtype())}; }

struct Rule {
  Op op;
  Cotangents (*vjp)(const Node&, const VjpCall&);  // null: zero derivative or no floating values
};
constexpr Rule kRules[] = {
    {Op::Input, nullptr},       {Op::Constant, nullptr},    {Op::Index, nullptr},       {Op::Log2, vjp_log2},
    {Op::Exp2, vjp_exp2},       {Op::Sin, vjp_sin},         {Op::Sqrt, vjp_sqrt},       {Op::Recip, vjp_recip},
    {Op::Add, vjp_add},         {Op::Mul, vjp_mul},         {Op::Mod, vjp_mod},         {Op::LessThan, nullptr},
    {Op::SumReduce, vjp_sum},   {Op::MaxReduce, vjp_max},   {Op::Contiguous, vjp_copy}, {Op::Where, vjp_where},
    {Op::Maximum, vjp_maximum}, {Op::Minimum, vjp_minimum}, {Op::Div, vjp_div},         {Op::Pow, vjp_pow},
    {Op::Equal, nullptr},       {Op::Exp, vjp_exp},         {Op::Cos, vjp_cos},         {Op::Floor, nullptr},
    {Op::Round, nullptr},       {Op::BitAnd, nullptr},      {Op::BitOr, nullptr},       {Op::BitXor, nullptr},
    {Op::Bitcast, nullptr},     {Op::Composite, nullptr},   {Op::Result, nullptr},      {Op::Kernel, nullptr},
};
consteval bool every_row_has_a_rule() {
  for (int i = 0; const Rule& rule : kRules) {
    const OpInfo& row = kOps[i++];
    const bool steps = row.has(kPiecewiseConstant) || row.types == Types::Compare || row.types == Types::Integer ||
                       row.types == Types::Bits;
    const bool smooth = (row.kind == Kind::Elementwise && !steps) || row.kind == Kind::Reduce || row.kind == Kind::Copy;
    if (rule.op != row.op || (rule.vjp != nullptr) != smooth) return false;
  }
  return std::size(kRules) == std::size(kOps);
}
static_assert(every_row_has_a_rule(), "each operation on floating values has a rule of differentiation, in order");

}  // namespace

std::vector<Tensor> apply_rule(const Node& n, const VjpCall& c) {
  const auto vjp = kRules[static_cast<int>(n.op)].vjp;
  return vjp ? vjp(n, c) : Cotangents(n.in.size());
}

}  // namespace lc
