// The typed face: shapes the C++ compiler checks.
//
//   using lc::typed::Tensor;
//   Tensor<float, "batch", 784> x = lc::typed::input<float, "batch", 784>(g, "x");
//   Tensor<float, 784, 10> w = ...;
//   auto y = softmax<-1>(matmul(x, w));          // Tensor<float, "batch", 10>
//
// An extent is a number, a name, or lc::typed::dyn (known when the graph is built). A typed tensor
// is an untyped lc::Tensor and a promise; it converts to one, and every untyped operation takes it.
// A tensor that may only be known better at run time becomes so with as<...>(), which checks.
//
// A mistake is one error, and its first line says it in words:
//   matmul: [32, 784] x [512, 10]: inner dimensions differ: 784 vs 512
// Overloads are not constrained: g++ 12 cannot print such types when it is overload resolution that
// fails, so operations accept everything and assert (shape_error).
#pragma once

#include <source_location>

#include "lightcone/core/dtype.h"
#include "lightcone/ops/ops.h"
#include "lightcone/ops/typed_shape.h"

namespace lc::typed {

// g++ prints the sentence where it names this type; compilers that know user-made messages print
// it as the message.
template <Text sentence>
struct shape_error {
  static_assert(sentence.s[0] == 0, "shape error: read the quoted text just above");
};
template <Text sentence>
consteval void require() {
  if constexpr (sentence.s[0] != 0) static_cast<void>(sizeof(shape_error<sentence>));
}

template <class E, class F>
consteval Text same_elements(const char* op) {
  return std::is_same_v<E, F> ? Text() : Text(op).add(": element types differ: convert one with to<...>()");
}

// Run-time checks behind the promises; in typed.cpp, so that headers stay thin.
lc::Tensor check_as(lc::Tensor t, const Shape& to, DType dtype, const std::source_location& at);
lc::Tensor make_input(Graph& g, const char* name, const Shape& s, DType dtype, const std::int64_t* dims, int count, const std::source_location& at);
lc::Shape to_shape(lc::Tensor t, const Shape& s);
// The range of a named extent, before it is first used; otherwise 1 to 4096.
void bound(const char* name, std::int64_t low, std::int64_t high);

template <class E, Dim... D>
class Tensor {
 public:
  using Element = E;
  static constexpr DType dtype = dtype_of<E>::value;
  static constexpr Shape shape = [] {
    static_assert(sizeof...(D) <= kMaxRank, "a typed tensor has at most 8 axes");
    Shape s;
    (s.push(D), ...);
    return s;
  }();

  Tensor() = default;
  // Knowing less is free: Tensor<float, 3, 4> is a Tensor<float, dyn, 4>.
  template <class F, Dim... O>
  Tensor(const Tensor<F, O...>& o) : t_(o) {
    constexpr Text sentence = [] {
      Text e;
      if (!forgets(Tensor<F, O...>::shape, shape)) e.add("a tensor of ").add(Tensor<F, O...>::shape).add(" is not a ").add(shape).add("; if it is known to be, say so with as<...>()");
      return e;
    }();
    require<sentence>();
    static_assert(Tensor<F, O...>::dtype == dtype, "element types differ: convert with to<...>()");
  }
  // Checked when the graph is built.
  static Tensor from(lc::Tensor t, const std::source_location& at = std::source_location::current()) { return Tensor(check_as(t, shape, dtype, at), 0); }
  template <Dim... O>
  Tensor<E, O...> as(const std::source_location& at = std::source_location::current()) const {
    constexpr Inferred r = infer_as(shape, Tensor<E, O...>::shape);
    require<r.error>();
    return Tensor<E, O...>::from(t_, at);
  }
  operator lc::Tensor() const { return t_; }
  lc::Tensor untyped() const { return t_; }
  bool defined() const { return t_.defined(); }

  template <class B>
  auto matmul(const B& b, const std::source_location& at = std::source_location::current()) const;
  Tensor retrieve(std::string_view name = {}) const { return Tensor(t_.retrieve(name), 0); }

