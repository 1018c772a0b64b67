// The definition of random words in primitives. Values are 64-bit integers, for which the primitives have sums,
// products and remainders; shifts and exclusive ors work on single bits along an axis of 32.
#include "lightcone/random/random_bits.h"

#include <cmath>

#include "lightcone/composites/internal.h"

namespace lc {
namespace {

using namespace prim;
using namespace definitions;

constexpr double kWord = 0x1p32, kHalf = 0x1p16;

Tensor plus(const Tensor& a, double v) { return add(a, like(a, v)); }
Tensor times(const Tensor& a, double v) { return mul(a, like(a, v)); }
Tensor remainder(const Tensor& a, double v) { return mod(a, like(a, v)); }

// Operations on 32-bit words of one shape, stored as i64 in [0, 2^32), and on their bits.
class Words {
 public:
  Words(Graph& g, Shape shape) : last_(static_cast<int>(shape.size())), bits_(std::move(shape)) {
    bits_.push_back(32);
    const Dim k = Dim::index(last_, 32);
    power_ = full(g, bits_, 1, DType::I64);
    for (int j = 0; j < 5; ++j) {  // computes 2^k from the bits of k
      const Tensor bit = g.index(bits_, k / Dim(1 << j) % Dim(2), DType::I64);
      power_ = mul(power_, plus(times(bit, std::exp2(1 << j) - 1), 1));
    }
  }
  // Bits `from` to `from` + 31 of x >= 0: bit k is set if 2^k <= x mod 2^(k + 1). The divisor may be 2^63 or 2^64,
  // which wrap to -2^63 and 0; the remainders are then x and 0, as required for bits of a positive number.
  Tensor bits(const Tensor& x, int from) const {
    const Tensor place = times(power_, std::exp2(from));
    const Tensor rest = mod(x.unsqueeze(last_).expand(bits_), times(place, 2));
    return cast(less_than(plus(place, -1), rest), DType::I64);
  }
  Tensor number(const Tensor& bits) const { return sum_reduce(mul(bits, power_), last_); }
  Tensor shifted(const Tensor& x, int by) const { return number(bits(x, by)); }  // x / 2^by, below 2^32

 private:
  int last_;
  Shape bits_;  // [shape.., 32]
  Tensor power_;
};

struct Product {
  Tensor high;  // as bits
  Tensor low;
};

// Multiplies c by a word in halves of 16 bits, so that every intermediate is below 2^49.
Product product(const Words& w, const Tensor& c, std::uint32_t by) {
  const Tensor low = times(remainder(c, kHalf), by);
  const Tensor high = add(times(w.shifted(c, 16), by), w.shifted(low, 16));  // c * by / 2^16
  return {w.bits(high, 16), add(times(remainder(high, kHalf), kHalf), remainder(low, kHalf))};
}

Tensor exclusive_or(const Words& w, const Tensor& high, const Tensor& word, std::uint32_t key) {
  const Tensor ones = add(add(high, w.bits(word, 0)), w.bits(like(word, key), 0));
  return w.number(remainder(ones, 2));
}

// The two words of a step. A negative step is the complement of -1 - step.
std::array<Tensor, 2> words_of(const Words& w, const Tensor& step) {
  const Tensor negative = less_than(step, like(step, 0));
  const Tensor counted = where(negative, plus(negate(step), -1), step);
  const auto word = [&](int from) {
    const Tensor v = w.shifted(counted, from);
    return where(negative, plus(negate(v), kWord - 1), v);
  };
  return {word(0), word(32)};
}

std::vector<TensorType> infer_random_bits(const Attributes& a, std::span<const TensorType> in) {
  a.integer("seed"), a.integer("stream");
  if (in[0].dtype != DType::I64 || !in[0].shape.empty())
    throw Error("", str_cat("the step is one i64 without axes, not ", name(in[0].dtype), " ", str(in[0].shape)));
  Shape shape = extents(a);
  for (const Dim& d : shape)
    if (d.bounds().lo < 0) throw Error("", str_cat("a shape ", str(shape), " has a negative extent"));
  return {{DType::I32, std::move(shape)}};
}

std::vector<Tensor> define_random_bits(const Attributes& a, std::span<const Tensor> in) {
  Graph& g = in[0].graph();
  const Shape shape = extents(a);
  const Words w(g, shape);
  const Dim element = ravel(index_symbols(shape), shape), block = element / Dim(4), word = std::int64_t{1} << 32;
  const auto step = words_of(w, in[0].reshape(Shape(shape.size(), 1)).expand(shape));
  std::array<Tensor, 4> c = {g.index(shape, block % word), g.index(shape, block / word), step[0], step[1]};
  Philox::Key k = Philox::key(a.integer("seed"), a.integer("stream"));
  for (int round = 0; round < Philox::kRounds; ++round) {
    const Product p = product(w, c[0], Philox::kMultiplier[0]), q = product(w, c[2], Philox::kMultiplier[1]);
    c = {exclusive_or(w, q.high, c[1], k[0]), q.low, exclusive_or(w, p.high, c[3], k[1]), p.low};
    k = {k[0] + Philox::kWeyl[0], k[1] + Philox::kWeyl[1]};
  }
  const Tensor which = g.index(shape, element % Dim(4), DType::I64);
  Tensor chosen = c[0];
  for (int i = 1; i < 4; ++i) chosen = where(equal(which, like(which, i)), c[i], chosen);
  const Tensor negative = cast(less_than(like(chosen, kWord / 2 - 1), chosen), DType::I64);
  return {cast(add(chosen, times(negative, -kWord)), DType::I32)};
}

Value evaluate_random_bits(const Evaluation& e) {
  const Node& n = e.node;
  const Value& step = *e.in[0];
  const Integers& shape = e.shape;
  Value out = make_value(DType::I32, shape);
  const Philox::Key key = Philox::key(n.attributes.integer("seed"), n.attributes.integer("stream"));
  Philox::Block block{};
  for (std::size_t k = 0; k < out.size(); ++k) {
    if (k % 4 == 0) block = Philox::words(Philox::counter(k / 4, step.i[0]), key);
    out.i[k] = static_cast<std::int32_t>(block[k % 4]);
  }
  if (!exact(shift_at(step, 0))) out.shift.assign(out.size(), kUnknown);
  return out;
}

}  // namespace

namespace builtin {
const CompositeRef& random_bits() {
  static const CompositeRef c =
      std::make_shared<const Composite>(Composite{.name = "random_bits",
                                                  .arity = 1,
                                                  .infer = infer_random_bits,
                                                  .define = define_random_bits,
                                                  .reference = reference(evaluate_random_bits),
                                                  .vjp = no_vjp});
  return c;
}
}  // namespace builtin

}  // namespace lc
