#include "lightcone/ops/random.h"

#include <cmath>
#include <numbers>
#include <utility>

#include "lightcone/composites/composites.h"
#include "lightcone/ops/internal.h"
#include "lightcone/random/random_bits.h"

namespace lc {
using namespace detail;

Tensor random_bits(Operand step, Shape shape, std::int64_t seed, std::int64_t stream) {
  const OpScope scope("random_bits", step.at);
  std::vector<Attributes::Entry> attributes = {{"seed", seed}, {"stream", stream}};
  for (const Dim& d : shape) attributes.push_back({str_cat("extent", attributes.size() - 2), d});
  return call(builtin::random_bits(), {step}, Attributes(std::move(attributes)), step.at)[0];
}

namespace {

// ---- numbers from words ----------------------------------------------------------------------------

// word mod 2^bits, i32 and non-negative; C's remainder would have the sign of the word.
Tensor low_bits(const Tensor& word, int bits) {
  const double n = std::exp2(bits);
  return prim::mod(add(prim::mod(word, number_like(word, n)), n), number_like(word, n));
}
// Multiples of 2^-24 in [0, 1), all exact in f32.
Tensor unit(const Tensor& word) { return mul(prim::cast(low_bits(word, 24), DType::F32), 0x1p-24); }
// Midpoints of 2^23 equal parts of (0, 1).
Tensor open_unit(const Tensor& word) { return mul(add(prim::cast(low_bits(word, 23), DType::F32), 0.5), 0x1p-23); }
// (word + 1) / 2^32 in (0, 1], for the unsigned word, rounded once. The upper 24 and the lower 8 bits are exact; near
// 0, where logarithms are sensitive, their sum is exact too.
Tensor unit_above_zero(const Tensor& word) {
  const Tensor low = low_bits(word, 8);
  const Tensor high = add(prim::cast(prim::add(word, neg(low)), DType::F32), 0x1p31);
  return mul(prim::add(high, prim::cast(add(low, 1), DType::F32)), 0x1p-32);
}
// Converts the word to 0 ... 2^32 - 1, i64.
Tensor unsigned_word(const Tensor& word) {
  const Tensor w = prim::cast(word, DType::I64);
  return prim::add(w, mul(prim::cast(prim::less_than(w, full_like(w, 0)), DType::I64), 0x1p32));
}

// ---- argument checks -------------------------------------------------------------------------------

float finite_float(double v, const char* op, const char* what) {
  const auto f = static_cast<float>(v);
  if (!std::isfinite(f)) throw Error(op, str_cat(what, " is ", v, ", which is no finite f32"));
  return f;
}
void probability(double p, const char* op) {
  if (!(p >= 0 && p <= 1)) throw Error(op, str_cat("a probability of ", p, " is outside [0, 1]"));
}

// ---- the normal distribution -----------------------------------------------------------------------

double below(double z) { return 0.5 * std::erfc(-z / std::numbers::sqrt2); }

Tensor horner(const Tensor& x, std::initializer_list<double> c) {  // the highest power first
  Tensor y = full_like(x, *c.begin());
  for (const double* k = c.begin() + 1; k != c.end(); ++k) y = add(prim::mul(y, x), *k);
  return y;
}

// The quantile function of the standard normal distribution for p in (0, 1): Wichura's PPND7 without its last region,
// below e^-25, to seven digits. Selecting numerator and denominator first saves a division.
Tensor normal_quantile(const Tensor& p) {
  const Tensor q = add(p, -0.5), r = add(neg(prim::mul(q, q)), 0.180625);
  const Tensor upper = prim::less_than(full_like(q, 0), q), near = prim::less_than(abs(q), full_like(q, 0.425));
  const Tensor side = add(prim::where(upper, add(neg(p), 1), p), 0x1p-40);  // avoids log(0)
  const Tensor s = add(prim::sqrt(neg(log(side))), -1.6), sign = prim::where(upper, full_like(q, 1), full_like(q, -1));
  const Tensor above =
      prim::where(near, prim::mul(q, horner(r, {59.109374720, 159.29113202, 50.434271938, 3.3871327179})),
                  prim::mul(sign, horner(s, {0.17023821103, 1.3067284816, 2.7568153900, 1.4234372777})));
  const Tensor under = prim::where(near, horner(r, {67.187563600, 78.757757664, 17.895169469, 1}),
                                   horner(s, {0.12021132975, 0.73700164250, 1}));
  return prim::div(above, under);
}

}  // namespace

Random::Random(Graph& g, std::int64_t seed, std::string_view state, const At& at)
    : seed_(seed), step_(g.input(state, {}, DType::I64, at)) {
  const OpScope scope("Random", at);
  g.assign(step_, detail::add(step_, 1));
}

Tensor Random::draw(Shape shape, std::string_view stream) {
  const std::int64_t id = stream.empty() ? next_++ : random_stream(stream);
  if (!stream.empty() && !named_.insert(id).second)
    throw Error(OpScope::current().op,
                str_cat("the stream '", stream, "' was drawn from already, and would give the same numbers again"));
  return random_bits(step_, std::move(shape), seed_, id);
}

// Draws two words per element; returns the first.
Tensor Random::of_two_words(const Shape& shape, std::string_view stream, Tensor* second) {
  Shape both = shape;
  both.insert(both.begin(), 2);
  const Tensor words = draw(std::move(both), stream);
  *second = words.slice(0, 1, 2).squeeze(0);
  return words.slice(0, 0, 1).squeeze(0);
}

Tensor Random::bits(Shape shape, std::string_view stream, const At& at) {
  const OpScope scope("bits", at);
  return draw(std::move(shape), stream);
}

Tensor Random::uniform(Shape shape, double low, double high, std::string_view stream, const At& at) {
  const OpScope scope("uniform", at);
  const float from = finite_float(low, "uniform", "low"), to = finite_float(high, "uniform", "high");
  if (!(low <= high)) throw Error("uniform", str_cat("[", low, ", ", high, ") has its bounds the wrong way round"));
  const float width = finite_float(static_cast<double>(to) - static_cast<double>(from), "uniform", "high - low");
  const Tensor u = unit(draw(std::move(shape), stream));
  if (from == 0 && to == 1) return u;
  if (from == to) return full_like(u, from);
  // keeps values that would round up to the upper bound below it
  return prim::minimum(detail::add(detail::mul(u, width), from), full_like(u, std::nextafter(to, from)));
}

Tensor Random::normal(Shape shape, double mean, double std, std::string_view stream, const At& at) {
  const OpScope scope("normal", at);
  const float centre = finite_float(mean, "normal", "the mean"), scale = finite_float(std, "normal", "std");
  if (!(std >= 0)) throw Error("normal", str_cat("std is ", std, "; a standard deviation is not negative"));
  Tensor second;
  const Tensor u = unit_above_zero(of_two_words(shape, stream, &second));
  const Tensor radius = prim::sqrt(detail::mul(prim::log2(u), -2 * std::numbers::ln2));
  // a sine has the distribution of a cosine, and is a primitive
  const Tensor z = prim::mul(radius, prim::sin(detail::mul(unit(second), 2 * std::numbers::pi)));
  return detail::add(detail::mul(z, scale), centre);
}

Tensor Random::truncated_normal(Shape shape, double mean, double std, double low, double high, std::string_view stream,
                                const At& at) {
  const OpScope scope("truncated_normal", at);
  finite_float(mean, "truncated_normal", "the mean"), finite_float(std, "truncated_normal", "std");
  if (!(std > 0)) throw Error("truncated_normal", str_cat("std is ", std, "; it must be positive"));
  if (!(low < high))
    throw Error("truncated_normal", str_cat("[", low, ", ", high, "] has no lower bound below its upper"));
  double a = (low - mean) / std, b = (high - mean) / std;
  if (a > 4 || b < -4)
    throw Error("truncated_normal",
                str_cat("[", low, ", ", high, "] begins more than 4 standard deviations from the mean ", mean,
                        ": move the bounds or the mean"));
  const bool mirrored = a > 0;  // probabilities near 0 are exact, those near 1 are not
  if (mirrored) b = -std::exchange(a, -b);
  const double first = below(a), part = below(b) - first;
  const Tensor p = detail::add(detail::mul(open_unit(draw(std::move(shape), stream)), part), first);
  const Tensor z = normal_quantile(p);
  const Tensor x = detail::add(detail::mul(z, mirrored ? -std : std), mean);
  return prim::maximum(prim::minimum(x, full_like(x, high)), full_like(x, low));
}

Tensor Random::bernoulli(Shape shape, double p, std::string_view stream, const At& at) {
  const OpScope scope("bernoulli", at);
  probability(p, "bernoulli");
  const Tensor u = unit(draw(std::move(shape), stream));
  return prim::less_than(u, full_like(u, std::ceil(p * 0x1p24) * 0x1p-24));
}

Tensor Random::bernoulli(Operand p, std::string_view stream) {
  const OpScope scope("bernoulli", p.at);
  if (!is_float(p->dtype())) throw Error("bernoulli", str_cat("probabilities are floating, not ", name(p->dtype())));
  return prim::cast(prim::less_than(unit(draw(p->shape(), stream)), prim::cast(p, DType::F32)), p->dtype());
}

Tensor Random::randint(std::int64_t low, std::int64_t high, Shape shape, std::string_view stream, const At& at) {
  const OpScope scope("randint", at);
  if (low >= high) throw Error("randint", str_cat("there is no number in [", low, ", ", high, ")"));
  const auto count = static_cast<std::int64_t>(static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low));
  if (count < 0) throw Error("randint", str_cat("[", low, ", ", high, ") holds 2^63 numbers or more"));
  const auto number = [&](const Tensor& like, std::int64_t v) {
    return like.graph().constant(v, DType::I64).reshape(Shape(like.shape().size(), 1)).expand(like.shape());
  };
  Tensor n, second;
  if (count <= std::int64_t{1} << 31) {
    const Tensor product = detail::mul(unsigned_word(draw(std::move(shape), stream)), static_cast<double>(count));
    n = prim::div(product, full_like(product, 0x1p32));
  } else {
    const Tensor upper = prim::cast(of_two_words(shape, stream, &second), DType::I64);
    const Tensor positive = prim::mod(detail::add(upper, 0x1p31), full_like(upper, 0x1p31));
    const Tensor wide = prim::add(detail::mul(positive, 0x1p32), unsigned_word(second));
    n = prim::mod(wide, number(wide, count));
  }
  return prim::add(n, number(n, low));
}

