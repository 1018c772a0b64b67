// Layers that combine layers: in sequence, in parallel, and with a shortcut.
#pragma once

#include <tuple>
#include <utility>

#include "lightcone/nn/module.h"

namespace lc::nn {

// torch.nn.Identity: returns x.
struct Identity {
  void visit(Visitor&) {}
  template <class X>
  X operator()(const X& x) const {
    return x;
  }
};

// torch.nn.Sequential: applies the layers one after the other. Their names are 0, 1, ...
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
  // The K-th layer.
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

// Applies several modules to the same x and returns a tuple of the results: auto [a, b] = split(x). Their names are 0,
// 1, ...
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
// Applies each of several modules to its own operand and returns the sum of the results: add(x0, x1, ...), or add() of
// a tuple. Their names are 0, 1, ...
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

// GeneralizedAdd is f(x) + r(x), and GeneralizedMul is f(x) * r(x). The parameters of the two modules are under the
// names f and r.
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
// Residual is x + module(x), and ResidualMul is x * module(x). The parameters have the names the module gives them.
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

// N copies of a layer in sequence, each with its own parameters. Their names are 0, 1, ...
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
