// Layers that move, repeat or pad elements: torch.nn.Flatten, Unflatten, Upsample, PixelShuffle, ChannelShuffle,
// ConstantPad, ZeroPad, ReflectionPad, ReplicationPad and CircularPad.
#pragma once

#include "lightcone/nn/module.h"

namespace lc::nn {

// Merges the axes from First to Last into one. torch.nn.Flatten: [n, ...] -> [n, the rest].
template <int First, int Last>
struct FlattenAxes {
  void visit(Visitor&) {}
  template <class E, typed::Dim... A>
  auto operator()(const typed::Tensor<E, A...>& x, const At& at = At::current()) const {
    return typed::flatten<First, Last>(x, at);
  }
  lc::Tensor operator()(const lc::Tensor& x, const At& at = At::current()) const {
    return lc::flatten(Operand(x, at), First, Last);
  }
};
using Flatten = FlattenAxes<1, -1>;

// torch.nn.Unflatten: splits an axis into axes of these sizes, one of which may be dyn (torch: -1).
template <int Axis, typed::Dim... Sizes>
struct Unflatten {
  void visit(Visitor&) {}
  template <class E, typed::Dim... A>
  auto operator()(const typed::Tensor<E, A...>& x, const At& at = At::current()) const {
    constexpr typed::Inferred r = inferred(typed::Tensor<E, A...>::static_shape);
    typed::require<r.error>();
    return typed::TensorOf<E, r.out>::from(untyped(Operand(x, at)), at);
  }
  lc::Tensor operator()(const lc::Tensor& x, const At& at = At::current()) const { return untyped(Operand(x, at)); }

 private:
  static constexpr typed::Inferred inferred(const typed::Shape& s) {
    typed::Inferred r = typed::infer_along("unflatten", s, Axis);
    if (!r.ok()) return r;
    const int axis = typed::wrap(Axis, s.rank);
    typed::Shape one, to = typed::Tensor<float, Sizes...>::static_shape;
    one.push(s.d[axis]);
    const typed::Inferred part = typed::infer_reshape(one, to);
    r.error = part.error;
    r.out = {};
    for (int i = 0; i < s.rank; ++i) {
      if (i != axis) r.out.push(s.d[i]);
      for (int k = 0; i == axis && k < part.out.rank; ++k) r.out.push(part.out.d[k]);
    }
    return r;
  }
  static lc::Tensor untyped(const Operand& x) {
    const OpScope scope("unflatten", x.at);
    const int axis = wrap_axis(Axis, x->rank(), x->shape(), "unflatten");
    Dim rest = x->extent(axis);
    ((rest = Sizes.number() ? rest / Dim(Sizes.n) : rest), ...);
    Shape s = x->shape();
    s.erase(s.begin() + axis);
    const Shape parts{Sizes.number() ? Dim(Sizes.n) : rest...};
    s.insert(s.begin() + axis, parts.begin(), parts.end());
    return x->reshape(s);
  }
};

// Reshapes x to [Sizes...]. A symbol stands for the extent of x with that name, and one size may be dyn.
template <typed::Dim... Sizes>
struct Reshape {
  void visit(Visitor&) {}
  template <class E, typed::Dim... A>
  auto operator()(const typed::Tensor<E, A...>& x, const At& at = At::current()) const {
    return typed::reshape<Sizes...>(x, at);
  }
  lc::Tensor operator()(const lc::Tensor& x, const At& at = At::current()) const {
    return x.reshape(typed::reshape_to(x, typed::Tensor<float, Sizes...>::static_shape), at);
  }
};

// Options of Upsample: either `size` or `scale_factor`.
struct UpsampleOptions {
  std::vector<int> size = {};  // extents of the result: one for all spatial axes, or one per axis
  int scale_factor = 1;        // factor by which each spatial extent grows
  Interpolation mode = Interpolation::Nearest;
  bool align_corners = false;
};
// torch.nn.Upsample with integer scales: [b, c, n...] -> [b, c, n scale...] or [b, c, size...]. The spatial extents
// must be numbers. Bilinear interpolates linearly along each axis. Upsample<2> has its scale in its type. The
// constructor throws Error for a scale below 1, or for both sizes and a scale.
template <int Scale = 0>
class Upsample {
 public:
  Upsample(UpsampleOptions o = {}) : o_(std::move(o)) {
    if (Scale > 0) o_.scale_factor = Scale;
    if (o_.scale_factor < 1 || (!o_.size.empty() && o_.scale_factor != 1))
      throw Error("Upsample",
                  str_cat("a scale of ", o_.scale_factor, " with ", o_.size.size(), " sizes: it is one or the other"));
  }
  void visit(Visitor&) {}
  template <class E, typed::Dim... A>
  auto operator()(const typed::Tensor<E, A...>& x, const At& at = At::current()) const {
    const lc::Tensor y = untyped(Operand(x, at));
    if constexpr (Scale > 0) {
      constexpr typed::Shape s = [] {
        typed::Shape larger = typed::Tensor<E, A...>::static_shape;
        for (int i = 2; i < larger.rank; ++i)
          larger.d[i] = larger.d[i].number() ? typed::Dim(static_cast<long>(larger.d[i].n * Scale)) : dyn;
        return larger;
      }();
      return typed::TensorOf<E, s>::from(y, at);
    } else {
      return as_typed_before<2>(x, y);
    }
  }
  lc::Tensor operator()(const lc::Tensor& x, const At& at = At::current()) const { return untyped(Operand(x, at)); }

