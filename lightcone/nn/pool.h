// Pooling layers: torch.nn.MaxPool1d to 3d, AvgPool, AdaptiveAvgPool, AdaptiveMaxPool and LPPool; and global pools.
#pragma once

#include <cmath>

#include "lightcone/nn/module.h"

namespace lc::nn {

// The reduction over a window.
enum class PoolKind : std::uint8_t { Max, Min, Avg };

// Options of the pools, as in torch.
struct PoolOptions {
  IntList stride = {};  // one number, or one per axis; empty: the kernel
  IntList padding = 0;
  IntList dilation = 1;  // not for Avg
  bool ceil_mode = false;
  bool count_include_pad = true;  // Avg only
};
// Pools over the last n spatial axes of a batch or of one sample.
lc::Tensor pooled(PoolKind kind, int n, Operand x, const IntList& kernel, const PoolOptions& o);
// Pools to the given extents of the n spatial axes, over a batch or one sample.
lc::Tensor adaptively_pooled(PoolKind kind, int n, Operand x, const IntList& output);

// torch.nn.MaxPool1d to 3d and AvgPool1d to 3d: x [b, c, n...] or [c, n...] -> [b, c, m...] or [c, m...]. The windows
// are square template arguments, MaxPool2d<3, 2, 1>, or arguments of the constructor, MaxPool2d<>({3, 2}, {.stride =
// 2}).
template <PoolKind Kind, int Spatial, int Kernel = 0, int Stride = Kernel, int Padding = 0>
class Pool {
 public:
  Pool()
    requires(Kernel > 0)
      : kernel_{Kernel}, o_{.stride = {Stride}, .padding = {Padding}} {}
  explicit Pool(int kernel, PoolOptions o = {})
    requires(Kernel == 0)
      : kernel_(kernel), o_(std::move(o)) {}
  explicit Pool(std::vector<int> kernel, PoolOptions o = {})
    requires(Kernel == 0)
      : kernel_(std::move(kernel)), o_(std::move(o)) {}
  void visit(Visitor&) {}
  template <class E, typed::Dim... A>
  auto operator()(const typed::Tensor<E, A...>& x, const At& at = At::current()) const {
    const lc::Tensor y = checked(Operand(x, at));
    if constexpr (Kernel > 0) {
      constexpr typed::Inferred r = typed::infer_pool(kName, typed::Tensor<E, A...>::static_shape, Spatial, Kernel,
                                                      typed::Window{Stride, Padding, 1, 1});
      typed::require<r.error>();
      return typed::wrap_as<E, r.out>(y);
    } else {
      return as_typed_before<static_cast<int>(sizeof...(A)) - Spatial>(x, y);
    }
  }
  lc::Tensor operator()(const lc::Tensor& x, const At& at = At::current()) const { return checked(Operand(x, at)); }

 private:
  static constexpr const char* kName = Kind == PoolKind::Max   ? "max_pool"
                                       : Kind == PoolKind::Min ? "min_pool"
                                                               : "avg_pool";
  lc::Tensor checked(const Operand& x) const { return pooled(Kind, Spatial, x, kernel_, o_); }
  IntList kernel_;
  PoolOptions o_;
};
#define LC_POOL(Name, Kind, Spatial)                              \
  template <int Kernel = 0, int Stride = Kernel, int Padding = 0> \
  using Name = Pool<PoolKind::Kind, Spatial, Kernel, Stride, Padding>;
LC_POOL(MaxPool1d, Max, 1)
LC_POOL(MaxPool2d, Max, 2)
LC_POOL(MaxPool3d, Max, 3)
LC_POOL(MinPool1d, Min, 1)  // torch.nn has no minimum pools
LC_POOL(MinPool2d, Min, 2)
LC_POOL(MinPool3d, Min, 3)
LC_POOL(AvgPool1d, Avg, 1)
LC_POOL(AvgPool2d, Avg, 2)
LC_POOL(AvgPool3d, Avg, 3)
#undef LC_POOL

// torch.nn.LPPool1d to 3d: (sum of x^p)^(1 / p) over windows.
template <int Spatial>
class LPPool {
 public:
  LPPool(double norm_type, std::vector<int> kernel, std::vector<int> stride = {}, bool ceil_mode = false)
      : p_(norm_type), kernel_(std::move(kernel)), stride_(std::move(stride)), ceil_mode_(ceil_mode) {}
  void visit(Visitor&) {}
  template <class X>
  auto operator()(const X& x, const At& at = At::current()) const {
    double n = kernel_.size() == 1 ? std::pow(kernel_[0], Spatial) : 1;
    for (std::size_t k = 0; kernel_.size() > 1 && k < kernel_.size(); ++k) n *= kernel_[k];
    const lc::Tensor m = lc::avg_pool(Operand(pow(Operand(x, at), p_), at), kernel_, stride_, {0}, ceil_mode_);
    return as_typed_before<2>(x, pow(relu(m) * n, 1 / p_));  // as in torch, negative sums give 0
  }