Tensor Random::categorical(Operand logits, std::string_view stream) {
  const OpScope scope("categorical", logits.at);
  if (logits->rank() == 0) throw Error("categorical", "logits need an axis of classes, the last one");
  if (!is_float(logits->dtype()))
    throw Error("categorical", str_cat("logits are floating, not ", name(logits->dtype()), "; convert them"));
  // 1 - u is as exact as u near 0, which decides the maximum among many classes
  const Tensor u = unit_above_zero(draw(logits->shape(), stream));
  const Tensor exponential = neg(log1p(detail::mul(u, 0x1p-24 - 1)));  // u = 1 would give infinity
  const Tensor score = prim::add(prim::cast(logits, DType::F32), neg(log(exponential)));
  // The gather materializes the scores: argmax() compares each with the largest, and a score recomputed by a kernel
  // might be rounded differently, so that none equals the largest.
  const int last = score.rank() - 1;
  const Tensor place = score.graph().index(score.shape(), Dim::index(last, score.extent(last)));
  return argmax(prim::gather(score, place, last), -1);
}

Tensor Random::permutation(Dim n, std::string_view stream, const At& at) {
  const OpScope scope("permutation", at);
  if (n.bounds().lo < 0) throw Error("permutation", str_cat("of ", n, " numbers"));
  Tensor second;
  const Tensor first = of_two_words({n}, stream, &second);
  const Tensor upper = prim::cast(first, DType::I64);
  const Tensor key = prim::add(detail::mul(upper, 0x1p32), unsigned_word(second));
  return prim::argsort(key, 0);
}

Tensor Random::dropout(Operand x, double p, std::string_view stream) {
  const OpScope scope("dropout", x.at);
  probability(p, "dropout");
  if (!is_float(x->dtype())) throw Error("dropout", str_cat("x is floating, not ", name(x->dtype()), "; convert it"));
  const Tensor words = draw(x->shape(), stream);  // also for p = 0: other draws keep their streams
  if (p == 0) return x;
  if (p == 1) return prim::mul(x, full_like(x, 0));
  const Tensor u = unit(words), dropped = prim::less_than(u, full_like(u, std::ceil(p * 0x1p24) * 0x1p-24));
  const DType type = x->dtype() == DType::F64 ? DType::F64 : DType::F32;  // 16-bit floats are rounded once
  const Tensor kept = prim::cast(logical_not(dropped), type);
  return prim::cast(prim::mul(prim::cast(x, type), detail::mul(kept, 1 / (1 - p))), x->dtype());
}

}  // namespace lc
