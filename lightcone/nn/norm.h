// Normalisation layers: torch.nn.LayerNorm, RMSNorm, GroupNorm, BatchNorm1d to 3d, InstanceNorm1d to 3d and
// LocalResponseNorm.
#pragma once

#include <optional>

#include "lightcone/nn/module.h"

namespace lc::nn {

// Options of LayerNorm and GroupNorm.
struct NormOptions {
  double eps = 1e-5;
  bool affine = true;  // weight and bias, initially 1 and 0 (torch: elementwise_affine)
  bool bias = true;    // LayerNorm only: a bias in addition to the weight
};
// Options of RMSNorm.
struct RmsNormOptions {
  double eps = 1.1920928955078125e-07;  // machine epsilon of f32
  bool affine = true;
};
// Options of BatchNorm, as in torch.
struct BatchNormOptions {
  double eps = 1e-5;
  std::optional<double> momentum = 0.1;  // nullopt: the running statistics are the mean over all batches so far
  bool affine = true;
  bool track_running_stats = true;
};
// Options of InstanceNorm, as in torch.
struct InstanceNormOptions {
  double eps = 1e-5, momentum = 0.1;
  bool affine = false;
  bool track_running_stats = false;
};

// Base of layers with one extent: holds the extent, the options, weight and bias.
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

// Layer normalisation over the last axes, `over`. Throws Error if the parameters of the layer were not visited.
lc::Tensor layer_norm_over(Operand x, const Shape& over, const lc::Tensor& weight, const lc::Tensor& bias,
                           const NormOptions& o);
// torch.nn.LayerNorm over the last axes: LayerNorm<64>, LayerNorm<3, 8, 8>, LayerNorm<>(64) or LayerNorm<>({3, 8, 8}).
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

// torch.nn.RMSNorm: x [..., n] / rms(x) * weight [n] (B. Zhang and R. Sennrich, 2019).
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

// torch.nn.GroupNorm: normalises x [n, channels, ...] over groups of channels and all later axes.
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

// Running statistics: mean and variance [channels], and the number of batches.
struct Statistics {
  lc::Tensor mean, var, batches;
  void visit(Visitor& v, std::int64_t channels);
};
// Batch normalisation of x [batch, channels, ...]. A weight, bias or running statistic that does not exist is
// undefined. Training assigns the running statistics. Throws Error if a channel has a single value to normalise by.
lc::Tensor batch_norm(Operand x, const lc::Tensor& weight, const lc::Tensor& bias, const Statistics& running,
                      const BatchNormOptions& o, bool training);
// Instance normalisation of x [batch, channels, spatial axes]. A weight, bias or running statistic that does not exist
// is undefined.
lc::Tensor instance_norm(Operand x, const lc::Tensor& weight, const lc::Tensor& bias, const Statistics& running,
                         const InstanceNormOptions& o, bool training);

// torch.nn.BatchNorm1d to 3d: normalises over all axes but the channels, axis 1. Training uses the statistics of the
// batch and moves the running statistics towards them by `momentum`. Inference uses the running statistics, or those of
// the batch if none are tracked.
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

// torch.nn.InstanceNorm1d to 3d: normalises each channel of each sample over its spatial axes; x
// [n, channels, spatial axes]. With track_running_stats the running statistics are averages over the batches, and
// inference uses them. As in torch, num_batches_tracked exists and stays 0.
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

// torch.nn.LocalResponseNorm: x / (k + alpha m)^beta, where m is the mean of the squares of `size` neighbouring
// channels (A. Krizhevsky et al., "ImageNet classification with deep convolutional neural networks", 2012). Throws
// Error if the rank is below 3 or `size` below 1.
lc::Tensor local_response_norm(Operand x, int size, double alpha, double beta, double k);
// The layer of local_response_norm().
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
