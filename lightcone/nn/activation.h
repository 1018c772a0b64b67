// Elementwise layers: the activations of torch.nn and dropout; and softmax, which acts along an axis. Only PReLU has
// parameters. Options have torch's names and defaults: Sequential<..., nn::ReLU>, LeakyReLU{0.2}.
#pragma once

#include <cmath>

#include "lightcone/macros_off.h"

#include "lightcone/nn/module.h"

namespace lc::nn {

// Defines visit() and the call operator of a layer that computes `call`, a function of the operand `a` and the layer's
// options. `typed_as` is as_float_typed if the function converts integers to f32, as_typed if it keeps the type.
#define LC_CALL_AS(typed_as, call)                                  \
  void visit(Visitor&) {}                                           \
  template <class X>                                                \
  auto operator()(const X& x, const At& at = At::current()) const { \
    const Operand a(x, at);                                         \
    return typed_as(x, call);                                       \
  }
// Layers with the names of torch.nn. This group converts integers to f32.
#define LC_FUNCTION(Name, call)          \
  struct Name {                          \
    LC_CALL_AS(as_float_typed, lc::call) \
  };
LC_FUNCTION(Tanh, tanh(a))
LC_FUNCTION(Sigmoid, sigmoid(a))
LC_FUNCTION(LogSigmoid, logsigmoid(a))
LC_FUNCTION(SiLU, silu(a))
LC_FUNCTION(Mish, mish(a))
LC_FUNCTION(SELU, selu(a))
LC_FUNCTION(Softsign, softsign(a))
LC_FUNCTION(Tanhshrink, tanhshrink(a))
LC_FUNCTION(Hardswish, hardswish(a))
LC_FUNCTION(Hardsigmoid, hardsigmoid(a))
LC_FUNCTION(Exp, exp(a))  // from here to Cos: not in torch.nn; other libraries have these layers
LC_FUNCTION(Log, log(a))
LC_FUNCTION(Sqrt, sqrt(a))
LC_FUNCTION(Sin, sin(a))
LC_FUNCTION(Cos, cos(a))
#undef LC_FUNCTION
// This group keeps the type of its operand.
#define LC_FUNCTION(Name, call)    \
  struct Name {                    \
    LC_CALL_AS(as_typed, lc::call) \
  };
LC_FUNCTION(ReLU, relu(a))
LC_FUNCTION(ReLU6, relu6(a))
LC_FUNCTION(Square, square(a))
LC_FUNCTION(Abs, abs(a))
#undef LC_FUNCTION

// The formula of GELU: None is exact (erf), Tanh the approximation by tanh.
enum class Approximate : std::uint8_t { None, Tanh };
// torch.nn.GELU: x times the standard normal distribution function at x.
struct GELU {
  Approximate approximate = Approximate::None;
  LC_CALL_AS(as_float_typed, approximate == Approximate::Tanh ? gelu_tanh(a) : gelu(a))
};
// torch.nn.LeakyReLU: max(0, x) + negative_slope min(0, x).
struct LeakyReLU {
  double negative_slope = 0.01;
  LC_CALL_AS(as_typed, leaky_relu(a, negative_slope))
};
// torch.nn.ELU: x if x > 0, alpha (exp(x) - 1) otherwise.
struct ELU {
  double alpha = 1;
  LC_CALL_AS(as_float_typed, elu(a, alpha))
};
// torch.nn.CELU: max(0, x) + min(0, alpha (exp(x / alpha) - 1)).
struct CELU {
  double alpha = 1;
  LC_CALL_AS(as_float_typed, celu(a, alpha))
};
// torch.nn.Softplus: log(1 + exp(beta x)) / beta, and x itself if beta x is above the threshold.
struct Softplus {
  double beta = 1, threshold = 20;
  LC_CALL_AS(as_float_typed, softplus(a, beta, threshold))
};
// torch.nn.Hardtanh: x clamped to [min_val, max_val].
struct Hardtanh {
  double min_val = -1, max_val = 1;
  LC_CALL_AS(as_typed, hardtanh(a, min_val, max_val))
};
// torch.nn.Hardshrink: x if |x| > lambd, 0 otherwise.
struct Hardshrink {
  double lambd = 0.5;
  LC_CALL_AS(as_typed, hardshrink(a, lambd))
};
// torch.nn.Softshrink: x moved towards 0 by lambd, 0 if |x| <= lambd.
struct Softshrink {
  double lambd = 0.5;
  LC_CALL_AS(as_typed, softshrink(a, lambd))
};
// torch.nn.Threshold: x if it is above the threshold, `value` otherwise.
struct Threshold {
  double threshold, value;
  LC_CALL_AS(as_typed, lc::threshold(a, threshold, value))
};
// torch.nn.Softmax along axis `dim`.
struct Softmax {
  int dim = -1;
  LC_CALL_AS(as_float_typed, softmax(a, dim))
};
// torch.nn.Softmin, softmax(-x), along axis `dim`.
struct Softmin {
  int dim = -1;
  LC_CALL_AS(as_float_typed, softmin(a, dim))
};
// torch.nn.LogSoftmax along axis `dim`.
struct LogSoftmax {
  int dim = -1;
  LC_CALL_AS(as_float_typed, log_softmax(a, dim))
};
// torch.nn.Softmax2d: softmax over the channels of [batch, channels, height, width] or [channels, height, width].
struct Softmax2d {
  LC_CALL_AS(as_float_typed, softmax(a, -3))
};
#undef LC_CALL_AS

// torch.nn.GLU: the first half of axis `Dim` times the sigmoid of the second half.
template <int Dim = -1>
struct GLU {
  void visit(Visitor&) {}
  template <class E, typed::Dim... A>
  auto operator()(const typed::Tensor<E, A...>& x, const At& at = At::current()) const {
    constexpr typed::Inferred r = halved(typed::Tensor<E, A...>::static_shape);
    typed::require<r.error>();
    return typed::TensorOf<typed::FloatOf<E>, r.out>::from(lc::glu(Operand(x, at), Dim));
  }
  lc::Tensor operator()(const lc::Tensor& x, const At& at = At::current()) const {
    return lc::glu(Operand(x, at), Dim);
  }

