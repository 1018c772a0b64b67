// rope: rotary position embedding (J. Su et al., "RoFormer", 2021).
#include "lightcone/composites/internal.h"
#include "lightcone/composites/layers.h"

namespace lc {
namespace {

using namespace definitions;

std::vector<TensorType> infer_rope(const Attributes&, OperandTypes in) {
  one_float_type(in);
  const Shape &x = in[0].shape, &cos = in[1].shape;
  if (x.empty() || cos.empty() || cos != in[2].shape)
    refuse(str_cat("cosines ", str(cos), " and sines ", str(in[2].shape), " do not fit ", str(x)));
  Shape pairs = x;
  pairs.back() = x.back() / Dim(2);
  if (!(pairs.back() * 2 == x.back()) || !(cos.back() == pairs.back()) || !broadcasts_to(cos, pairs))
    refuse(str_cat("angles of ", str(cos), " do not fit ", str(x)));
  return {in[0]};
}

// Joins the two elements of each pair along the last axis. A mask selects, because 0 + -0 is not -0.
Tensor joined(const Tensor& first, const Tensor& second) {
  const int last = first.rank() - 1;
  const Tensor a = first.pad(last, 0, 1), b = second.pad(last, 1, 0);
  return where(a.graph().index(a.shape(), less(Dim::index(last, 2), 1), DType::Bool), a, b);
}

std::vector<Tensor> define_rope(const Attributes& a, std::span<const Tensor> in) {
  const bool interleaved = a.integer("interleaved") != 0;
  const Shape shape = in[0].shape();
  const Dim half = shape.back() / Dim(2);
  Shape pairs = shape;
  pairs.back() = interleaved ? half : Dim(2);
  pairs.push_back(interleaved ? Dim(2) : half);
  Tensor t = in[0].reshape(pairs);
  if (!interleaved) t = t.transpose(-1, -2);
  const int last = t.rank() - 1;
  const Tensor x = t.slice(last, 0, 1), y = t.slice(last, 1, 2);
  const auto angle = [&](const Tensor& p) { return expand_to(p.unsqueeze(p.rank()), x.shape()); };
  const Tensor cos = angle(in[1]), sin = angle(in[2]);
  Tensor r = joined(add(mul(x, cos), negate(mul(y, sin))), add(mul(x, sin), mul(y, cos)));
  if (!interleaved) r = r.transpose(-1, -2);
  return {r.reshape(shape)};
}

}  // namespace

namespace builtin {
const CompositeRef& rope() {
  static const CompositeRef c = std::make_shared<const Composite>(
      Composite{.name = "rope", .arity = 3, .infer = infer_rope, .define = define_rope, .transparent = true});
  return c;
}
}  // namespace builtin

}  // namespace lc
