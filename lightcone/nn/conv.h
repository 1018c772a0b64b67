// Convolutions: torch.nn.Conv1d to 3d and ConvTranspose1d to 3d.
#pragma once

#include <cmath>

#include "lightcone/nn/module.h"

namespace lc::nn {

// Pads the last n axes of x by the padding of the convolution's options, in a mode other than zeros.
inline lc::Tensor padded_for(const lc::Tensor& x, int n, const ConvOptions& o, PadMode mode) {
  lc::Tensor y = x;
  for (int i = 0; i < n; ++i) {
    const int p = o.padding.at(o.padding.size() == 1 ? 0 : static_cast<std::size_t>(i));
    if (p > 0) y = pad(y, x.rank() - n + i, p, p, mode);
  }
  return y;
}
// The extents of the kernel along all spatial axes, given as one number or one per axis. Throws Error for any other
// number of extents.
template <int Spatial>
std::vector<std::int64_t> kernel_of(const char* layer, std::vector<std::int64_t> kernel) {
  if (kernel.size() == 1) kernel.assign(Spatial, kernel[0]);
  if (kernel.size() != Spatial)
    throw Error(layer, str_cat("the kernel has ", kernel.size(), " extents for ", Spatial, " spatial axes"));
  return kernel;
}
// PyTorch's initialiser of convolutions: uniform in +-1 / sqrt(fan in).
inline Init conv_init(std::int64_t channels, const std::vector<std::int64_t>& kernel) {
  double fan = static_cast<double>(channels);
  for (const std::int64_t k : kernel) fan *= static_cast<double>(k);
  return uniform_init(fan > 0 ? 1 / std::sqrt(fan) : 0);
}

// torch.nn.Conv1d to 3d: x [b, in, n...] or [in, n...] -> [b, out, m...] or [out, m...], with a weight
// [out, in / groups, kernel...]. Extents, stride, padding, dilation and groups are template arguments, or arguments of
// the constructor if In, Out and Kernel are dyn. `padding_mode` selects padding by other values than zeros. The
// constructor throws Error if `groups` does not divide in and out.
template <int Spatial, typed::Dim In = dyn, typed::Dim Out = dyn, typed::Dim Kernel = dyn, int Stride = 1,
          int Padding = 0, int Dilation = 1, int Groups = 1>
class Conv {
 public:
  Conv(bool bias = true)
    requires(In.number() && Out.number() && Kernel.number())
      : Conv(In.n, Out.n, Kernel.n,
             {.stride = {Stride}, .padding = {Padding}, .dilation = {Dilation}, .groups = Groups}, bias) {}
  Conv(std::int64_t in, std::int64_t out, std::int64_t kernel, ConvOptions o = {}, bool bias = true,
       PadMode padding_mode = PadMode::Constant)
      : Conv(in, out, std::vector{extent_of<Kernel>(kernel)}, std::move(o), bias, padding_mode) {}
  // A kernel with one extent per spatial axis.
  Conv(std::int64_t in, std::int64_t out, std::vector<std::int64_t> kernel, ConvOptions o = {}, bool bias = true,
       PadMode padding_mode = PadMode::Constant)
      : in_(extent_of<In>(in)),
        out_(extent_of<Out>(out)),
        kernel_(kernel_of<Spatial>("Conv", std::move(kernel))),
        o_(std::move(o)),
        has_bias_(bias),
        padding_mode_(padding_mode) {
    if (o_.groups < 1 || in_ % o_.groups != 0 || out_ % o_.groups != 0)
      throw Error("Conv", str_cat(o_.groups, " groups do not divide ", in_, " channels in and ", out_, " out"));
  }
  void visit(Visitor& v) {
    Shape s{out_, in_ / o_.groups};
    s.insert(s.end(), kernel_.begin(), kernel_.end());
    const Init init = conv_init(in_ / o_.groups, kernel_);
    v.parameter("weight", weight, std::move(s), init);
    if (has_bias_) v.parameter("bias", bias, {out_}, init);
  }
  template <class E, typed::Dim... A>
  auto operator()(const typed::Tensor<E, A...>& x, const At& at = At::current()) const {
    if constexpr (Kernel.number()) {
      constexpr typed::Inferred r = typed::infer_conv(typed::Tensor<E, A...>::static_shape, weight_shape(), Spatial,
                                                      typed::Window{Stride, Padding, Dilation, Groups});
      typed::require<r.error>();
      return typed::wrap_as<E, r.out>(untyped(Operand(x, at)));
    } else {
      return untyped(Operand(x, at));
    }
  }
  lc::Tensor operator()(const lc::Tensor& x, const At& at = At::current()) const { return untyped(Operand(x, at)); }

  lc::Tensor weight, bias;

 private:
  static constexpr typed::Shape weight_shape() {
    typed::Shape s;
    s.push(Out), s.push(In.number() ? typed::Dim(static_cast<long>(In.n / Groups)) : dyn);
    for (int i = 0; i < Spatial; ++i) s.push(Kernel);
    return s;
  }
  lc::Tensor untyped(Operand x) const {
    require_visited("Conv", weight);
    ConvOptions o = o_;
    if (padding_mode_ != PadMode::Constant) x.tensor = padded_for(x, Spatial, o, padding_mode_), o.padding = {0};
    return has_bias_ ? lc::conv(x, weight, bias, o) : lc::conv(x, weight, o);
  }