 private:
  double p_;
  std::vector<int> kernel_, stride_;
  bool ceil_mode_;
};
using LPPool1d = LPPool<1>;
using LPPool2d = LPPool<2>;
using LPPool3d = LPPool<3>;

// torch.nn.AdaptiveAvgPool1d to 3d and AdaptiveMaxPool1d to 3d: x [b, c, n...] -> [b, c, Output...], or the extents
// given to the constructor. The extents of x must be numbers.
template <PoolKind Kind, int Spatial, int Output = 0>
class AdaptivePool {
 public:
  AdaptivePool()
    requires(Output > 0)
      : output_{Output} {}
  explicit AdaptivePool(int output)
    requires(Output == 0)
      : output_(output) {}
  explicit AdaptivePool(std::vector<int> output)
    requires(Output == 0)
      : output_(std::move(output)) {}
  void visit(Visitor&) {}
  template <class E, typed::Dim... A>
  auto operator()(const typed::Tensor<E, A...>& x, const At& at = At::current()) const {
    const lc::Tensor y = untyped(Operand(x, at));
    if constexpr (Output > 0) {
      constexpr typed::Inferred r = inferred(typed::Tensor<E, A...>::static_shape);
      typed::require<r.error>();
      return typed::TensorOf<E, r.out>::from(y, at);
    } else {
      return as_typed_before<static_cast<int>(sizeof...(A)) - Spatial>(x, y);
    }
  }
  lc::Tensor operator()(const lc::Tensor& x, const At& at = At::current()) const { return untyped(Operand(x, at)); }

 private:
  static constexpr typed::Inferred inferred(const typed::Shape& s) {
    typed::Inferred r{s, {}};
    if (s.rank != Spatial + 2)
      r.error.add("adaptive pool: needs [batch, channels, ")
          .add(std::int64_t{Spatial})
          .add(" spatial axes], not ")
          .add(s);
    for (int i = 2; i < s.rank; ++i) r.out.d[i] = Output;
    return r;
  }
  lc::Tensor untyped(const Operand& x) const { return adaptively_pooled(Kind, Spatial, x, output_); }
  IntList output_;
};
#define LC_POOL(Name, Kind, Spatial) \
  template <int Output = 0>          \
  using Name = AdaptivePool<PoolKind::Kind, Spatial, Output>;
LC_POOL(AdaptiveAvgPool1d, Avg, 1)
LC_POOL(AdaptiveAvgPool2d, Avg, 2)
LC_POOL(AdaptiveAvgPool3d, Avg, 3)
LC_POOL(AdaptiveMaxPool1d, Max, 1)
LC_POOL(AdaptiveMaxPool2d, Max, 2)
LC_POOL(AdaptiveMaxPool3d, Max, 3)
#undef LC_POOL

// Global pooling: x [b, c, n...] -> [b, c], the mean, maximum or minimum of each channel. Throws Error if there are no
// spatial axes.
template <PoolKind Kind>
struct GlobalPool {
  void visit(Visitor&) {}
  template <class E, typed::Dim... A>
  auto operator()(const typed::Tensor<E, A...>& x, const At& at = At::current()) const {
    constexpr typed::Inferred r = inferred(typed::Tensor<E, A...>::static_shape);
    typed::require<r.error>();
    return typed::TensorOf<typed::FloatOf<E>, r.out>::from(untyped(Operand(x, at)), at);
  }
  lc::Tensor operator()(const lc::Tensor& x, const At& at = At::current()) const { return untyped(Operand(x, at)); }

 private:
  static constexpr typed::Inferred inferred(const typed::Shape& s) {
    typed::Inferred r;
    if (s.rank < 3) r.error.add("global pool: needs [batch, channels, spatial axes], not ").add(s);
    r.out.push(s.d[0]), r.out.push(s.d[1]);
    return r;
  }
  static lc::Tensor untyped(const Operand& x) {
    const OpScope scope("global pool", x.at);
    if (x->rank() < 3) throw Error("global pool", "needs [batch, channels, spatial axes], not " + str(x->shape()));
    Axes over;
    for (int i = 2; i < x->rank(); ++i) over.push_back(i);
    return Kind == PoolKind::Avg ? mean(x, over) : Kind == PoolKind::Max ? amax(x, over) : amin(x, over);
  }
};
using AvgPoolGlobal = GlobalPool<PoolKind::Avg>;
using MaxPoolGlobal = GlobalPool<PoolKind::Max>;
using MinPoolGlobal = GlobalPool<PoolKind::Min>;

}  // namespace lc::nn
