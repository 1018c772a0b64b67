// Convolutions, pools and the normalisation that goes with them: torch.nn.Conv1d to 3d, MaxPool2d, AvgPool2d, BatchNorm1d
// to 3d, GroupNorm.
#pragma once

#include "lightcone/nn/layers.h"

namespace lc::nn {

// x [b, in, n...] -> [b, out, m...], weight [out, in / groups, kernel...]. Extents, stride, padding, dilation and groups
// are template arguments, or arguments of the constructor where In, Out and Kernel are dyn.
template <int Spatial, typed::Dim In = dyn, typed::Dim Out = dyn, typed::Dim Kernel = dyn, int Stride = 1,
          int Padding = 0, int Dilation = 1, int Groups = 1>
class Conv {
 public:
  Conv(bool bias = true)
    requires(In.number() && Out.number() && Kernel.number())
      : Conv(In.n, Out.n, Kernel.n,
             {.stride = {Stride}, .padding = {Padding}, .dilation = {Dilation}, .groups = Groups}, bias) {}
  Conv(std::int64_t in, std::int64_t out, std::int64_t kernel, ConvOptions o = {}, bool bias = true)
      : in_(extent_of<In>(in)),
        out_(extent_of<Out>(out)),
        kernel_(extent_of<Kernel>(kernel)),
        o_(std::move(o)),
        has_bias_(bias) {}
  void visit(Visitor& v) {
    Shape s{out_, in_ / o_.groups};
    s.insert(s.end(), Spatial, kernel_);
    double fan = static_cast<double>(in_ / o_.groups);
    for (int i = 0; i < Spatial; ++i) fan *= static_cast<double>(kernel_);
    const Init init = uniform_init(1 / std::sqrt(fan));
    v.parameter("weight", weight, std::move(s), init);
    if (has_bias_) v.parameter("bias", bias, {out_}, init);
  }
  template <class E, typed::Dim... A>
    requires(Kernel.number())
  auto operator()(const typed::Tensor<E, A...>& x, const At& at = At::current()) const {
    constexpr typed::Inferred r = typed::infer_conv(typed::Tensor<E, A...>::static_shape, weight_shape(), Spatial,
                                                    typed::Window{Stride, Padding, Dilation, Groups});
    typed::require<r.error>();
    return typed::wrap_as<E, r.out>(untyped(Operand(x, at)));
  }
  lc::Tensor operator()(const lc::Tensor& x, const At& at = At::current()) const { return untyped(Operand(x, at)); }

  lc::Tensor weight, bias;

 private:
  static consteval typed::Shape weight_shape() {
    typed::Shape s;
    s.push(Out), s.push(In.number() ? typed::Dim(static_cast<long>(In.n / Groups)) : dyn);
    for (int i = 0; i < Spatial; ++i) s.push(Kernel);
    return s;
  }
  lc::Tensor untyped(Operand x) const { return has_bias_ ? lc::conv(x, weight, bias, o_) : lc::conv(x, weight, o_); }

