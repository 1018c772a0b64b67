// lc::typed::Tensor: an untyped tensor whose shape and element type the C++ compiler checks. typed.h has the
// operations; operators are here.
#pragma once

#include <type_traits>
#include <utility>

#include "lightcone/core/dtype.h"
#include "lightcone/ops/ops.h"
#include "lightcone/ops/typed/shape.h"

namespace lc::typed {

using At = SourceLocation;

// Makes an error message a compile error. C++26 and clang 17 accept it as the message of a static_assert; g++ 12 and 13
// print it as the argument of a deleted function, in the line "In instantiation of" and again in the line with
// "error:".
#if (defined(__cpp_static_assert) && __cpp_static_assert >= 202306L) || (defined(__clang__) && __clang_major__ >= 17)
#if defined(__clang__)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wc++26-extensions"
#endif
template <Text sentence>
constexpr void require() {
  static_assert(sentence.empty(), sentence);
}
#if defined(__clang__)
#pragma clang diagnostic pop
#endif
#else
template <Text sentence>
void shape_error() = delete;
template <Text sentence>
constexpr void require() {
  if constexpr (!sentence.empty()) shape_error<sentence>();
}
#endif

// Element types of results, by PyTorch's rules, as in the untyped operations.
template <class E>
inline constexpr bool kFloating = is_float(dtype_of<E>::value);
template <class E>
using FloatOf = std::conditional_t<kFloating<E>, E, float>;  // exp, mean, /
template <class E>
using SumOf = std::conditional_t<kFloating<E>, E, std::int64_t>;  // sum, cumsum
template <class E, class S>
using WithScalar = std::conditional_t<
    kFloating<E>, E,
    std::conditional_t<std::is_floating_point_v<S>, float,
                       std::conditional_t<std::is_same_v<E, bool> && !std::is_same_v<S, bool>, std::int64_t, E>>>;
template <class E>
using SquareOf = WithScalar<E, int>;
template <class E, class F>
consteval Text same_elements(const char* op) {
  return std::is_same_v<E, F> ? Text() : Text(op).add(": element types differ: convert one with to<...>()");
}
template <class E>
consteval Text subtracts() {
  return std::is_same_v<E, bool>
             ? Text("operator-: bool has no subtraction; logical_xor and logical_not say what is meant")
             : Text();
}
template <class S>
concept Number = std::is_arithmetic_v<S>;

// Run-time checks of typed shapes, defined in typed.cpp to keep headers small.
lc::Tensor check_as(lc::Tensor t, const Shape& to, DType dtype, const At& at);
lc::Tensor make_input(Graph& g, const char* name, const Shape& s, DType dtype, std::initializer_list<lc::Dim> dims,
                      const At& at, bool parameter = false);
lc::Shape reshape_to(lc::Tensor t, const Shape& s);
lc::Shape stretch_to(lc::Tensor t, const Shape& s);
lc::Shape extents_in(const GraphOf& in, const Shape& s);  // names are those of the graph; dyn becomes -1
// Sets the range of a named extent in one graph. Throws Error if the graph uses the name with another range already.
void bound(Graph& g, const char* name, std::int64_t low, std::int64_t high);
// Sets the default range of a named extent for all graphs of the program; otherwise it is 1 to 4096. Throws Error if
// the name is already in use with another range.
void bound(const char* name, std::int64_t low, std::int64_t high);

template <class E, Dim... D>
class Tensor;
template <class E, Dim... A, class F, Dim... B>
auto matmul(const Tensor<E, A...>& a, const Tensor<F, B...>& b, const At& at = At::current());
template <class E, Shape S, int... I>
auto tensor_of(std::integer_sequence<int, I...>) -> Tensor<E, S.d[I]...>;
template <class E, Shape S>
using TensorOf = decltype(tensor_of<E, S>(std::make_integer_sequence<int, S.rank>()));  // the typed tensor of shape S
// Must be inlined: g++ 12 gives equal shapes from different computations one symbol and defines it twice.
template <class E, Shape S>
[[gnu::always_inline]] inline TensorOf<E, S> wrap_as(lc::Tensor t) {
  return TensorOf<E, S>(t, 0);
}

// An operand of an operator with its source line. Operators cannot take a defaulted argument, but the conversion to
// this type can.
template <class T>
struct Located {
  T tensor;
  At at;
  Located(const T& t, const At& here = At::current()) : tensor(t), at(here) {}
  operator Operand() const { return Operand(tensor, at); }
};

template <class E, Dim... D>
class Tensor : public lc::Tensor {
 public:
  using Element = E;
  static constexpr DType static_dtype = dtype_of<E>::value;
  static constexpr Shape static_shape = [] {
    static_assert(sizeof...(D) <= kMaxRank, "a typed tensor has at most 8 axes");
    Shape s;
    (s.push(D), ...);
    return s;
  }();