  std::int64_t in_, out_;
  std::vector<std::int64_t> kernel_;
  ConvOptions o_;
  bool has_bias_;
  PadMode padding_mode_;
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

// torch.nn.ConvTranspose1d to 3d: x [b, in, n...] -> [b, out, m...] with m = (n - 1) stride - 2 padding + dilation
// (kernel - 1) + output_padding + 1 and a weight [in, out / groups, kernel...]. Extents and options are given as for
// Conv.
template <int Spatial, typed::Dim In = dyn, typed::Dim Out = dyn, typed::Dim Kernel = dyn, int Stride = 1,
          int Padding = 0, int OutputPadding = 0, int Groups = 1, int Dilation = 1>
class ConvTranspose {
 public:
  ConvTranspose(bool bias = true)
    requires(In.number() && Out.number() && Kernel.number())
      : ConvTranspose(In.n, Out.n, Kernel.n,
                      {.stride = {Stride},
                       .padding = {Padding},
                       .dilation = {Dilation},
                       .groups = Groups,
                       .output_padding = {OutputPadding}},
                      bias) {}
  ConvTranspose(std::int64_t in, std::int64_t out, std::int64_t kernel, ConvOptions o = {}, bool bias = true)
      : ConvTranspose(in, out, std::vector{extent_of<Kernel>(kernel)}, std::move(o), bias) {}
  ConvTranspose(std::int64_t in, std::int64_t out, std::vector<std::int64_t> kernel, ConvOptions o = {},
                bool bias = true)
      : in_(extent_of<In>(in)),
        out_(extent_of<Out>(out)),
        kernel_(kernel_of<Spatial>("ConvTranspose", std::move(kernel))),
        o_(std::move(o)),
        has_bias_(bias) {
    if (o_.groups < 1 || in_ % o_.groups != 0 || out_ % o_.groups != 0)
      throw Error("ConvTranspose",
                  str_cat(o_.groups, " groups do not divide ", in_, " channels in and ", out_, " out"));
  }
  void visit(Visitor& v) {
    Shape s{in_, out_ / o_.groups};
    s.insert(s.end(), kernel_.begin(), kernel_.end());
    const Init init = conv_init(out_ / o_.groups, kernel_);  // torch computes the fan from axis 1
    v.parameter("weight", weight, std::move(s), init);
    if (has_bias_) v.parameter("bias", bias, {out_}, init);
  }
  template <class E, typed::Dim... A>
  auto operator()(const typed::Tensor<E, A...>& x, const At& at = At::current()) const {
    if constexpr (Kernel.number()) {
      constexpr typed::Inferred r = inferred(typed::Tensor<E, A...>::static_shape);
      typed::require<r.error>();
      return typed::wrap_as<E, r.out>(untyped(Operand(x, at)));
    } else {
      return untyped(Operand(x, at));
    }
  }
  lc::Tensor operator()(const lc::Tensor& x, const At& at = At::current()) const { return untyped(Operand(x, at)); }

  lc::Tensor weight, bias;

 private:
  static constexpr typed::Inferred inferred(const typed::Shape& x) {
    typed::Inferred r{x, {}};
    if (x.rank != Spatial + 2 || typed::differ(x.d[1], In)) {
      r.error.add("conv_transpose: ")
          .add(x)
          .add(" is not [batch, ")
          .add(In)
          .add(", ")
          .add(std::int64_t{Spatial})
          .add(" spatial axes]");
      return r;
    }
    r.out.d[1] = Out;
    for (int i = 2; i < x.rank; ++i)
      r.out.d[i] = x.d[i].number() ? typed::Dim(static_cast<long>((x.d[i].n - 1) * Stride - 2 * Padding +
                                                                  Dilation * (Kernel.n - 1) + OutputPadding + 1))
                                   : dyn;
    for (int i = 2; i < x.rank; ++i)
      if (r.out.d[i].negative() || r.out.d[i] == typed::Dim(0)) {
        r.error =
            typed::Text("conv_transpose: a padding of ").add(std::int64_t{Padding}).add(" leaves nothing of ").add(x);
        r.out.d[i] = dyn;
      }
    return r;
  }
  lc::Tensor untyped(Operand x) const {
    require_visited("ConvTranspose", weight);
    return has_bias_ ? lc::conv_transpose(x, weight, bias, o_) : lc::conv_transpose(x, weight, o_);
  }

  std::int64_t in_, out_;
  std::vector<std::int64_t> kernel_;
  ConvOptions o_;
  bool has_bias_;
};
template <typed::Dim In = dyn, typed::Dim Out = dyn, typed::Dim Kernel = dyn, int Stride = 1, int Padding = 0,
          int OutputPadding = 0, int Groups = 1, int Dilation = 1>
using ConvTranspose1d = ConvTranspose<1, In, Out, Kernel, Stride, Padding, OutputPadding, Groups, Dilation>;
template <typed::Dim In = dyn, typed::Dim Out = dyn, typed::Dim Kernel = dyn, int Stride = 1, int Padding = 0,
          int OutputPadding = 0, int Groups = 1, int Dilation = 1>
using ConvTranspose2d = ConvTranspose<2, In, Out, Kernel, Stride, Padding, OutputPadding, Groups, Dilation>;
template <typed::Dim In = dyn, typed::Dim Out = dyn, typed::Dim Kernel = dyn, int Stride = 1, int Padding = 0,
          int OutputPadding = 0, int Groups = 1, int Dilation = 1>
using ConvTranspose3d = ConvTranspose<3, In, Out, Kernel, Stride, Padding, OutputPadding, Groups, Dilation>;

}  // namespace lc::nn