 private:
  static constexpr typed::Inferred halved(const typed::Shape& s) {
    typed::Inferred r = typed::infer_along("glu", s, Dim);
    if (!r.ok()) return r;
    typed::Dim& d = r.out.d[typed::wrap(Dim, s.rank)];
    if (d.number() && d.n % 2 != 0)
      r.error.add("glu: axis ").add(std::int64_t{typed::wrap(Dim, s.rank)}).add(" of ").add(s).add(" has no halves");
    d = d.number() ? typed::Dim(static_cast<long>(d.n / 2)) : dyn;
    return r;
  }
};

// torch.nn.PReLU: max(0, x) + weight min(0, x). The weight is one number, or one for each channel (axis 1); it is
// initialised to `init`.
class PReLU {
 public:
  explicit PReLU(std::int64_t num_parameters = 1, double init = 0.25)
      : n_(num_parameters), init_(static_cast<float>(init)) {}
  void visit(Visitor& v) { v.parameter("weight", weight, {n_}, constant_init(init_)); }
  template <class X>
  X operator()(const X& x, const At& at = At::current()) const {
    require_visited("PReLU", weight);
    return as_typed(x, lc::prelu(Operand(x, at), weight));
  }

  lc::Tensor weight;

 private:
  std::int64_t n_;
  float init_;
};

// torch.nn.RReLU: in training each negative element is multiplied by a random number from [lower, upper), in inference
// by the mean of the two bounds.
class RReLU : public AsksForMode<"RReLU: say whether the model trains: rrelu(x, mode)"> {
 public:
  RReLU(double lower = 1.0 / 8, double upper = 1.0 / 3) : lower_(lower), upper_(upper) {}
  void visit(Visitor&) {}
  using AsksForMode::operator();
  template <class X>
  X operator()(const X& x, const Inference&, const At& at = At::current()) const {
    return as_typed(x, lc::leaky_relu(Operand(x, at), (lower_ + upper_) / 2));
  }
  template <class X>
  X operator()(const X& x, Training& mode, const At& at = At::current()) const {
    const Operand a(x, at);
    const lc::Tensor slope = mode.random().uniform(a->shape(), lower_, upper_, {}, at);
    return as_typed(x, lc::where(a > 0.0, a, a.tensor * lc::to(slope, a->dtype())));
  }