  Tensor() { require<extents(static_shape)>(); }
  // Converts to a less specific shape: Tensor<float, 3, 4> is a Tensor<float, dyn, 4>.
  template <class F, Dim... O>
  Tensor(const Tensor<F, O...>& o) : lc::Tensor(o) {
    static_assert(std::is_same_v<E, F>, "element types differ: convert one with to<...>()");
    constexpr Text sentence = [] {
      Text e;
      if (!forgets(Tensor<F, O...>::static_shape, static_shape))
        e.add("a tensor of ")
            .add(Tensor<F, O...>::static_shape)
            .add(" is not a ")
            .add(static_shape)
            .add("; if it is known to be, say so with as<...>()");
      return e;
    }();
    require<sentence>();
  }
  // Makes an untyped tensor typed. Throws Error, when the graph is built, if shape or element type do not match.
  static Tensor from(lc::Tensor t, const At& at = At::current()) {
    return Tensor(check_as(t, static_shape, static_dtype, at), 0);
  }
  template <Dim... O>
  Tensor<E, O...> as(const At& at = At::current()) const {
    constexpr Inferred r = infer_as(static_shape, Tensor<E, O...>::static_shape);
    require<r.error>();
    return Tensor<E, O...>::from(*this, at);
  }
  template <class B>
  auto matmul(const B& b, const At& at = At::current()) const {
    return typed::matmul(*this, b, at);
  }
  template <class To>
  Tensor<To, D...> to(const At& at = At::current()) const {
    return wrap_as<To, static_shape>(lc::Tensor::to(dtype_of<To>::value, at));
  }
  // Selects one element of the first axis and removes the axis.
  auto operator[](const IndexAt& index) const {
    constexpr Inferred r = infer_select(static_shape, 0);
    require<r.error>();
    return wrap_as<E, r.out>(lc::Tensor::operator[](index));
  }
  Tensor retrieve(std::string_view name = {}) const { return Tensor(lc::Tensor::retrieve(name), 0); }

#define LC_BINARY(OP, NAME, RESULT, ELEMENTS)                                                  \
  template <class F, Dim... B>                                                                 \
  friend auto operator OP(const Located<Tensor>& a, const Tensor<F, B...>& b) {                \
    require<same_elements<E, F>(NAME)>();                                                      \
    require<ELEMENTS>();                                                                       \
    constexpr Inferred r = infer_broadcast(NAME, static_shape, Tensor<F, B...>::static_shape); \
    require<r.error>();                                                                        \
    return wrap_as<RESULT, r.out>(Operand(a) OP Operand(b, a.at));                             \
  }
  LC_BINARY(+, "operator+", E, Text{})
  LC_BINARY(-, "operator-", E, subtracts<E>())
  LC_BINARY(*, "operator*", E, Text{})
  LC_BINARY(/, "operator/", FloatOf<E>, Text{})
  LC_BINARY(%, "remainder", E, Text{})
  LC_BINARY(<, "lt", bool, Text{})
  LC_BINARY(>, "gt", bool, Text{})
  LC_BINARY(<=, "le", bool, Text{})
  LC_BINARY(>=, "ge", bool, Text{})
#undef LC_BINARY
  friend Tensor operator-(const Tensor& a) {
    require<subtracts<E>()>();
    return Tensor(-Operand(a, At("", 0)), 0);
  }

 private:
  template <class F, Shape S>
  friend TensorOf<F, S> wrap_as(lc::Tensor t);
  Tensor(lc::Tensor t, int) : lc::Tensor(t) { require<extents(static_shape)>(); }
};

#define LC_IN_PLACE(OP)                                                                             \
  template <class E, Dim... A, class B>                                                             \
  Tensor<E, A...>& operator OP##=(Tensor<E, A...>& a, const B& b) {                                 \
    static_assert(std::is_same_v<decltype(a OP b), Tensor<E, A...>>,                                \
                  "in place: the result has another shape or element type; write a = a " #OP " b"); \
    return a = a OP b;                                                                              \
  }
LC_IN_PLACE(+)
LC_IN_PLACE(-)
LC_IN_PLACE(*)
LC_IN_PLACE(/)
#undef LC_IN_PLACE

// ---- with numbers: integers keep integer types, floating numbers make them f32 (TensorOrNumber) ------------
#define LC_SCALAR(OP, RESULT)                                                                                \
  template <class E, Dim... A, Number S>                                                                     \
  auto operator OP(const Tensor<E, A...>& a, S b) {                                                          \
    using R = RESULT;                                                                                        \
    return wrap_as<R, Tensor<E, A...>::static_shape>(Operand(a, At("", 0)) OP TensorOrNumber(b, At("", 0))); \
  }                                                                                                          \
  template <class E, Dim... A, Number S>                                                                     \
  auto operator OP(S a, const Tensor<E, A...>& b) {                                                          \
    using R = RESULT;                                                                                        \
    return wrap_as<R, Tensor<E, A...>::static_shape>(TensorOrNumber(a, At("", 0)) OP Operand(b, At("", 0))); \
  }
#define LC_COMMA ,
LC_SCALAR(+, WithScalar<E LC_COMMA S>)
LC_SCALAR(-, WithScalar<E LC_COMMA S>)
LC_SCALAR(*, WithScalar<E LC_COMMA S>)
LC_SCALAR(%, WithScalar<E LC_COMMA S>)
LC_SCALAR(/, FloatOf<E>)
#undef LC_COMMA
#undef LC_SCALAR
#define LC_SCALAR(OP)                                                                                              \
  template <class E, Dim... A, Number S>                                                                           \
  Tensor<bool, A...> operator OP(const Tensor<E, A...>& a, S b) {                                                  \
    return wrap_as<bool, Tensor<bool, A...>::static_shape>(Operand(a, At("", 0)) OP TensorOrNumber(b, At("", 0))); \
  }                                                                                                                \
  template <class E, Dim... A, Number S>                                                                           \
  Tensor<bool, A...> operator OP(S a, const Tensor<E, A...>& b) {                                                  \
    return wrap_as<bool, Tensor<bool, A...>::static_shape>(TensorOrNumber(a, At("", 0)) OP Operand(b, At("", 0))); \
  }
LC_SCALAR(<)
LC_SCALAR(>)
LC_SCALAR(<=)
LC_SCALAR(>=)
#undef LC_SCALAR

}  // namespace lc::typed
