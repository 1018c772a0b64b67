// Layers as values: names, parameters, defaults and first values are those of torch.nn.
//
// An extent is a template argument where it is known (Linear<784, 10>), and then the C++ compiler checks it, or an argument
// of the constructor (Linear<>(n, 10)). Layers take typed tensors and give typed ones, or untyped ones for untyped ones.
#pragma once

#include <tuple>
#include <utility>

#include "lightcone/nn/module.h"
#include "lightcone/ops/typed/typed.h"

namespace lc::nn {

using typed::dyn;
using At = SourceLocation;

// An extent as it was written or, for dyn, as it was given.
template <typed::Dim D>
constexpr std::int64_t extent_of(std::int64_t given) {
  return D.number() ? D.n : given;
}
Init uniform_init(double bound);  // in +-bound
Init constant_init(float value);

// y, which has the shape of x, with the promises that the type of x makes.
template <class E, typed::Dim... A>
typed::Tensor<E, A...> as_typed(const typed::Tensor<E, A...>&, const lc::Tensor& y) {
  return typed::Tensor<E, A...>::from(y);
}
inline lc::Tensor as_typed(const lc::Tensor&, const lc::Tensor& y) { return y; }

// x [..., in] -> [..., out]: x weight^T + bias, weight [out, in] (torch.nn.Linear).
struct LinearOptions {
  bool bias = true;
};
template <typed::Dim In = dyn, typed::Dim Out = dyn>
class Linear {
 public:
  Linear(LinearOptions o = {})
    requires(In.number() && Out.number())
      : in_(In.n), out_(Out.n), o_(o) {}
  Linear(std::int64_t in, std::int64_t out, LinearOptions o = {})
      : in_(extent_of<In>(in)), out_(extent_of<Out>(out)), o_(o) {}
  void visit(Visitor& v) {
    const Init init = uniform_init(in_ > 0 ? 1 / std::sqrt(static_cast<double>(in_)) : 0);
    v.parameter("weight", weight, {out_, in_}, init);
    if (o_.bias) v.parameter("bias", bias, {out_}, init);
  }
  template <class E, typed::Dim... A>
  auto operator()(const typed::Tensor<E, A...>& x, const At& at = At::current()) const {
    auto y = typed::linear(x, weight, at);
    return o_.bias ? decltype(y)::from(lc::linear(Operand(x, at), weight, bias), at) : y;
  }
  lc::Tensor operator()(const lc::Tensor& x, const At& at = At::current()) const {
    return o_.bias ? lc::linear(Operand(x, at), weight, bias) : lc::linear(Operand(x, at), weight);
  }

  typed::Tensor<float, Out, In> weight;
  typed::Tensor<float, Out> bias;

 private:
  std::int64_t in_, out_;
  LinearOptions o_;
};

// ids [...] -> [..., dim]: rows of weight [rows, dim], which begins normal(0, 1) (torch.nn.Embedding).
template <typed::Dim Rows = dyn, typed::Dim Width = dyn>
class Embedding {
 public:
  Embedding()
    requires(Rows.number() && Width.number())
      : rows_(Rows.n), width_(Width.n) {}
  Embedding(std::int64_t rows, std::int64_t width) : rows_(extent_of<Rows>(rows)), width_(extent_of<Width>(width)) {}
  void visit(Visitor& v) {
    v.parameter("weight", weight, {rows_, width_},
                [](const init::Extents& s, const init::Source& from) { return init::normal(s, from); });
  }
  template <class I, typed::Dim... A>
  auto operator()(const typed::Tensor<I, A...>& ids, const At& at = At::current()) const {
    return typed::embedding(weight, ids, at);
  }
  lc::Tensor operator()(const lc::Tensor& ids, const At& at = At::current()) const {
    return lc::embedding(Operand(weight, at), ids);
  }

  typed::Tensor<float, Rows, Width> weight;

 private:
  std::int64_t rows_, width_;
};

// Over the last axis, [n] (torch.nn.LayerNorm).
struct NormOptions {
  double eps = 1e-5;
  bool affine = true;
};
template <typed::Dim N = dyn>
class LayerNorm {
 public:
  LayerNorm(NormOptions o = {})
    requires(N.number())
      : n_(N.n), o_(o) {}
  explicit LayerNorm(std::int64_t n, NormOptions o = {}) : n_(extent_of<N>(n)), o_(o) {}
  void visit(Visitor& v) {
    if (!o_.affine) return;
    v.parameter("weight", weight, {n_}, constant_init(1)).parameter("bias", bias, {n_}, constant_init(0));
  }
  template <class E, typed::Dim... A>
  auto operator()(const typed::Tensor<E, A...>& x, const At& at = At::current()) const {
    using Y = decltype(x * weight);  // the last axes agree
    return Y::from(untyped(Operand(x, at)), at);
  }
  lc::Tensor operator()(const lc::Tensor& x, const At& at = At::current()) const { return untyped(Operand(x, at)); }

  typed::Tensor<float, N> weight, bias;

