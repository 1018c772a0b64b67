// Normalisation: torch.nn.LayerNorm, RMSNorm, GroupNorm, BatchNorm1d to 3d, InstanceNorm1d to 3d, LocalResponseNorm.
#pragma once

#include <optional>

#include "lightcone/nn/module.h"

namespace lc::nn {

struct NormOptions {
  double eps = 1e-5;
  bool affine = true;  // weight and bias, which begin at 1 and 0 (torch: elementwise_affine)
  bool bias = true;    // of LayerNorm: beside the weight
};
struct RmsNormOptions {
  double eps = 1.1920928955078125e-07;  // that of f32
  bool affine = true;
};
struct BatchNormOptions {
  double eps = 1e-5;
  std::optional<double> momentum = 0.1;  // none: running statistics are the mean of those of all batches so far
  bool affine = true;
  bool track_running_stats = true;
};
struct InstanceNormOptions {
  double eps = 1e-5, momentum = 0.1;
  bool affine = false;
  bool track_running_stats = false;
};

// The extent, and options: what the layers below are made of.
template <typed::Dim N, class Options>
class Normalisation {
 public:
  Normalisation(Options o = {})
    requires(N.number())
      : n_(N.n), o_(o) {}
  explicit Normalisation(std::int64_t n, Options o = {}) : n_(extent_of<N>(n)), o_(o) {}

  lc::Tensor weight, bias;

 protected:
  void visit_affine(Visitor& v) {
    if (o_.affine)
      v.parameter("weight", weight, {n_}, constant_init(1)).parameter("bias", bias, {n_}, constant_init(0));
  }
  std::int64_t n_;
  Options o_;
};

// Over the last axes, [n...] (torch.nn.LayerNorm): LayerNorm<64>, LayerNorm<3, 8, 8>, or LayerNorm<>(64),
// LayerNorm<>({3, 8, 8}).
lc::Tensor layer_norm_over(Operand x, const Shape& over, const lc::Tensor& weight, const lc::Tensor& bias,
                           const NormOptions& o);
template <typed::Dim... N>
class LayerNorm {
 public:
  LayerNorm(NormOptions o = {})
    requires(sizeof...(N) > 0 && (N.number() && ...))
      : over_{N.n...}, o_(o) {}
  explicit LayerNorm(std::int64_t n, NormOptions o = {})
    requires(sizeof...(N) <= 1)
      : over_{n}, o_(o) {}
  explicit LayerNorm(std::vector<std::int64_t> n, NormOptions o = {})
    requires(sizeof...(N) == 0)
      : over_(n.begin(), n.end()), o_(o) {}
  void visit(Visitor& v) {
    if (!o_.affine) return;
    v.parameter("weight", weight, over_, constant_init(1));
    if (o_.bias) v.parameter("bias", bias, over_, constant_init(0));
  }
  template <class X>
  auto operator()(const X& x, const At& at = At::current()) const {
    const lc::Tensor y = layer_norm_over(Operand(x, at), over_, weight, bias, o_);
    return wide(x, y, at);
  }

  lc::Tensor weight, bias;

 private:
  static lc::Tensor wide(const lc::Tensor&, const lc::Tensor& y, const At&) { return y; }
  template <class E, typed::Dim... A>
  static auto wide(const typed::Tensor<E, A...>& x, const lc::Tensor& y, const At& at) {
    if constexpr (sizeof...(N) == 0) return as_typed(x, y);
    else {
      using Y = decltype(x * std::declval<typed::Tensor<E, N...>>());  // the last axes agree
      return Y::from(y, at);
    }
  }
  Shape over_;
  NormOptions o_;
};

// x [..., n] / rms(x) * weight [n] (B. Zhang and R. Sennrich, 2019; torch.nn.RMSNorm).
template <typed::Dim N = dyn>
class RMSNorm : public Normalisation<N, RmsNormOptions> {
 public:
  using Normalisation<N, RmsNormOptions>::Normalisation;
  void visit(Visitor& v) {
    if (this->o_.affine) v.parameter("weight", this->weight, {this->n_}, constant_init(1));
  }
  template <class E, typed::Dim... A>
  auto operator()(const typed::Tensor<E, A...>& x, const At& at = At::current()) const {
    using Y = decltype(x * std::declval<typed::Tensor<E, N>>());
    return Y::from(untyped(Operand(x, at)), at);
  }
  lc::Tensor operator()(const lc::Tensor& x, const At& at = At::current()) const { return untyped(Operand(x, at)); }

