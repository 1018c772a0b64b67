// Random tensors, typed: normal<2, 3>(rng), dropout(rng, x) (ops/random.h, class Random). Part of typed.h.
#pragma once

#include "lightcone/ops/random.h"
#include "lightcone/ops/typed/tensor.h"

namespace lc::typed {

#define LC_AT const At& at = At::current()
#define LC_S(E, D) Tensor<E, D...>::static_shape

template <Dim... D>
Tensor<std::int32_t, D...> bits(Random& random, std::string_view stream = {}, LC_AT) {
  constexpr Shape s = LC_S(float, D);
  return wrap_as<std::int32_t, s>(random.bits(extents_in({random.step(), at}, s), stream, at));
}
#define LC_DRAWN(f, E, PARAMETERS, ARGUMENTS)                                          \
  template <Dim... D>                                                                  \
  Tensor<E, D...> f(Random& random, PARAMETERS, std::string_view stream = {}, LC_AT) { \
    constexpr Shape s = LC_S(E, D);                                                    \
    return wrap_as<E, s>(random.f(ARGUMENTS, stream, at));                             \
  }
#define LC_COMMA ,
#define LC_SHAPE extents_in({random.step(), at}, s)
LC_DRAWN(uniform, float, double low = 0 LC_COMMA double high = 1, LC_SHAPE LC_COMMA low LC_COMMA high)
LC_DRAWN(normal, float, double mean = 0 LC_COMMA double std = 1, LC_SHAPE LC_COMMA mean LC_COMMA std)
LC_DRAWN(truncated_normal, float,
         double mean = 0 LC_COMMA double std = 1 LC_COMMA double low = -2 LC_COMMA double high = 2,
         LC_SHAPE LC_COMMA mean LC_COMMA std LC_COMMA low LC_COMMA high)
LC_DRAWN(bernoulli, bool, double p, LC_SHAPE LC_COMMA p)
LC_DRAWN(randint, std::int64_t, std::int64_t low LC_COMMA std::int64_t high, low LC_COMMA high LC_COMMA LC_SHAPE)
#undef LC_SHAPE
#undef LC_COMMA
#undef LC_DRAWN
// Draws 0 and 1 in the type of p, a tensor of probabilities.
template <class E, Dim... P>
Tensor<E, P...> bernoulli(Random& random, const Tensor<E, P...>& p, std::string_view stream = {}, LC_AT) {
  return wrap_as<E, LC_S(E, P)>(random.bernoulli(Operand(p, at), stream));
}
// Draws from [.., classes]: i64 [..].
template <class E, Dim... A>
auto categorical(Random& random, const Tensor<E, A...>& logits, std::string_view stream = {}, LC_AT) {
  constexpr int last = -1;
  constexpr Inferred r = infer_reduce("categorical", LC_S(E, A), &last, 1, false);
  require<r.error>();
  return wrap_as<std::int64_t, r.out>(random.categorical(Operand(logits, at), stream));
}
template <Dim N>
Tensor<std::int64_t, N> permutation(Random& random, std::string_view stream = {}, LC_AT) {
  constexpr Shape s = Tensor<std::int64_t, N>::static_shape;
  return wrap_as<std::int64_t, s>(random.permutation(extents_in({random.step(), at}, s)[0], stream, at));
}
template <class E, Dim... A>
Tensor<E, A...> dropout(Random& random, const Tensor<E, A...>& x, double p = 0.5, std::string_view stream = {}, LC_AT) {
  return wrap_as<E, LC_S(E, A)>(random.dropout(Operand(x, at), p, stream));
}
#undef LC_S
#undef LC_AT

}  // namespace lc::typed
