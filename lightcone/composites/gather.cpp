// gather: elements of a tensor by their indices along one axis (torch.gather).
#include <cmath>

#include "lightcone/composites/internal.h"

namespace lc {
namespace {

using namespace prim;
using namespace definitions;

std::vector<TensorType> infer_gather(const Attributes& a, OperandTypes in) {
  along_axis(in, axis_of(a));
  integer_index(in[1]);
  return {{in[0].dtype, in[1].shape}};
}

// Sums over a one-hot mask. An infinity in a row that is not chosen turns the result into NaN.
std::vector<Tensor> define_gather(const Attributes& a, std::span<const Tensor> in) {
  const int axis = axis_of(a);
  const Tensor hit = hits(in[1], axis, in[0].extent(axis));
  const Tensor data = in[0].unsqueeze(axis).expand(hit.shape());
  return {sum_reduce(where(hit, data, like(data, 0)), axis + 1)};
}

// Elements dropped by an out-of-range index get no gradient.
std::vector<Tensor> vjp_gather(const VjpCall& c) {
  return {scatter_add(like(c.x(), 0), c.in[1], c.g(), axis_of(c.attributes)), {}};
}

Value evaluate_gather(const Evaluation& e) {
  const Node& n = e.node;
  const lc::Operands in = e.in;
  const Integers& shape = e.shape;
  Value out = make_value(n.dtype, shape);
  if (sampled(in)) out.shift.resize(out.size());
  const AxisView data(in[0]->shape, axis_of(n.attributes)), idx(shape, axis_of(n.attributes));
  const auto read = [&](i64 o, i64 j, i64 i) { return j >= 0 && j < data.length ? in[0]->at(data.at(o, j, i)) : 0.0; };
  idx.each([&](i64 o, i64 k, i64 i) {
    const std::size_t to = idx.at(o, k, i);
    const i64 j = in[1]->i[to];
    if (j >= 0 && j < data.length) copy_element(*in[0], data.at(o, j, i), out, to);
    const Deviations moved = shift_at(*in[1], to);
    if (exact(moved)) return;
    for (std::size_t l = 0; l < kSamples; ++l) {  // the index differs in this sample
      if (moved[l] == 0) continue;
      const i64 other = std::isnan(moved[l]) ? 0 : j + std::llround(moved[l]);
      const bool inside = other >= 0 && other < data.length;
      const double more = inside ? shift_at(*in[0], data.at(o, other, i))[l] : 0;
      out.shift[to][l] = std::isnan(moved[l]) ? kNaN : deviation(read(o, other, i) + more, out.at(to));
    }
  });
  return out;
}

}  // namespace

namespace builtin {
const CompositeRef& gather() {
  static const CompositeRef c = std::make_shared<const Composite>(Composite{.name = "gather",
                                                                            .arity = 2,
                                                                            .infer = infer_gather,
                                                                            .define = define_gather,
                                                                            .reference = reference(evaluate_gather),
                                                                            .vjp = vjp_gather});
  return c;
}
}  // namespace builtin

namespace prim {
Tensor gather(Operand data, Operand index, int axis) { return along(builtin::gather(), {data, index}, data, axis); }
}  // namespace prim

}  // namespace lc