  std::int64_t in_, out_, kernel_;
  ConvOptions o_;
  bool has_bias_;
};
template <typed::Dim In = dyn, typed::Dim Out = dyn, typed::Dim Kernel = dyn, int Stride = 1, int Padding = 0,
          int Dilation = 1, int Groups = 1>
using Conv1d = Conv<1, In, Out, Kernel, Stride, Padding, Dilation, Groups>;
template <typed::Dim In = dyn, typed::Dim Out = dyn, typed::Dim Kernel = dyn, int Stride = 1, int Padding = 0,
          int Dilation = 1, int Groups = 1>
using Conv2d = Conv<2, In, Out, Kernel, Stride, Padding, Dilation, Groups>;
template <typed::Dim In = dyn, typed::Dim Out = dyn, typed::Dim Kernel = dyn, int Stride = 1, int Padding = 0,
          int Dilation = 1, int Groups = 1>
using Conv3d = Conv<3, In, Out, Kernel, Stride, Padding, Dilation, Groups>;

// Over all axes but the channels, axis 1 (torch.nn.BatchNorm1d to 3d). Training normalises by the batch and moves the
// running statistics by `momentum`; inference normalises by those.
struct BatchNormOptions {
  double eps = 1e-5, momentum = 0.1;
};
struct Statistics {
  lc::Tensor mean, var, batches;
};
lc::Tensor batch_norm_training(Operand x, const lc::Tensor& weight, const lc::Tensor& bias, const Statistics& running,
                               const BatchNormOptions& o);
template <typed::Dim Channels = dyn>
class BatchNorm {
 public:
  BatchNorm(BatchNormOptions o = {})
    requires(Channels.number())
      : n_(Channels.n), o_(o) {}
  explicit BatchNorm(std::int64_t channels, BatchNormOptions o = {}) : n_(extent_of<Channels>(channels)), o_(o) {}
  void visit(Visitor& v) {
    v.parameter("weight", weight, {n_}, constant_init(1)).parameter("bias", bias, {n_}, constant_init(0));
    v.buffer("running_mean", running.mean, {n_}, constant_init(0));
    v.buffer("running_var", running.var, {n_}, constant_init(1));
    v.buffer("num_batches_tracked", running.batches, {}, constant_init(0), DType::I64);
  }
  template <class X>
  X operator()(const X& x, const Inference&, const At& at = At::current()) const {
    return as_typed(x, lc::batch_norm(Operand(x, at), running.mean, running.var, weight, bias, o_.eps));
  }
  template <class X>
  X operator()(const X& x, Training&, const At& at = At::current()) const {
    return as_typed(x, batch_norm_training(Operand(x, at), weight, bias, running, o_));
  }
  template <class X>
  X operator()(const X& x) const {
    typed::require<typed::Text(sizeof(X) ? "BatchNorm: say whether the model trains: norm(x, mode)" : "")>();
    return x;
  }

  lc::Tensor weight, bias;
  Statistics running;

 private:
  std::int64_t n_;
  BatchNormOptions o_;
};
template <typed::Dim C = dyn>
using BatchNorm1d = BatchNorm<C>;
template <typed::Dim C = dyn>
using BatchNorm2d = BatchNorm<C>;
template <typed::Dim C = dyn>
using BatchNorm3d = BatchNorm<C>;

// Over groups of channels and all axes behind them (torch.nn.GroupNorm): x [n, channels, ...].
template <int Groups, typed::Dim Channels = dyn>
class GroupNorm {
 public:
  GroupNorm(NormOptions o = {})
    requires(Channels.number())
      : n_(Channels.n), o_(o) {}
  explicit GroupNorm(std::int64_t channels, NormOptions o = {}) : n_(extent_of<Channels>(channels)), o_(o) {}
  void visit(Visitor& v) {
    if (!o_.affine) return;
    v.parameter("weight", weight, {n_}, constant_init(1)).parameter("bias", bias, {n_}, constant_init(0));
  }
  template <class X>
  X operator()(const X& x, const At& at = At::current()) const {
    const Operand in(x, at);
    return as_typed(x, o_.affine ? lc::group_norm(in, Groups, weight, bias, o_.eps) : lc::group_norm(in, Groups, o_.eps));
  }

  lc::Tensor weight, bias;

 private:
  std::int64_t n_;
  NormOptions o_;
};

// Pools of square windows (torch.nn.MaxPool2d, AvgPool2d).
template <int Kernel, int Stride = Kernel, int Padding = 0>
struct MaxPool2d {
  void visit(Visitor&) {}
  template <class E, typed::Dim... A>
  auto operator()(const typed::Tensor<E, A...>& x, const At& at = At::current()) const {
    return typed::max_pool2d<Kernel, Stride, Padding>(x, at);
  }
  lc::Tensor operator()(const lc::Tensor& x, const At& at = At::current()) const {
    return lc::max_pool(Operand(x, at), {Kernel}, {Stride}, {Padding});
  }
};
template <int Kernel, int Stride = Kernel, int Padding = 0>
struct AvgPool2d {
  void visit(Visitor&) {}
  template <class E, typed::Dim... A>
  auto operator()(const typed::Tensor<E, A...>& x, const At& at = At::current()) const {
    return typed::avg_pool2d<Kernel, Stride, Padding>(x, at);
  }
  lc::Tensor operator()(const lc::Tensor& x, const At& at = At::current()) const {
    return lc::avg_pool(Operand(x, at), {Kernel}, {Stride}, {Padding});
  }
};

}  // namespace lc::nn