 private:
  double lower_, upper_;
};

// torch.nn.Dropout: in training an element becomes 0 with probability p, and the others are multiplied by 1 / (1 - p).
// In inference x is unchanged.
class Dropout : public AsksForMode<"Dropout: say whether the model trains: dropout(x, mode)"> {
 public:
  Dropout(double p = 0.5) : p_(p) {}
  void visit(Visitor&) {}
  using AsksForMode::operator();
  template <class X>
  X operator()(const X& x, const Inference&) const {
    return x;
  }
  template <class X>
  X operator()(const X& x, Training& mode, const At& at = At::current()) const {
    return as_typed(x, mode.random().dropout(Operand(x, at), p_));
  }

 private:
  double p_;
};
// torch.nn.Dropout1d to 3d: the same for whole channels of x [batch, channels, ...].
class ChannelDropout : public AsksForMode<"Dropout: say whether the model trains: dropout(x, mode)"> {
 public:
  ChannelDropout(double p = 0.5) : p_(p) {}
  void visit(Visitor&) {}
  using AsksForMode::operator();
  template <class X>
  X operator()(const X& x, const Inference&) const {
    return x;
  }
  template <class X>
  X operator()(const X& x, Training& mode, const At& at = At::current()) const {
    const Operand a(x, at);
    Shape s = a->shape();
    if (s.size() < 2) throw Error("Dropout", "whole channels are those of [batch, channels, ...], not of " + str(s));
    for (std::size_t i = 2; i < s.size(); ++i) s[i] = 1;
    return as_typed(x, a.tensor * mode.random().dropout(full(a->graph(), s, 1, a->dtype()), p_));
  }

 private:
  double p_;
};
using Dropout1d = ChannelDropout;
using Dropout2d = ChannelDropout;
using Dropout3d = ChannelDropout;
// torch.nn.AlphaDropout, to be used after SELU: dropped elements get the limit of SELU for large negative x, and the
// result is scaled and shifted to keep mean and variance. G. Klambauer et al., "Self-normalizing neural networks",
// 2017.
class AlphaDropout : public AsksForMode<"AlphaDropout: say whether the model trains: dropout(x, mode)"> {
 public:
  AlphaDropout(double p = 0.5) : p_(p) {}
  void visit(Visitor&) {}
  using AsksForMode::operator();
  template <class X>
  X operator()(const X& x, const Inference&) const {
    return x;
  }
  template <class X>
  X operator()(const X& x, Training& mode, const At& at = At::current()) const {
    const Operand a(x, at);
    if (!(p_ >= 0 && p_ <= 1)) throw Error("AlphaDropout", str_cat("p is ", p_, ", not a probability"));
    if (p_ == 1) return as_typed(x, a.tensor * 0.0);
    constexpr double kLow = -1.7580993408473766;  // -scale alpha of SELU
    const double scale = 1 / std::sqrt((1 - p_) * (1 + p_ * kLow * kLow));
    const lc::Tensor kept = mode.random().bernoulli(a->shape(), 1 - p_, {}, at);
    return as_typed(x, (lc::where(kept, a, kLow) - kLow * p_) * scale);
  }

 private:
  double p_;
};

}  // namespace lc::nn
#include "lightcone/macros_on.h"
