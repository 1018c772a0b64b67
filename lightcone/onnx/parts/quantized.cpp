#include "lightcone/onnx/parts/quantized.h"

#include <algorithm>

#include "lightcone/onnx/parts/as_onnx.h"

namespace lc::onnx {
namespace {

// The largest finite number of E5M2, to which ONNX saturates and PyTorch does not.
constexpr double kMostE5M2 = 57344;

struct IntegerRange {
  std::int64_t least, most;
};
IntegerRange range_of(ElementType packed) {
  switch (packed) {
    case ElementType::Uint4: return {0, 15};
    case ElementType::Int4: return {-8, 7};
    case ElementType::Uint2: return {0, 3};
    default: return {-2, 1};
  }
}

Tensor at_least_f32(const Tensor& t) { return t.dtype() == DType::F64 ? t : prim::cast(t, DType::F32); }

bool is_byte_tensor(const Tensor& t) { return t.dtype() == DType::I8 || t.dtype() == DType::U8; }

// Bytes as signed ones, less 128 if they were unsigned.
Tensor signed_bytes(const Tensor& t) {
  if (t.dtype() == DType::I8) return t;
  return prim::cast(sub(prim::cast(t, DType::I32), 128), DType::I8);
}
// The zero point of those; undefined if it is known to be 0.
Tensor zero_of_signed(Call& c, const Tensor& zero, const Tensor& of) {
  const int shift = of.dtype() == DType::U8 ? 128 : 0;
  if (!zero.defined()) return shift ? full(of, {}, -shift, DType::I32) : Tensor();
  if (!shift) return known_zero(c, zero) ? Tensor() : prim::cast(zero, DType::I32);
  const auto known = zero.rank() == 0 || zero.shape() == Shape{1} ? c.importer.known().integers(zero) : std::nullopt;
  if (known && (*known)[0] == Dim(128)) return {};
  return sub(prim::cast(zero, DType::I32), shift);
}
// The sum of bytes along an axis, which stays. It does not share the product's conversion to i32, which then need not
// lie in memory; sums in f32 are exact up to 2^24.
Tensor sum_of_bytes(const Tensor& bytes, int axis) {
  const int at = bytes.rank() + axis;
  const DType in = bytes.extent(at).bounds().hi <= (1 << 16) ? DType::F32 : DType::I64;
  return prim::cast(prim::sum_reduce(prim::cast(bytes, in), at), DType::I32).unsqueeze(at);
}
// Bytes as i32. The cast is of the value as it is stored, below its view: products of bytes are known by such casts.
Tensor widened(Call& c, const Tensor& bytes) {
  const Edge e = bytes.edge();
  const Tensor stored(c.graph(), Edge{e.node, View(c.graph()[e.node].shape)});
  return prim::cast(stored, DType::I32).with(e.view);
}
// [1] as a scalar.
Tensor scalar_if_one(const Tensor& t) { return t.shape() == Shape{1} ? t.reshape({}) : t; }

}  // namespace

Tensor spread_scale(Call& c, const Tensor& t, const Shape& shape, int axis, std::int64_t block) {
  const int rank = static_cast<int>(shape.size());
  if (t.rank() == 0 || t.shape() == Shape{1}) return t.reshape({});
  if (block > 0) {
    if (t.rank() != rank) c.refuse(str_cat("has scales ", str(t.shape()), " for blocks of ", str(shape)));
    Shape repeated = t.shape();
    repeated.insert(repeated.begin() + axis + 1, block);
    Shape merged = t.shape();
    merged[static_cast<std::size_t>(axis)] = merged[static_cast<std::size_t>(axis)] * Dim(block);
    const Tensor all = t.unsqueeze(axis + 1).expand(repeated).reshape(merged);
    return expand_to(c, narrow(all, axis, 0, shape[static_cast<std::size_t>(axis)]), shape);
  }
  if (t.rank() != 1) c.refuse(str_cat("has scales ", str(t.shape()), " and no block size"));
  if (axis < 0 || axis >= rank) c.refuse(str_cat("has axis ", axis, " for a tensor ", str(shape)));
  Shape s(shape.size(), 1);
  s[static_cast<std::size_t>(axis)] = t.extent(0);
  return expand_to(c, t.reshape(s), shape);
}

ElementType element_type(const Value& v) {
  return v.packed != ElementType::Undefined ? v.packed : element_type_of(v.tensor.dtype());
}

bool known_zero(Call& c, const Tensor& t) {
  if (t.node().op == Op::Constant) return t.node().value == 0;
  const auto all = c.importer.known().numbers(t);
  return all && std::ranges::all_of(*all, [](double v) { return v == 0; });
}

Value saturated(Call& c, const Tensor& x, const Tensor& zero, ElementType type) {
  const auto to = dtype_of(type);
  if (!to) c.refuse(str_cat("quantises to ", name(type), ", which is not supported"));
  const bool shifts = zero.defined() && !known_zero(c, zero);
  if (is_float(*to)) {
    Tensor y = at_least_f32(x);
    if (shifts) y = y + prim::cast(zero, y.dtype());
    if (type == ElementType::Float8E5M2) y = where(isnan(y), y, clamp(y, -kMostE5M2, kMostE5M2));
    return {y.to(*to)};
  }
  Tensor y = lc::round(at_least_f32(x));
  if (shifts) y = y + prim::cast(zero, y.dtype());
  if (!is_packed(type)) return {prim::cast(y, *to)};  // which saturates, and gives 0 for NaN
  const IntegerRange range = range_of(type);
  Value v(prim::cast(minimum(maximum(y, full_like(y, range.least)), full_like(y, range.most)), *to));
  v.packed = type;
  return v;
}
Value quantized(Call& c, const Tensor& x, const Tensor& scale, const Tensor& zero, ElementType type) {
  return saturated(c, x.dtype() == scale.dtype() ? x / scale : at_least_f32(x) / at_least_f32(scale), zero, type);
}

Tensor dequantized(Call& c, const Tensor& x, const Tensor& scale, const Tensor& zero, DType to) {
  const bool subtracts = zero.defined() && !known_zero(c, zero);
  Tensor y;
  if (subtracts && is_integer(x.dtype()) && size_of(x.dtype()) >= 4)
    y = prim::cast(sub(x, prim::cast(zero, x.dtype())), DType::F32);
  else if (subtracts) y = prim::cast(x, DType::F32) - prim::cast(zero, DType::F32);
  else y = prim::cast(x, DType::F32);
  return prim::cast(y * prim::cast(scale, DType::F32), to);
}

Tensor by_row(const Tensor& t) {
  return t.defined() && t.rank() == 1
             ? scalar_if_one(t).reshape(t.shape() == Shape{1} ? Shape{} : Shape{t.extent(0), 1})
             : t;
}

Tensor byte_product(Call& c, const Tensor& a, const Tensor& a_zero, const Tensor& b, const Tensor& b_zero) {
  if (!is_byte_tensor(a) || !is_byte_tensor(b))
    c.refuse(str_cat("multiplies ", name(a.dtype()), " by ", name(b.dtype())));
  if (a.rank() == 0 || b.rank() == 0) c.refuse("multiplies scalars");
  const bool row = a.rank() == 1, column = b.rank() == 1;
  Tensor x = signed_bytes(a), w = signed_bytes(b);
  if (row) x = x.unsqueeze(0);
  if (column) w = w.unsqueeze(1);
  if (!(x.extent(-1) == w.extent(-2))) c.importer.same_extent(x.extent(-1), w.extent(-2));
  Tensor zx = zero_of_signed(c, a_zero, a), zw = zero_of_signed(c, b_zero, b);
  if (zx.defined()) zx = by_row(zx);
  if (zw.defined()) zw = scalar_if_one(zw);
  Tensor y = matmul(widened(c, x), widened(c, w));
  if (zx.defined()) y = sub(y, mul(zx, sum_of_bytes(w, -2)));
  if (zw.defined()) y = sub(y, mul(zw, sum_of_bytes(x, -1)));
  if (zx.defined() && zw.defined()) y = add(y, mul(mul(zx, zw), c.graph().index({}, x.extent(-1), DType::I32)));
  if (column) y = y.squeeze(-1);
  if (row) y = y.squeeze(column ? -1 : -2);
  return y;
}

DynamicBytes dynamic_bytes(Call& c, const Tensor& x) {
  const Tensor none = full(x, {}, 0, x.dtype());
  const Tensor low = minimum(amin(x), none), high = maximum(amax(x), none);
  const Tensor range = (high - low) / 255.0;
  const Tensor scale = where(range > 0, range, full_like(range, 1));  // where x is all 0, any scale will do
  const Tensor zero = lc::round(clamp(-low / scale, 0.0, 255.0)).to(DType::U8);
  return {quantized(c, x, scale, zero, ElementType::Uint8).tensor, scale, zero};
}

Values quantized_conv(Call& c, bool channels_last) {
  Tensor x = c.x(0);
  const Tensor w = c.x(3);
  if (channels_last) x = movedim(x, {-1}, {1});
  const auto by_filter = [&](const Tensor& t, int rank) {  // [m] as [m, 1, ...]
    if (!t.defined() || t.rank() == 0 || t.shape() == Shape{1}) return t.defined() ? t.reshape({}) : t;
    if (rank < 1) c.refuse(str_cat("has ", str(t.shape()), " where one number is needed"));
    Shape s(static_cast<std::size_t>(rank), 1);
    s[0] = t.extent(0);
    return t.reshape(s);
  };
  const auto centred = [&](const Tensor& t, const Tensor& zero) {
    const Tensor v = prim::cast(t, DType::F32);
    return !zero.defined() || known_zero(c, zero) ? v : v - prim::cast(zero, DType::F32);
  };
  Values operands{centred(x, by_filter(c.optional(2), 0)), centred(w, by_filter(c.optional(5), w.rank()))};
  Tensor y = as_onnx(c, "Conv", 11, std::move(operands)).at(0).tensor;
  if (const Tensor bias = c.optional(8); bias.defined()) y = y + prim::cast(by_filter(bias, w.rank() - 1), DType::F32);
  const Tensor scale = c.x(1).reshape({}) * by_filter(c.x(4), w.rank() - 1) / c.x(6).reshape({});
  const ElementType type = c.has(7) ? element_type(c.value(7)) : element_type(c.value(0));
  const Tensor zero = c.optional(7);
  Value r = saturated(c, y * scale, zero.defined() ? zero.reshape({}) : zero, type);
  if (channels_last) r.tensor = movedim(r.tensor, {1}, {-1});
  return {r};
}

}  // namespace lc::onnx
