// Layers made of layers: one behind the other, side by side, beside a shortcut.
#pragma once

#include <tuple>
#include <utility>

#include "lightcone/nn/module.h"

namespace lc::nn {

// What goes in comes out (torch.nn.Identity); further arguments are for whoever takes them.
struct Identity {
  void visit(Visitor&) {}
  template <class X>
  X operator()(const X& x) const {
    return x;
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
  auto operator()(const X& x, const At& at = At::current()) const {
    Inference mode;
    return through<0>(x, mode, at);
  }
  template <class X, class Mode>
    requires(is_mode<Mode>)
  auto operator()(const X& x, Mode& mode, const At& at = At::current()) const {
    return through<0>(x, mode, at);
  }
  template <std::size_t K>
  auto& layer() {
    return std::get<K>(layers_);
  }

 private:
  template <std::size_t K, class X, class Mode>
  auto through(const X& x, Mode& mode, const At& at) const {
    if constexpr (K == sizeof...(Layers)) return x;
    else return through<K + 1>(nn::apply(std::get<K>(layers_), mode, at, x), mode, at);
  }
  std::tuple<Layers...> layers_;
};

// What each of several modules gives for the same x, as a tuple: auto [a, b] = split(x). Names 0, 1, ...
template <class... Modules>
class SplitInto {
 public:
  SplitInto() = default;
  explicit SplitInto(Modules... modules)
    requires(sizeof...(Modules) > 0)
      : modules_(std::move(modules)...) {}
  void visit(Visitor& v) {
    std::apply([&v, k = 0](Modules&... m) mutable { (v(std::to_string(k++), m), ...); }, modules_);
  }
  template <class X>
  auto operator()(const X& x, const At& at = At::current()) const {
    Inference mode;
    return (*this)(x, mode, at);
  }
  template <class X, class Mode>
    requires(is_mode<Mode>)
  auto operator()(const X& x, Mode& mode, const At& at = At::current()) const {
    return std::apply([&](const Modules&... m) { return std::tuple{nn::apply(m, mode, at, x)...}; }, modules_);
  }

 private:
  std::tuple<Modules...> modules_;
};
// The sum of what each of several modules gives for its own x: add(x0, x1, ...) or add of a tuple. Names 0, 1, ...
template <class... Modules>
class AddInto {
 public:
  AddInto() = default;
  explicit AddInto(Modules... modules)
    requires(sizeof...(Modules) > 0)
      : modules_(std::move(modules)...) {}
  void visit(Visitor& v) {
    std::apply([&v, k = 0](Modules&... m) mutable { (v(std::to_string(k++), m), ...); }, modules_);
  }
  template <class... X>
    requires(sizeof...(X) == sizeof...(Modules) && sizeof...(X) > 1)
  auto operator()(const X&... x) const {
    Inference mode;
    return sum(mode, At::current(), std::index_sequence_for<X...>(), x...);
  }
  template <class... X>
  auto operator()(const std::tuple<X...>& x, const At& at = At::current()) const {
    Inference mode;
    return (*this)(x, mode, at);
  }
  template <class... X, class Mode>
    requires(is_mode<Mode> && sizeof...(X) == sizeof...(Modules))
  auto operator()(const std::tuple<X...>& x, Mode& mode, const At& at = At::current()) const {
    return std::apply([&](const X&... parts) { return sum(mode, at, std::index_sequence_for<X...>(), parts...); }, x);
  }

 private:
  template <class Mode, std::size_t... K, class... X>
  auto sum(Mode& mode, const At& at, std::index_sequence<K...>, const X&... x) const {
    return (nn::apply(std::get<K>(modules_), mode, at, x) + ...);
  }
  std::tuple<Modules...> modules_;
};

// Two modules that read the same, and what both give together: f(x) + r(x) and f(x) * r(x), their parameters named f
// and r.
#define LC_BESIDE(Name, OP)                                                       \
  template <class F, class R>                                                     \
  struct Name {                                                                   \
    F f = {};                                                                     \
    R r = {};                                                                     \
    void visit(Visitor& v) { v("f", f)("r", r); }                                 \
    template <class X>                                                            \
    auto operator()(const X& x, const At& at = At::current()) const {             \
      Inference mode;                                                             \
      return (*this)(x, mode, at);                                                \
    }                                                                             \
    template <class X, class Mode>                                                \
      requires(is_mode<Mode>)                                                     \
    auto operator()(const X& x, Mode& mode, const At& at = At::current()) const { \
      return located(nn::apply(f, mode, at, x), at) OP nn::apply(r, mode, at, x); \
    }                                                                             \
  };
LC_BESIDE(GeneralizedAdd, +)
LC_BESIDE(GeneralizedMul, *)
#undef LC_BESIDE
// x + module(x) and x * module(x); the parameters have the module's names.
#define LC_SHORTCUT(Name, OP)                                                     \
  template <class M>                                                              \
  struct Name {                                                                   \
    M module = {};                                                                \
    void visit(Visitor& v) { module.visit(v); }                                   \
    template <class X>                                                            \
    auto operator()(const X& x, const At& at = At::current()) const {             \
      Inference mode;                                                             \
      return (*this)(x, mode, at);                                                \
    }                                                                             \
    template <class X, class Mode>                                                \
      requires(is_mode<Mode>)                                                     \
    auto operator()(const X& x, Mode& mode, const At& at = At::current()) const { \
      return located(x, at) OP nn::apply(module, mode, at, x);                    \
    }                                                                             \
  };
LC_SHORTCUT(Residual, +)
LC_SHORTCUT(ResidualMul, *)
#undef LC_SHORTCUT

// The same kind of layer N times, one behind the other, each with parameters of its own: names 0, 1, ...
template <class M, int N>
class Repeated {
 public:
  Repeated()
    requires(std::is_default_constructible_v<M>)
      : Repeated(M()) {}
  Repeated(const M& m) { modules_.assign(N, m); }
  void visit(Visitor& v) { v("", modules_); }
  template <class X>
  X operator()(const X& x, const At& at = At::current()) const {
    Inference mode;
    return (*this)(x, mode, at);
  }
  template <class X, class Mode>
    requires(is_mode<Mode>)
  X operator()(X x, Mode& mode, const At& at = At::current()) const {
    for (const M& m : modules_) x = nn::apply(m, mode, at, x);
    return x;
  }

 private:
  std::vector<M> modules_;
};

}  // namespace lc::nn
