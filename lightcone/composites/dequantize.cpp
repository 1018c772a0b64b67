// dequantize: decodes ggml's quantised blocks to f32 (block_formats.h).
#include <algorithm>

#include "lightcone/composites/internal.h"
#include "lightcone/formats/block_formats.h"

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

Tensor floor_of(const Tensor& x) { return add(x, negate(mod(x, like(x, 1)))); }
Tensor above(const Tensor& x, double v) { return cast(less_than(like(x, v), x), DType::F32); }  // 1 or 0

// The definition of a format, for the values of all blocks at once.
class BlockDefinition {
 public:
  BlockDefinition(const QuantInfo& q, const Tensor& bytes) : q_(q), g_(bytes.graph()), s_(bytes.shape()) {
    s_.back() = s_.back() / Dim(q.bytes);
    s_.push_back(q.bytes);
    blocks_ = cast(contiguous(bytes).reshape(s_), DType::F32);
    last_ = blocks_.rank() - 1;
    s_.back() = q.elements;
    k_ = Dim::index(last_, q.elements);
  }
  Tensor values() const {
    const QuantLayout<Dim> l = quant_layout<Dim>(q_, k_);
    Tensor scale = code(l.scale);
    if (q_.more.float_scale) scale = float_scale(scale);
    if (q_.d >= 0) scale = mul(d(q_.d), scale);
    if (q_.more.shift) scale = mul(scale, like(scale, 1.0 / (1 << q_.more.shift)));
    Tensor v = mul(scale, number(code(l.q), l.signs));
    if (q_.d_min >= 0) v = add(v, negate(mul(d(q_.d_min), code(l.min))));
    Shape s = s_;
    s.pop_back();
    s.back() = s.back() * Dim(q_.elements);
    return v.reshape(s);
  }

