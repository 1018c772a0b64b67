// Writes elementwise operations: the primitives and the elementwise composites.
#include <numbers>

#include "lightcone/stablehlo/write/writer.h"

namespace lc::stablehlo {
namespace {

// Writes 2^x as a power of two, which is exact for integers, whereas e^(x ln 2) rounds the product.
ValueId exp2(Builder& b, ValueId x) { return b.binary("stablehlo.power", b.like(x, 2), x); }

// ln x / ln 2 is rounded, too: if x is a power of two, the nearest integer is the result.
ValueId log2(Builder& b, ValueId x) {
  const ValueId y = b.multiply(b.unary("stablehlo.log", x), b.like(x, std::numbers::log2e));
  const ValueId nearest = b.unary("stablehlo.round_nearest_even", y);
  return b.select(b.compare(exp2(b, nearest), x, "EQ"), nearest, y);
}

// Writes a division whose result is zero for integers divided by zero. `by_zero` is false if no divisor can be zero.
ValueId divided(Builder& b, std::string_view name, ValueId x, ValueId y, bool by_zero) {
  if (is_float_element(b.element(x)) || !by_zero) return b.binary(name, x, y);
  const ValueId zero = b.like_whole(x, 0), is_zero = b.compare(y, zero, "EQ");
  return b.select(is_zero, zero, b.binary(name, x, b.select(is_zero, b.like_whole(x, 1), y)));
}

ValueId of_bools(Builder& b, const Node& n, const std::vector<ValueId>& in) {
  const auto either = [&](ValueId x, ValueId y) { return b.binary("stablehlo.or", x, y); };
  switch (n.op) {
    case Op::Add:
    case Op::Maximum:
    case Op::BitOr: return either(in[0], in[1]);
    case Op::Mul:
    case Op::Minimum:
    case Op::Div:
    case Op::BitAnd: return b.both(in[0], in[1]);
    case Op::Mod: return b.like_whole(in[0], 0);
    case Op::Pow: return either(in[0], b.unary("stablehlo.not", in[1]));
    case Op::BitXor: return b.binary("stablehlo.xor", in[0], in[1]);
    default: break;
  }
  throw Error("export_stablehlo", str_cat(info(n.op).name, " of bool has no meaning in StableHLO"), n.where);
}

}  // namespace

ValueId write_elementwise(Builder& b, const Node& n, const std::vector<ValueId>& in, bool by_zero) {
  const bool bools = n.dtype == DType::Bool && n.op != Op::LessThan && n.op != Op::Equal && n.op != Op::Where;
  if (bools) return of_bools(b, n, in);
  if (const std::string_view same = info(n.op).stablehlo; !same.empty())
    return in.size() == 1 ? b.unary(str_cat("stablehlo.", same), in[0])
                          : b.binary(str_cat("stablehlo.", same), in[0], in[1]);
  switch (n.op) {
    case Op::Log2: return log2(b, in[0]);
    case Op::Exp2: return exp2(b, in[0]);
    case Op::Recip: return b.binary("stablehlo.divide", b.like(in[0], 1), in[0]);
    case Op::Add: return b.add(in[0], in[1]);
    case Op::Mul: return b.multiply(in[0], in[1]);
    case Op::Mod: return divided(b, "stablehlo.remainder", in[0], in[1], by_zero);
    case Op::Div: return divided(b, "stablehlo.divide", in[0], in[1], by_zero);
    case Op::LessThan: return b.compare(in[0], in[1], "LT");
    case Op::Equal: return b.compare(in[0], in[1], "EQ");
    case Op::Where: return b.select(in[0], in[1], in[2]);
    case Op::BitAnd: return b.both(in[0], in[1]);
    case Op::Bitcast: return b.bitcast(in[0], element_of(n.dtype));
    default: break;
  }
  throw Error("export_stablehlo", str_cat(info(n.op).name, " has no counterpart in StableHLO"), n.where);
}

}  // namespace lc::stablehlo