 private:
  template <class F, Dim... O>
  friend class Tensor;
  template <class F, Shape S>
  friend auto wrap_as(lc::Tensor t);
  Tensor(lc::Tensor t, int) : t_(t) {}
  lc::Tensor t_;
};

// The type with this shape.
template <class E, Shape S, int... I>
auto tensor_of(std::integer_sequence<int, I...>) -> Tensor<E, S.d[I]...>;
template <class E, Shape S>
using TensorOf = decltype(tensor_of<E, S>(std::make_integer_sequence<int, S.rank>()));
template <class E, Shape S>
auto wrap_as(lc::Tensor t) { return TensorOf<E, S>(t, 0); }

using At = std::source_location;
#define LC_AT const At& at = At::current()

template <class E, Dim... D>
Tensor<E, D...> input(Graph& g, const char* name, std::initializer_list<std::int64_t> dims = {}, LC_AT) {
  return Tensor<E, D...>::from(make_input(g, name, Tensor<E, D...>::shape, dtype_of<E>::value, dims.begin(), static_cast<int>(dims.size()), at), at);
}

// ---- elementwise, with PyTorch's broadcasting -----------------------------------------------------
// Operators cannot take a defaulted argument, so these do not know the caller's line: At() is none.
#define LC_BINARY(OP, SPELLING, RESULT)                                                              \
  template <class E, Dim... A, class F, Dim... B>                                                    \
  auto operator OP(const Tensor<E, A...>& a, const Tensor<F, B...>& b) {                             \
    require<same_elements<E, F>(SPELLING)>();                                                        \
    constexpr Inferred r = infer_broadcast(SPELLING, Tensor<E, A...>::shape, Tensor<F, B...>::shape); \
    require<r.error>();                                                                              \
    return wrap_as<RESULT, r.out>(Operand(a.untyped(), At()) OP Operand(b.untyped(), At()));                                       \
  }
LC_BINARY(+, "operator+", E)
LC_BINARY(-, "operator-", E)
LC_BINARY(*, "operator*", E)
LC_BINARY(/, "operator/", E)
LC_BINARY(<, "operator<", bool)
LC_BINARY(>, "operator>", bool)
LC_BINARY(<=, "operator<=", bool)
LC_BINARY(>=, "operator>=", bool)
#undef LC_BINARY
#define LC_SCALAR(OP)                                                                                                       \
  template <class E, Dim... A>                                                                                              \
  Tensor<E, A...> operator OP(const Tensor<E, A...>& a, double b) { return wrap_as<E, Tensor<E, A...>::shape>(Operand(a.untyped(), At()) OP b); } \
  template <class E, Dim... A>                                                                                              \
  Tensor<E, A...> operator OP(double a, const Tensor<E, A...>& b) { return wrap_as<E, Tensor<E, A...>::shape>(a OP Operand(b.untyped(), At())); }
LC_SCALAR(+)
LC_SCALAR(-)
LC_SCALAR(*)
LC_SCALAR(/)
#undef LC_SCALAR
#define LC_UNARY(f)                                          \
  template <class E, Dim... A>                               \
  Tensor<E, A...> f(const Tensor<E, A...>& a, LC_AT) { return wrap_as<E, Tensor<E, A...>::shape>(lc::f(Operand(a.untyped(), at))); }
LC_UNARY(abs) LC_UNARY(square) LC_UNARY(exp) LC_UNARY(exp2) LC_UNARY(log) LC_UNARY(log2) LC_UNARY(sqrt) LC_UNARY(rsqrt) LC_UNARY(reciprocal)
LC_UNARY(sin) LC_UNARY(cos) LC_UNARY(tanh) LC_UNARY(erf) LC_UNARY(floor) LC_UNARY(ceil) LC_UNARY(round) LC_UNARY(sigmoid) LC_UNARY(relu)
LC_UNARY(leaky_relu) LC_UNARY(elu) LC_UNARY(gelu) LC_UNARY(gelu_tanh) LC_UNARY(silu) LC_UNARY(mish) LC_UNARY(softplus)
#undef LC_UNARY
template <class E, Dim... A>
Tensor<E, A...> operator-(const Tensor<E, A...>& a) { return wrap_as<E, Tensor<E, A...>::shape>(-a.untyped()); }
template <class To, class E, Dim... A>
Tensor<To, A...> to(const Tensor<E, A...>& a, LC_AT) { return wrap_as<To, Tensor<E, A...>::shape>(lc::to(Operand(a.untyped(), at), dtype_of<To>::value)); }
template <class E, Dim... C, Dim... A, Dim... B>
auto where(const Tensor<bool, C...>& c, const Tensor<E, A...>& a, const Tensor<E, B...>& b, LC_AT) {
  constexpr Inferred ab = infer_broadcast("where", Tensor<E, A...>::shape, Tensor<E, B...>::shape);
  constexpr Inferred r = infer_broadcast("where", Tensor<bool, C...>::shape, ab.out);
  require<ab.error>();
  require<r.error>();
  return wrap_as<E, r.out>(lc::where(Operand(c.untyped(), at), a.untyped(), b.untyped()));
}

// ---- products -------------------------------------------------------------------------------------
template <class E, Dim... A, class F, Dim... B>
auto matmul(const Tensor<E, A...>& a, const Tensor<F, B...>& b, LC_AT) {
  require<same_elements<E, F>("matmul")>();
  constexpr Inferred r = infer_matmul(Tensor<E, A...>::shape, Tensor<F, B...>::shape);
  require<r.error>();
  return wrap_as<E, r.out>(lc::matmul(Operand(a.untyped(), at), Operand(b.untyped(), at)));
}
template <class E, Dim... D>
template <class B>
auto Tensor<E, D...>::matmul(const B& b, const std::source_location& at) const { return typed::matmul(*this, b, at); }
// x [..., in], weight [out, in] -> [..., out]
template <class E, Dim... A, Dim... W>
auto linear(const Tensor<E, A...>& x, const Tensor<E, W...>& weight, LC_AT) {
  constexpr Inferred r = infer_linear(Tensor<E, A...>::shape, Tensor<E, W...>::shape);
  require<r.error>();
  return wrap_as<E, r.out>(lc::linear(Operand(x.untyped(), at), weight.untyped()));
}
template <int Stride = 1, int Padding = 0, int Groups = 1, class E, Dim... A, Dim... W>
auto conv2d(const Tensor<E, A...>& x, const Tensor<E, W...>& weight, LC_AT) {
  constexpr Inferred r = infer_conv2d(Tensor<E, A...>::shape, Tensor<E, W...>::shape, Stride, Padding, Groups);
  require<r.error>();
  return wrap_as<E, r.out>(lc::conv(Operand(x.untyped(), at), weight.untyped(), {.stride = {Stride}, .padding = {Padding}, .groups = Groups}));
}
template <class E, Dim... Q, Dim... K, Dim... V>
auto scaled_dot_product_attention(const Tensor<E, Q...>& q, const Tensor<E, K...>& k, const Tensor<E, V...>& v, LC_AT) {
  constexpr Inferred r = infer_attention(Tensor<E, Q...>::shape, Tensor<E, K...>::shape, Tensor<E, V...>::shape);
  require<r.error>();
  return wrap_as<E, r.out>(lc::scaled_dot_product_attention(Operand(q.untyped(), at), k.untyped(), v.untyped()));
}

// ---- reductions: sum<1>(x), mean<0, 2>(x), sum(x) ---------------------------------------------------
#define LC_REDUCE(f)                                                                                      \
  template <int... Axes, class E, Dim... A>                                                               \
  auto f(const Tensor<E, A...>& a, LC_AT) {                                                               \
    constexpr int axes[] = {Axes..., 0};                                                                  \
    constexpr Inferred r = infer_reduce(#f, Tensor<E, A...>::shape, axes, sizeof...(Axes), false);        \
    require<r.error>();                                                                                   \
    return wrap_as<E, r.out>(lc::f(Operand(a.untyped(), at), {Axes...}));                                 \
  }
LC_REDUCE(sum) LC_REDUCE(mean) LC_REDUCE(amax) LC_REDUCE(amin) LC_REDUCE(logsumexp)
#undef LC_REDUCE
#define LC_ALONG(f)                                                                        \
  template <int Axis, class E, Dim... A>                                                   \
  auto f(const Tensor<E, A...>& a, LC_AT) {                                                \
    constexpr Inferred r = infer_along(#f, Tensor<E, A...>::shape, Axis);                  \
    require<r.error>();                                                                    \
    return wrap_as<E, r.out>(lc::f(Operand(a.untyped(), at), Axis));                       \
  }
LC_ALONG(softmax) LC_ALONG(log_softmax) LC_ALONG(cumsum)
#undef LC_ALONG
template <int Axis, class E, Dim... A>
auto argmax(const Tensor<E, A...>& a, LC_AT) {
  constexpr int axes[] = {Axis};
  constexpr Inferred r = infer_reduce("argmax", Tensor<E, A...>::shape, axes, 1, false);
  require<r.error>();
  return wrap_as<std::int64_t, r.out>(lc::argmax(Operand(a.untyped(), at), Axis));
}
template <class E, Dim... A>
Tensor<E, A...> layer_norm(const Tensor<E, A...>& a, double eps = 1e-5, LC_AT) { return wrap_as<E, Tensor<E, A...>::shape>(lc::layer_norm(Operand(a.untyped(), at), 1, eps)); }
template <class E, Dim... A>
Tensor<E, A...> rms_norm(const Tensor<E, A...>& a, double eps = 1e-6, LC_AT) { return wrap_as<E, Tensor<E, A...>::shape>(lc::rms_norm(Operand(a.untyped(), at), eps)); }

// ---- shapes ---------------------------------------------------------------------------------------
template <Dim... To, class E, Dim... A>
auto reshape(const Tensor<E, A...>& a, LC_AT) {
  constexpr Inferred r = infer_reshape(Tensor<E, A...>::shape, Tensor<E, To...>::shape);
  require<r.error>();
  return wrap_as<E, r.out>(a.untyped().reshape(to_shape(a.untyped(), r.out), at));
}
template <Dim... To, class E, Dim... A>
auto broadcast_to(const Tensor<E, A...>& a, LC_AT) {
  constexpr Inferred r = infer_broadcast_to(Tensor<E, A...>::shape, Tensor<E, To...>::shape);
  require<r.error>();
  return wrap_as<E, r.out>(lc::broadcast_to(Operand(a.untyped(), at), to_shape(a.untyped(), r.out)));
}
template <int... Axes, class E, Dim... A>
auto permute(const Tensor<E, A...>& a, LC_AT) {
  constexpr int axes[] = {Axes..., 0};
  constexpr Inferred r = infer_permute(Tensor<E, A...>::shape, axes, sizeof...(Axes));
  require<r.error>();
  return wrap_as<E, r.out>(a.untyped().permute({Axes...}, at));
}
template <int Axis, class E, Dim... A, Dim... B>
auto concat(const Tensor<E, A...>& a, const Tensor<E, B...>& b) {
  constexpr Inferred r = infer_concat(Tensor<E, A...>::shape, Tensor<E, B...>::shape, Axis);
  require<r.error>();
  return wrap_as<E, r.out>(lc::concat({a.untyped(), b.untyped()}, Axis));
}
// weight [n, d], ids [...] -> [..., d]
template <class E, Dim N, Dim D, class I, Dim... A>
auto embedding(const Tensor<E, N, D>& weight, const Tensor<I, A...>& ids, LC_AT) {
  static_assert(std::is_same_v<I, std::int64_t> || std::is_same_v<I, std::int32_t>, "embedding: ids are whole numbers");
  return Tensor<E, A..., D>::from(lc::embedding(Operand(weight.untyped(), at), ids.untyped()), at);
}
#undef LC_AT

}  // namespace lc::typed
