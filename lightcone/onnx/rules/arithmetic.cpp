// Functions of several operands that broadcast, comparisons, and conversions.
#include "lightcone/onnx/read/call.h"
#include "lightcone/ops/special/special.h"

namespace lc::onnx {
namespace {

// Broadcasts the first two operands. Up to operator set 6 the second one's axes are aligned at the attribute `axis`.
std::pair<Tensor, Tensor> pair(Call& c) {
  Tensor a = c.x(0), b = c.x(1);
  if (c.opset < 7 && c.node.domain.empty()) {
    const bool spread = c.flag("broadcast");
    const int axis = c.has_attribute("axis") ? c.axis("axis", 0, std::max(a.rank(), 1)) : a.rank() - b.rank();
    if (spread) {
      Shape s = b.shape();
      s.resize(static_cast<std::size_t>(std::max(a.rank() - axis, b.rank())), 1);
      b = b.reshape(s);
    }
    c.ignore("consumed_inputs");
  }
  if (a.dtype() != b.dtype())
    c.refuse(str_cat("its operands have the types ", name(a.dtype()), " and ", name(b.dtype())));
  const auto both = broadcast(c, {a, b});
  return {both[0], both[1]};
}

template <Tensor (*f)(Operand, Operand)>
Values binary(Call& c) {
  const auto [a, b] = pair(c);
  return {f(a, b)};
}
template <Tensor (*f)(TensorOrNumber, TensorOrNumber)>
Values promoting(Call& c) {
  const auto [a, b] = pair(c);
  return {f(a, b)};
}
Values add_(Call& c) {
  const auto [a, b] = pair(c);
  return {a + b};
}
Values sub_(Call& c) {
  const auto [a, b] = pair(c);
  return {a - b};
}
Values div_(Call& c) {  // integers are cut towards zero
  const auto [a, b] = pair(c);
  return {prim::div(a, b)};
}
Values pow_(Call& c) {  // the result has the type of the base
  const Tensor a = c.x(0);
  Tensor b = c.x(1);
  const DType t = a.dtype();
  if (!is_float(t) && is_float(b.dtype())) {
    const auto both = broadcast(c, {a.to(b.dtype()), b});
    return {pow(both[0], both[1]).to(t)};
  }
  const auto both = broadcast(c, {a, b.to(t)});
  const auto n = product(b.shape()) == Dim(1) ? c.importer.known().numbers(b) : std::nullopt;
  if (n && (n->front() == 2 || n->front() == 3)) return {pow(both[0], n->front())};
  return {pow(both[0], both[1])};
}
Values mod_(Call& c) {
  const bool truncates = c.flag("fmod");
  const auto [a, b] = pair(c);
  if (is_float(a.dtype()) && !truncates) c.refuse("needs fmod=1 for floats");
  return {truncates ? fmod(a, b) : remainder(a, b)};
}
Values prelu_(Call& c) {
  const Tensor x = c.x(0), slope = expand_to(c, c.x(1), x.shape());
  return {where(x < 0, x * slope, x)};
}
Values equal_(Call& c) {
  const auto [a, b] = pair(c);
  return {eq(a, b)};
}
Values shift(Call& c) {
  const std::string_view direction = c.text("direction");
  const auto [a, b] = pair(c);
  if (direction == "LEFT") return {bitwise_left_shift(a, b)};
  if (direction == "RIGHT") return {bitwise_right_shift(a, b)};
  c.refuse("needs direction LEFT or RIGHT");
}
Values where_(Call& c) {
  const auto all = broadcast(c, {c.x(0), c.x(1), c.x(2)});
  return {where(all[0], all[1], all[2])};
}

// Sum, Mean, Max and Min of any number of operands.
template <Tensor (*f)(Operand, Operand)>
Values variadic(Call& c) {
  c.ignore("consumed_inputs");
  std::vector<Tensor> all;
  for (std::size_t k = 0; k < c.in.size(); ++k) all.push_back(c.x(k));
  if (all.empty()) c.refuse("has no operands");
  all = broadcast(c, all);
  Tensor r = all[0];
  for (std::size_t k = 1; k < all.size(); ++k) r = f(r, all[k]);
  return {r};
}
Tensor plus(Operand a, Operand b) { return prim::add(a, b); }
Values mean_(Call& c) {
  const double n = static_cast<double>(c.in.size());
  return {variadic<plus>(c)[0].tensor / n};
}

Values clip_(Call& c) {
  const Tensor x = c.x();
  if (c.opset < 11) {
    c.ignore("consumed_inputs");
    const double low = c.number("min", -3.4028234663852886e38), high = c.number("max", 3.4028234663852886e38);
    return {minimum(maximum(x, full_like(x, low)), full_like(x, high))};
  }
  Tensor r = x;
  if (const Tensor low = c.optional(1); low.defined()) r = maximum(r, expand_to(c, low.reshape({}), x.shape()));
  if (const Tensor high = c.optional(2); high.defined()) r = minimum(r, expand_to(c, high.reshape({}), x.shape()));
  return {r};
}

// Keeps the lowest bits of whole numbers, with their sign.
Tensor low_bits(const Tensor& x, ElementType to) {
  const int bits = to == ElementType::Int4 || to == ElementType::Uint4 ? 4 : 2;
  const bool with_sign = to == ElementType::Int4 || to == ElementType::Int2;
  const Tensor low = remainder(x.to(DType::I32), 1 << bits);
  return with_sign ? where(low >= (1 << (bits - 1)), low - (1 << bits), low) : low;
}
Values convert(Call& c, ElementType type) {
  const auto to = dtype_of(type);
  if (!to) c.refuse(str_cat("converts to ", name(type), ", which is not supported"));
  const Tensor x = c.x();
  const bool saturates = c.flag("saturate", true);
  c.ignore("round_mode");  // it matters for float8e8m0 alone
  if (is_packed(type)) {
    Value v(low_bits(x, type).to(*to));
    v.packed = type;
    return {v};
  }
  if (to == DType::F8E4M3FN && !saturates) c.refuse("saturate=0 gives NaN where this library's conversion saturates");
  if (to == DType::F8E5M2 && saturates) {
    const Tensor wide = x.to(DType::F32);
    return {where(isnan(wide), wide, clamp(wide, -57344.0, 57344.0)).to(*to)};
  }
  return {x.to(*to)};
}
Values cast_(Call& c) { return convert(c, c.element_type("to")); }
Values cast_like(Call& c) {
  const Value& like = c.value(1);
  return convert(c, is_packed(like.packed) ? like.packed : element_type_of(c.x(1).dtype()));
}
Values bit_cast(Call& c) {
  const DType to = c.dtype("to", ElementType::Undefined);
  if (size_of(to) != size_of(c.x().dtype())) c.refuse("needs two types of one size");
  return {to == c.x().dtype() ? c.x() : prim::bitcast(c.x(), to)};
}

}  // namespace

void add_arithmetic(Operators& t) {
  const Operator rows[] = {
      {"", "Add", 1, add_, "a + b"},
      {"", "And", 1, binary<logical_and>, "logical_and"},
      {"", "BitCast", 26, bit_cast, "bitcast"},
      {"", "BitShift", 11, shift, "bitwise_left_shift, bitwise_right_shift"},
      {"", "BitwiseAnd", 18, binary<prim::bitwise_and>, "bitwise_and"},
      {"", "BitwiseOr", 18, binary<prim::bitwise_or>, "bitwise_or"},
      {"", "BitwiseXor", 18, binary<prim::bitwise_xor>, "bitwise_xor"},
      {"", "Cast", 6, cast_, "to"},
      {"", "CastLike", 15, cast_like, "to"},
      {"", "Clip", 1, clip_, "maximum and minimum"},
      {"", "Div", 1, div_, "div; integers are cut towards zero"},
      {"", "Equal", 1, equal_, "eq"},
      {"", "Greater", 1, promoting<gt>, "gt"},
      {"", "GreaterOrEqual", 12, promoting<ge>, "ge"},
      {"", "Less", 1, promoting<lt>, "lt"},
      {"", "LessOrEqual", 12, promoting<le>, "le"},
      {"", "Max", 1, variadic<maximum>, "maximum"},
      {"", "Mean", 1, mean_, "the sum divided by the number of operands"},
      {"", "Min", 1, variadic<minimum>, "minimum"},
      {"", "Mod", 10, mod_, "remainder; fmod with the attribute fmod"},
      {"", "Mul", 1, promoting<mul>, "a * b"},
      {"", "Or", 1, binary<logical_or>, "logical_or"},
      {"", "PRelu", 1, prelu_, "where"},
      {"", "Pow", 1, pow_, "pow, in the type of the base"},
      {"", "Sub", 1, sub_, "a - b"},
      {"", "Sum", 1, variadic<plus>, "a + b + ..."},
      {"", "Where", 9, where_, "where"},
      {"", "Xor", 1, binary<logical_xor>, "logical_xor"},
  };
  t.insert(t.end(), std::begin(rows), std::end(rows));
}

}  // namespace lc::onnx