 private:
  Tensor index(const Dim& i) const { return g_.index(s_, i, DType::F32); }
  Tensor byte(const Dim& i) const { return gather(blocks_, g_.index(s_, i), last_); }
  Tensor bits(const QuantBits<Dim>& b) const {
    if (b.width == 0) return index(0);
    if (b.trits) {
      Tensor x = byte(b.byte);
      const Tensor digit = index(b.shift);
      for (int i = 0; i < 4; ++i) x = mul(x, add(like(x, 1), mul(like(x, 2), above(digit, i + 0.5))));
      x = mod(x, like(x, 256));
      return floor_of(mul(x, like(x, 3.0 / 256)));
    }
    Tensor x = byte(b.byte + b.shift / Dim(8));
    x = floor_of(mul(x, exp2(index(b.shift % Dim(8) * -1))));
    if (!b.one_byte) {  // the byte behind; if it is the same byte, this adds a multiple of 2^width
      const Tensor more = byte(b.byte + (b.shift + Dim(b.width - 1)) / Dim(8));
      x = add(x, mul(more, exp2(index(Dim(8) - b.shift % Dim(8)))));
    }
    return mul(mod(x, like(x, 1 << b.width)), like(x, 1 << b.place));
  }
  Tensor code(const QuantCode<Dim>& c) const {
    Tensor v = add(bits(c.low), bits(c.high));
    if (c.is_signed) v = add(v, mul(above(v, 127.5), like(v, -256)));
    return add(v, like(v, c.bias));
  }
  Tensor d(int at) const {
    const auto byte_at = [&](int i) { return blocks_.slice(last_, i, i + 1); };
    switch (q_.more.d) {
      case QuantScale::E8M0: return exp2(add(byte_at(at), like(byte_at(at), -128))).expand(s_);
      case QuantScale::F32: {
        Tensor word = cast(byte_at(at), DType::U32);
        for (int i = 1; i < 4; ++i) word = add(word, mul(cast(byte_at(at + i), DType::U32), like(word, 1 << 8 * i)));
        return bitcast(word, DType::F32).expand(s_);
      }
      case QuantScale::Nibbles: {
        const auto upper = [&](int i) {
          const Tensor b = byte_at(at + 2 * i + 1);
          return floor_of(mul(b, like(b, 1.0 / 16)));
        };
        const auto pair = [&](int i) { return add(upper(i), mul(upper(i + 1), like(upper(i), 16))); };
        return half_from_bytes(pair(0), pair(2)).expand(s_);
      }
      default: return half_from_bytes(byte_at(at), byte_at(at + 1)).expand(s_);
    }
  }
  // quant_float_scale(): mantissa and exponent as numbers, and 0x7f as 0.
  static Tensor float_scale(const Tensor& code) {
    const Tensor c = mod(code, like(code, 128)), mantissa = mod(c, like(c, 8)),
                 exponent = mul(add(c, negate(mantissa)), like(c, 1.0 / 8)), normal = above(exponent, 0.5);
    const Tensor power = exp2(add(add(exponent, like(c, -10)), negate(normal)));
    const Tensor v = mul(add(mantissa, mul(normal, like(c, 8))), power);
    return mul(v, add(like(c, 1), negate(mul(above(code, 126.5), add(like(c, 1), negate(above(code, 127.5)))))));
  }
  // The number of the book that a code names. A table in primitives is a sum over its levels.
  Tensor number(const Tensor& code, const QuantBits<Dim>& signs) const {
    const QuantBook& book = q_.more.book;
    if (book.width == 0) return code;
    Tensor level = code;
    if (book.entries) {
      const Tensor entry = gather(grid(), cast(code, DType::I32), last_);
      level = floor_of(mul(entry, exp2(index(k_ % Dim(book.width) * Dim(-book.bits)))));
      level = mod(level, like(level, 1 << book.bits));
    }
    Tensor v = like(level, book.levels[0]);
    for (int i = 1; i < 1 << book.bits; ++i)
      if (const int step = book.levels[i] - book.levels[i - 1]; step)
        v = add(v, mul(above(level, i - 0.5), like(level, step)));
    if (signs.width == 0) return v;
    const Tensor s = bits(signs);
    if (signs.width == 1) return add(v, add(like(s, 1), mul(s, like(s, -2))));
    // Bit k % 8; the eighth of seven is the parity of all.
    const auto bit = [&](const Tensor& by) { return mod(floor_of(mul(s, by)), like(s, 2)); };
    Tensor negative = bit(exp2(index(k_ % Dim(8) * -1)));
    if (signs.width == 7) {
      Tensor count = bit(like(s, 1));
      for (int i = 1; i < 7; ++i) count = add(count, bit(like(s, 1.0 / (1 << i))));
      negative = add(negative, mul(mod(count, like(s, 2)), index(k_ % Dim(8) / Dim(7))));
    }
    return mul(v, add(like(s, 1), mul(negative, like(s, -2))));
  }
  // The entries of the grid as numbers along the last axis, for every block.
  Tensor grid() const {
    const auto part = [&](const auto& self, int begin, int end) -> Tensor {
      if (end - begin == 1) return g_.constant(q_.more.book.grid[begin], DType::F32).reshape({1});
      const int middle = (begin + end) / 2;
      return add(self(self, begin, middle).pad(0, 0, end - middle), self(self, middle, end).pad(0, middle - begin, 0));
    };
    Shape s = s_;
    s.back() = q_.more.book.entries;
    return part(part, 0, q_.more.book.entries).expand(s);
  }

  const QuantInfo& q_;
  Graph& g_;
  Shape s_;
  Tensor blocks_;
  int last_;
  Dim k_;
};

std::vector<Tensor> define_dequantize(const Attributes& a, std::span<const Tensor> in) {
  return {BlockDefinition(format_of(a), in[0]).values()};
}

Value evaluate_dequantize(const Evaluation& e) {
  const Node& n = e.node;
  const Value& in = *e.in[0];
  const Integers& shape = e.shape;
  const QuantInfo& q = info(static_cast<QuantFormat>(n.attributes.integer("format")));
  Value out = make_value(DType::F32, shape);
  for (std::size_t k = 0; k < out.size(); ++k) {
    const auto block = static_cast<i64>(k) / q.elements;
    const i64* p = in.i.data() + block * q.bytes;
    out.f[k] = quant_value(q.format, static_cast<i64>(k) % q.elements, [&](i64 at) { return static_cast<int>(p[at]); });
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