 private:
  lc::Tensor untyped(const Operand& x) const {
    const OpScope scope("Upsample", x.at);
    std::vector<int> size = o_.size;
    for (int i = 2; o_.size.empty() && i < x->rank(); ++i) {
      const auto n = x->extent(i).constant();
      if (!n) throw Error("Upsample", str_cat("the extents of ", str(x->shape()), " have to be numbers"));
      size.push_back(static_cast<int>(*n) * o_.scale_factor);
    }
    return lc::interpolate(x, size, o_.mode, o_.align_corners);
  }
  UpsampleOptions o_;
};

// torch.nn.PixelShuffle: [..., c f^2, h, w] -> [..., c, h f, w f].
struct PixelShuffle {
  int upscale_factor;
  void visit(Visitor&) {}
  lc::Tensor operator()(const lc::Tensor& x, const At& at = At::current()) const {
    return lc::pixel_shuffle(Operand(x, at), upscale_factor);
  }
};
// torch.nn.PixelUnshuffle, the inverse of PixelShuffle.
struct PixelUnshuffle {
  int downscale_factor;
  void visit(Visitor&) {}
  lc::Tensor operator()(const lc::Tensor& x, const At& at = At::current()) const {
    return lc::pixel_unshuffle(Operand(x, at), downscale_factor);
  }
};
// torch.nn.ChannelShuffle: splits the channels, axis 1, into groups and interleaves them: the first channel of each
// group, then the second of each, and so on. Throws Error if `groups` does not divide the channels.
struct ChannelShuffle {
  int groups;
  void visit(Visitor&) {}
  template <class X>
  X operator()(const X& x, const At& at = At::current()) const {
    const OpScope scope("ChannelShuffle", at);
    const Operand in(x, at);
    Shape s = in->shape();
    if (s.size() < 2 || groups < 1 || !(s[1] % Dim(groups) == Dim(0)))
      throw Error("ChannelShuffle", str_cat(groups, " groups do not divide the channels of ", str(s)));
    s[1] = s[1] / Dim(groups);
    s.insert(s.begin() + 1, groups);
    return as_typed(x, in->reshape(s).transpose(1, 2).reshape(in->shape()));
  }
};

// Pads the last `Spatial` axes (torch.nn.ConstantPad1d to 3d and the other modes). `padding` holds pairs in torch's
// order, before and after the last axis, then the axis before it, and so on; or one number for all sides. Negative
// padding crops, in ConstantPad only. The constructor throws Error for another number of values.
template <int Spatial, PadMode Mode>
class Pad {
 public:
  explicit Pad(std::vector<int> padding, double value = 0) : padding_(std::move(padding)), value_(value) {
    if (padding_.size() == 1) padding_.assign(2 * Spatial, padding_[0]);
    if (padding_.size() != 2 * Spatial)
      throw Error("Pad", str_cat(padding_.size(), " numbers for ", 2 * Spatial, " sides"));
  }
  void visit(Visitor&) {}
  template <class E, typed::Dim... A>
  auto operator()(const typed::Tensor<E, A...>& x, const At& at = At::current()) const {
    return as_typed_before<static_cast<int>(sizeof...(A)) - Spatial>(x, untyped(Operand(x, at)));
  }
  lc::Tensor operator()(const lc::Tensor& x, const At& at = At::current()) const { return untyped(Operand(x, at)); }

 private:
  lc::Tensor untyped(Operand x) const {
    const OpScope scope("pad", x.at);
    for (int i = 0; i < Spatial; ++i) {
      const int before = padding_[static_cast<std::size_t>(2 * i)],
                after = padding_[static_cast<std::size_t>(2 * i + 1)];
      if (before != 0 || after != 0) x.tensor = lc::pad(x, -1 - i, before, after, Mode, value_);
    }
    return x;
  }
  std::vector<int> padding_;
  double value_;
};
#define LC_PAD(Name, Mode)                \
  using Name##1d = Pad<1, PadMode::Mode>; \
  using Name##2d = Pad<2, PadMode::Mode>; \
  using Name##3d = Pad<3, PadMode::Mode>;
LC_PAD(ConstantPad, Constant)
LC_PAD(ZeroPad, Constant)
LC_PAD(ReflectionPad, Reflect)
LC_PAD(ReplicationPad, Replicate)
LC_PAD(CircularPad, Circular)
#undef LC_PAD

}  // namespace lc::nn
