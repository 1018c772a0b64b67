// slice_scatter: a tensor with a range of one axis replaced (torch.slice_scatter).
#include "lightcone/composites/internal.h"

namespace lc {
namespace {

using namespace prim;
using namespace definitions;

std::vector<TensorType> infer_slice_scatter(const Attributes& a, OperandTypes in) {
  const int axis = axis_of(a);
  along_axis(in, axis);
  same_types(in[0], in[1]);
  const auto at = static_cast<std::size_t>(axis);
  const Dim &start = a.dim("start"), room = in[0].shape[at] - start - in[1].shape[at];
  if (start.bounds().hi < 0 || room.bounds().hi < 0)
    refuse(str_cat("[", start, ", ", start + in[1].shape[at], ") leaves axis ", axis, " of ", str(in[0].shape)));
  return {in[0]};
}

std::vector<Tensor> define_slice_scatter(const Attributes& a, std::span<const Tensor> in) {
  const int axis = axis_of(a);
  const Dim start = a.dim("start"), length = in[1].extent(axis);
  const Tensor src = in[1].pad(axis, start, in[0].extent(axis) - start - length);
  const Dim i = Dim::index(axis, in[0].extent(axis));
  const Dim inside = less(start - 1, i) * less(i, start + length);
  return {where(in[0].graph().index(in[0].shape(), inside, DType::Bool), src, in[0])};
}

std::vector<Tensor> vjp_slice_scatter(const VjpCall& c) {
  const int axis = axis_of(c.attributes);
  const Dim start = c.attributes.dim("start");
  return {slice_scatter(c.g(), like(c.in[1], 0), axis, start), c.g().slice(axis, start, start + c.in[1].extent(axis))};
}

Value evaluate_slice_scatter(const Evaluation& e) {
  const Node& n = e.node;
  const lc::Operands in = e.in;
  const Bindings& env = e.sizes;
  Value out = *in[0];
  if (sampled(in)) out.shift.resize(out.size());
  const AxisView base(in[0]->shape, axis_of(n.attributes)), src(in[1]->shape, axis_of(n.attributes));
  const i64 start = n.attributes.dim("start").eval(env);
  if (start < 0 || start + src.length > base.length)
    throw Error("slice_scatter", str_cat("[", start, ", ", start + src.length, ") leaves an axis of ", base.length));
  src.each([&](i64 o, i64 k, i64 i) { copy_element(*in[1], src.at(o, k, i), out, base.at(o, start + k, i)); });
  return out;
}

}  // namespace

namespace builtin {
const CompositeRef& slice_scatter() {
  static const CompositeRef c =
      std::make_shared<const Composite>(Composite{.name = "slice_scatter",
                                                  .arity = 2,
                                                  .infer = infer_slice_scatter,
                                                  .define = define_slice_scatter,
                                                  .reference = reference(evaluate_slice_scatter),
                                                  .vjp = vjp_slice_scatter});
  return c;
}
}  // namespace builtin

namespace prim {
Tensor slice_scatter(Operand base, Operand src, int axis, Dim start) {
  return along(builtin::slice_scatter(), {base, src}, base, axis, {{"start", start}});
}
}  // namespace prim

}  // namespace lc