 private:
  lc::Tensor untyped(Operand x) const {
    return o_.affine ? lc::layer_norm(x, 1, weight, bias, o_.eps) : lc::layer_norm(x, 1, o_.eps);
  }
  std::int64_t n_;
  NormOptions o_;
};

// x [..., n] / rms(x) * weight [n] (torch.nn.RMSNorm).
template <typed::Dim N = dyn>
class RMSNorm {
 public:
  RMSNorm(NormOptions o = {.eps = 1e-6})
    requires(N.number())
      : n_(N.n), o_(o) {}
  explicit RMSNorm(std::int64_t n, NormOptions o = {.eps = 1e-6}) : n_(extent_of<N>(n)), o_(o) {}
  void visit(Visitor& v) {
    if (o_.affine) v.parameter("weight", weight, {n_}, constant_init(1));
  }
  template <class E, typed::Dim... A>
  auto operator()(const typed::Tensor<E, A...>& x, const At& at = At::current()) const {
    using Y = decltype(x * weight);
    return Y::from(untyped(Operand(x, at)), at);
  }
  lc::Tensor operator()(const lc::Tensor& x, const At& at = At::current()) const { return untyped(Operand(x, at)); }

  typed::Tensor<float, N> weight;

 private:
  lc::Tensor untyped(Operand x) const {
    return o_.affine ? lc::rms_norm(x, weight, o_.eps) : lc::rms_norm(x, o_.eps);
  }
  std::int64_t n_;
  NormOptions o_;
};

// Elements are zero with probability p and the others larger by 1 / (1 - p), while the model trains (torch.nn.Dropout).
class Dropout {
 public:
  Dropout(double p = 0.5) : p_(p) {}
  void visit(Visitor&) {}
  template <class X>
  X operator()(const X& x, const Inference&) const {
    return x;
  }
  template <class X>
  X operator()(const X& x, Training& mode) const {
    return as_typed(x, mode.random().dropout(x, p_));
  }
  // Without a mode nobody knows.
  template <class X>
  X operator()(const X& x) const {
    typed::require<typed::Text(sizeof(X) ? "Dropout: say whether the model trains: dropout(x, mode)" : "")>();
    return x;
  }

 private:
  double p_;
};

// Functions as layers, for Sequential.
#define LC_LAYER(Name, f)                                                        \
  struct Name {                                                                  \
    void visit(Visitor&) {}                                                      \
    template <class X>                                                           \
    auto operator()(const X& x) const {                                          \
      return f(x);                                                               \
    }                                                                            \
  };
LC_LAYER(ReLU, relu)
LC_LAYER(Tanh, tanh)
LC_LAYER(Sigmoid, sigmoid)
LC_LAYER(GELU, gelu)
LC_LAYER(SiLU, silu)
LC_LAYER(Mish, mish)
LC_LAYER(SELU, selu)
LC_LAYER(Softplus, softplus)
LC_LAYER(LogSigmoid, logsigmoid)
LC_LAYER(Hardswish, hardswish)
LC_LAYER(Hardsigmoid, hardsigmoid)
LC_LAYER(Softsign, softsign)
#undef LC_LAYER
// [n, ...] -> [n, the rest] (torch.nn.Flatten).
struct Flatten {
  void visit(Visitor&) {}
  template <class E, typed::Dim... A>
  auto operator()(const typed::Tensor<E, A...>& x, const At& at = At::current()) const {
    return typed::flatten<1>(x, at);
  }
  lc::Tensor operator()(const lc::Tensor& x, const At& at = At::current()) const {
    return lc::flatten(Operand(x, at), 1);
  }
};

// One layer after the other; their names are 0, 1, ... (torch.nn.Sequential).
template <class... Layers>
class Sequential {
 public:
  Sequential() = default;
  explicit Sequential(Layers... layers)
    requires(sizeof...(Layers) > 0)
      : layers_(std::move(layers)...) {}
  void visit(Visitor& v) {
    std::apply([&v, k = 0](Layers&... layer) mutable { (v(std::to_string(k++), layer), ...); }, layers_);
  }
  template <class X>
  auto operator()(const X& x) const {
    Inference mode;
    return through<0>(x, mode);
  }
  template <class X, class Mode>
    requires(is_mode<Mode>)
  auto operator()(const X& x, Mode& mode) const {
    return through<0>(x, mode);
  }
  template <std::size_t K>
  auto& layer() {
    return std::get<K>(layers_);
  }

 private:
  template <std::size_t K, class X, class Mode>
  auto through(const X& x, Mode& mode) const {
    if constexpr (K == sizeof...(Layers)) return x;
    else return through<K + 1>(nn::apply(std::get<K>(layers_), mode, x), mode);
  }
  std::tuple<Layers...> layers_;
};

// x + module(x); its parameters have the module's names.
template <class M>
struct Residual {
  M module = {};
  void visit(Visitor& v) { module.visit(v); }
  template <class X>
  auto operator()(const X& x) const {
    return x + module(x);
  }
  template <class X, class Mode>
    requires(is_mode<Mode>)
  auto operator()(const X& x, Mode& mode) const {
    return x + nn::apply(module, mode, x);
  }
};

// The same kind of layer N times, one behind the other, each with parameters of its own: names 0, 1, ...
template <class M, int N>
class Repeated {
 public:
  Repeated(const M& m = {}) {
    for (int k = 0; k < N; ++k) modules_.push_back(m);
  }
  void visit(Visitor& v) {
    for (int k = 0; k < N; ++k) v(std::to_string(k), modules_[static_cast<std::size_t>(k)]);
  }
  template <class X>
  X operator()(const X& x) const {
    Inference mode;
    return (*this)(x, mode);
  }
  template <class X, class Mode>
    requires(is_mode<Mode>)
  X operator()(X x, Mode& mode) const {
    for (const M& m : modules_) x = nn::apply(m, mode, x);
    return x;
  }

 private:
  std::vector<M> modules_;
};

}  // namespace lc::nn
