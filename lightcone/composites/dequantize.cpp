// dequantize: decodes ggml's quantised blocks to f32 (block_formats.h).
#include <algorithm>

#include "lightcone/composites/block_formats.h"
#include "lightcone/composites/internal.h"

namespace lc {
namespace {

using namespace prim;
using namespace definitions;

const QuantInfo& format_of(const Attributes& a) { return info(static_cast<QuantFormat>(a.integer("format"))); }

std::vector<TensorType> infer_dequantize(const Attributes& a, OperandTypes in) {
  const QuantInfo& q = format_of(a);
  Shape s = in[0].shape;
  if (in[0].dtype != DType::U8 || s.empty()) refuse("needs rows of u8 blocks");
  if (!(s.back() % Dim(q.bytes) == Dim(0)))
    refuse(str_cat("rows of ", s.back(), " bytes are not whole ", q.name, " blocks of ", q.bytes));
  s.back() = s.back() / Dim(q.bytes) * Dim(q.elements);
  return {{DType::F32, s}};
}

// Assembles a binary16 from its two bytes, including NaN and infinities, and converts it to f32.
Tensor half_from_bytes(const Tensor& low, const Tensor& high) {
  const Tensor upper = cast(high, DType::U16);
  return cast(bitcast(add(cast(low, DType::U16), mul(upper, like(upper, 256))), DType::F16), DType::F32);
}

std::vector<Tensor> define_dequantize(const Attributes& a, std::span<const Tensor> in) {
  const QuantInfo& q = format_of(a);
  Shape s = in[0].shape();
  s.back() = s.back() / Dim(q.bytes);
  s.push_back(q.bytes);
  const Tensor blocks = cast(contiguous(in[0]).reshape(s), DType::F32);
  const int last = blocks.rank() - 1;
  s.back() = q.elements;
  const QuantLayout<Dim> layout = quant_layout<Dim>(q.format, Dim::index(last, q.elements));
  const auto floor_of = [](const Tensor& x) { return add(x, negate(mod(x, like(x, 1)))); };
  const auto bits = [&](const QuantBits<Dim>& b) {
    Graph& g = in[0].graph();
    if (b.width == 0) return g.index(s, 0, DType::F32);
    const Tensor byte = gather(blocks, g.index(s, b.byte), last);
    const Tensor shifted = floor_of(mul(byte, exp2(g.index(s, b.shift * -1, DType::F32))));
    return mul(mod(shifted, like(shifted, 1 << b.width)), like(shifted, 1 << b.place));
  };
  const auto code = [&](const QuantCode<Dim>& c) {
    Tensor v = add(bits(c.low), bits(c.high));
    if (c.is_signed) v = add(v, mul(cast(less_than(like(v, 127.5), v), DType::F32), like(v, -256)));
    return add(v, like(v, c.bias));
  };
  const auto half = [&](int at) {
    return half_from_bytes(blocks.slice(last, at, at + 1), blocks.slice(last, at + 1, at + 2)).expand(s);
  };
  Tensor v = mul(mul(half(layout.d), code(layout.scale)), code(layout.q));
  if (layout.d_min >= 0) v = add(v, negate(mul(half(layout.d_min), code(layout.min))));
  s.pop_back();
  s.back() = s.back() * Dim(q.elements);
  return {v.reshape(s)};
}

Value evaluate_dequantize(const Evaluation& e) {
  const Node& n = e.node;
  const Value& in = *e.in[0];
  const IntList& shape = e.shape;
  const QuantInfo& q = info(static_cast<QuantFormat>(n.attributes.integer("format")));
  Value out = make_value(DType::F32, shape);
  for (std::size_t k = 0; k < out.size(); ++k) {
    const auto block = static_cast<i64>(k) / q.elements;
    const i64* p = in.i.data() + block * q.bytes;
    out.f[k] = quant_value(q.format, static_cast<i64>(k) % q.elements, [&](i64 at) { return p[at]; });
  }
  const auto inexact = [](const Deviations& s) { return !exact(s); };
  if (std::any_of(in.shift.begin(), in.shift.end(), inexact)) out.shift.assign(out.size(), kUnknown);
  return out;
}

}  // namespace

namespace builtin {
const CompositeRef& dequantize() {
  static const CompositeRef c = std::make_shared<const Composite>(Composite{.name = "dequantize",
                                                                            .arity = 1,
                                                                            .infer = infer_dequantize,
                                                                            .define = define_dequantize,
                                                                            .reference = reference(evaluate_dequantize),
                                                                            .vjp = no_vjp});
  return c;
}
}  // namespace builtin

namespace prim {
Tensor dequantize(Operand bytes, QuantFormat format) {
  return call(builtin::dequantize(), {bytes}, {{"format", std::int64_t{static_cast<int>(format)}}}, bytes.at)[0];
}
}  // namespace prim

}  // namespace lc