 private:
  lc::Tensor untyped(Operand x) const {
    if (this->o_.affine) require_visited("RMSNorm", this->weight);
    return lc::rms_norm(x, {this->n_}, this->weight, this->o_.eps);
  }
};

// Over groups of channels and all axes behind them (torch.nn.GroupNorm): x [n, channels, ...].
template <int Groups, typed::Dim Channels = dyn>
class GroupNorm : public Normalisation<Channels, NormOptions> {
 public:
  using Normalisation<Channels, NormOptions>::Normalisation;
  void visit(Visitor& v) { this->visit_affine(v); }
  template <class X>
  X operator()(const X& x, const At& at = At::current()) const {
    const Operand in(x, at);
    if (this->o_.affine) require_visited("GroupNorm", this->weight);
    return as_typed(x, lc::group_norm(in, Groups, this->weight, this->bias, this->o_.eps));
  }
};

struct Statistics {
  lc::Tensor mean, var, batches;
  void visit(Visitor& v, std::int64_t channels);
};
// Weight, bias and running statistics are undefined where there are none.
lc::Tensor batch_norm(Operand x, const lc::Tensor& weight, const lc::Tensor& bias, const Statistics& running,
                      const BatchNormOptions& o, bool training);
lc::Tensor instance_norm(Operand x, const lc::Tensor& weight, const lc::Tensor& bias, const Statistics& running,
                         const InstanceNormOptions& o, bool training);

// Over all axes but the channels, axis 1 (torch.nn.BatchNorm1d to 3d). Training normalises by the batch and moves the
// running statistics by `momentum`; inference normalises by those, or by the batch where none are tracked.
template <typed::Dim Channels = dyn>
class BatchNorm : public Normalisation<Channels, BatchNormOptions>,
                  public AsksForMode<"BatchNorm: say whether the model trains: norm(x, mode)"> {
 public:
  using Normalisation<Channels, BatchNormOptions>::Normalisation;
  void visit(Visitor& v) {
    this->visit_affine(v);
    if (this->o_.track_running_stats) running.visit(v, this->n_);
  }
  using AsksForMode::operator();
  template <class X, class Mode>
    requires(is_mode<Mode>)
  X operator()(const X& x, Mode&, const At& at = At::current()) const {
    if (this->o_.affine) require_visited("BatchNorm", this->weight);
    if (this->o_.track_running_stats) require_visited("BatchNorm", running.mean);
    return as_typed(x, batch_norm(Operand(x, at), this->weight, this->bias, running, this->o_, is_training<Mode>));
  }

  Statistics running;
};
template <typed::Dim C = dyn>
using BatchNorm1d = BatchNorm<C>;
template <typed::Dim C = dyn>
using BatchNorm2d = BatchNorm<C>;
template <typed::Dim C = dyn>
using BatchNorm3d = BatchNorm<C>;

// Each channel of each sample over its spatial axes (torch.nn.InstanceNorm1d to 3d): x [n, channels, spatial axes].
// With track_running_stats the means over the batch of statistics are kept, and inference normalises by those; as in
// torch num_batches_tracked is there and stays 0.
template <typed::Dim Channels = dyn>
class InstanceNorm : public Normalisation<Channels, InstanceNormOptions>,
                     public AsksForMode<"InstanceNorm: say whether the model trains: norm(x, mode)"> {
 public:
  using Normalisation<Channels, InstanceNormOptions>::Normalisation;
  void visit(Visitor& v) {
    this->visit_affine(v);
    if (this->o_.track_running_stats) running.visit(v, this->n_);
  }
  using AsksForMode::operator();
  template <class X, class Mode>
    requires(is_mode<Mode>)
  X operator()(const X& x, Mode&, const At& at = At::current()) const {
    if (this->o_.affine) require_visited("InstanceNorm", this->weight);
    if (this->o_.track_running_stats) require_visited("InstanceNorm", running.mean);
    return as_typed(x, instance_norm(Operand(x, at), this->weight, this->bias, running, this->o_, is_training<Mode>));
  }

  Statistics running;
};
template <typed::Dim C = dyn>
using InstanceNorm1d = InstanceNorm<C>;
template <typed::Dim C = dyn>
using InstanceNorm2d = InstanceNorm<C>;
template <typed::Dim C = dyn>
using InstanceNorm3d = InstanceNorm<C>;

// x / (k + alpha m)^beta, where m is the mean of the squares of `size` neighbouring channels (A. Krizhevsky et al.,
// "ImageNet classification with deep convolutional neural networks", 2012; torch.nn.LocalResponseNorm).
lc::Tensor local_response_norm(Operand x, int size, double alpha, double beta, double k);
struct LocalResponseNorm {
  int size;
  double alpha = 1e-4, beta = 0.75, k = 1;
  void visit(Visitor&) {}
  template <class X>
  X operator()(const X& x, const At& at = At::current()) const {
    return as_typed(x, nn::local_response_norm(Operand(x, at), size, alpha, beta, k));
  }
};

}  // namespace lc::nn
