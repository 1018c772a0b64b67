// scatter and scatter_add: write or add elements at given indices along one axis (torch.scatter, torch.scatter_add).
#include <algorithm>
#include <cmath>

#include "lightcone/composites/internal.h"
#include "lightcone/core/op_eval.h"

namespace lc {
namespace {

using namespace prim;
using namespace definitions;

std::vector<TensorType> infer_scatter(const Attributes& a, OperandTypes in) {
  along_axis(in, axis_of(a));
  const Shape &index = in[1].shape, &source = in[2].shape;
  if (index.size() != source.size()) refuse(shapes(in) + " have different ranks");
  for (std::size_t i = 0; i < index.size(); ++i)
    if (!(index[i] == source[i])) refuse(str_cat(shapes(in), " differ at axis ", i, ": ", versus(index[i], source[i])));
  integer_index(in[1]);
  same_types(in[0], in[2]);
  return {in[0]};
}

std::vector<Tensor> define_scatter_add(const Attributes& a, std::span<const Tensor> in) {
  const int axis = axis_of(a);
  const Tensor hit = hits(in[1], axis, in[0].extent(axis));
  const Tensor src = in[2].unsqueeze(axis + 1).expand(hit.shape());
  return {add(in[0], sum_reduce(where(hit, src, like(src, 0)), axis))};
}

std::vector<Tensor> define_scatter(const Attributes& a, std::span<const Tensor> in) {
  const int axis = axis_of(a);
  const Tensor hit = hits(in[1], axis, in[0].extent(axis));
  const Tensor order = add(index_of(hit, axis, DType::I64), full_like(index_of(hit, axis, DType::I64), 1));
  const Tensor last = max_reduce(where(hit, order, like(order, 0)), axis);  // 1 + the last writer
  const Tensor value = gather(in[2], add(last, like(last, -1)), axis);
  return {where(less_than(like(last, 0), last), value, in[0])};
}

// Elements dropped by an out-of-range index get no gradient.
std::vector<Tensor> vjp_scatter_add(const VjpCall& c) {
  return {c.g(), {}, gather(c.g(), c.in[1], axis_of(c.attributes))};
}

// The last of several writers gets the gradient: its number is the one found at the written position.
std::vector<Tensor> vjp_scatter(const VjpCall& c) {
  const int axis = axis_of(c.attributes);
  const Tensor& index = c.in[1];
  const Tensor order = index_of(index, axis, DType::I64);
  const Tensor writer = scatter(full(index.graph(), c.x().shape(), -1, DType::I64), index, order, axis);
  const Tensor counts = equal(gather(writer, index, axis), order), g = gather(c.g(), index, axis);
  return {scatter(c.g(), index, like(c.in[2], 0), axis), {}, where(counts, g, like(g, 0))};
}

Value evaluate_scatter(const Evaluation& e) {
  const Node& n = e.node;
  const lc::Operands in = e.in;
  const EvalConfig config{e.rounding, e.noise, e.products};
  Value out = *in[0];
  const bool replaces = is(n, builtin::scatter()), adds = !replaces && is_float(n.dtype);
  if (out.shift.empty() && (sampled(in) || (config.noise && adds))) out.shift.resize(out.size());
  const AxisView base(in[0]->shape, axis_of(n.attributes)), idx(in[1]->shape, axis_of(n.attributes));
  bool undecided = false;
  idx.each([&](i64 o, i64 k, i64 i) {
    const std::size_t from = idx.at(o, k, i);
    const i64 j = in[1]->i[from];
    undecided = undecided || !exact(shift_at(*in[1], from));
    if (j < 0 || j >= base.length) return;
    const std::size_t to = base.at(o, j, i);
    if (replaces) {
      copy_element(*in[2], from, out, to);
    } else if (is_float(n.dtype)) {
      const double term = in[2]->f[from], before = out.f[to];
      out.f[to] = rounded(n.dtype, before + term, config.rounding);
      if (!config.noise) return;
      Deviations& s = out.shift[to];
      const Deviations t = shift_at(*in[2], from);
      for (std::size_t l = 0; l < kSamples; ++l) s[l] = deviation(before + s[l] + (term + t[l]), out.f[to]);
      round_samples(n.dtype, unit_of_sum(n.dtype) * 2, out.f[to], std::fabs(before) + std::fabs(term),
                    config.bits(out.size() + from), s);
    } else {
      out.i[to] = wrapped(n.dtype, eval::add(out.i[to], in[2]->i[from]));
      if (!exact(shift_at(*in[2], from))) out.shift[to] = kUnknown;
    }
  });
  if (undecided) std::fill(out.shift.begin(), out.shift.end(), kUnknown);
  return out;
}

}  // namespace

namespace builtin {
const CompositeRef& scatter() {
  static const CompositeRef c = std::make_shared<const Composite>(Composite{.name = "scatter",
                                                                            .arity = 3,
                                                                            .infer = infer_scatter,
                                                                            .define = define_scatter,
                                                                            .reference = reference(evaluate_scatter),
                                                                            .vjp = vjp_scatter});
  return c;
}
const CompositeRef& scatter_add() {
  static const CompositeRef c = std::make_shared<const Composite>(Composite{.name = "scatter_add",
                                                                            .arity = 3,
                                                                            .infer = infer_scatter,
                                                                            .define = define_scatter_add,
                                                                            .reference = reference(evaluate_scatter),
                                                                            .vjp = vjp_scatter_add});
  return c;
}
}  // namespace builtin

namespace prim {
Tensor scatter(Operand base, Operand index, Operand src, int axis) {
  return along(builtin::scatter(), {base, index, src}, base, axis);
}
Tensor scatter_add(Operand base, Operand index, Operand src, int axis) {
  return along(builtin::scatter_add(), {base, index, src}, base, axis);
}
}  // namespace prim

}  // namespace lc
