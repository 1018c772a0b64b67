// Attention and the encoder of the Transformer (A. Vaswani et al., "Attention is all you need", 2017): names, parameters and
// defaults are those of torch.nn with batch_first=True. Sequences are x [batch, length, width].
#pragma once

#include "lightcone/nn/activation.h"
#include "lightcone/nn/linear.h"
#include "lightcone/nn/norm.h"

namespace lc::nn {

struct AttentionLayerOptions {
  double dropout = 0;  // of the weights of attention
  bool bias = true;
  bool causal = false;  // a place looks at itself and at what is before it
};

// torch.nn.MultiheadAttention: parameters in_proj_weight [3 width, width], in_proj_bias, out_proj.weight, out_proj.bias. The
// first values of in_proj_weight are xavier_uniform, biases begin at 0.
class MultiheadAttention {
 public:
  // Error unless `heads` divides `width`.
  MultiheadAttention(std::int64_t width, int heads, const AttentionLayerOptions& o = {});
  void visit(Visitor& v);
  // Self-attention: x [b, n, width] -> [b, n, width].
  template <class X, class Mode>
    requires(is_mode<Mode>)
  X operator()(const X& x, Mode& mode, const At& at = At::current()) const {
    return (*this)(x, x, x, mode, at);
  }
  // query [b, n, width], key and value [b, m, width] -> [b, n, width].
  template <class X, class K, class Mode>
    requires(is_mode<Mode>)
  X operator()(const X& query, const K& key, const K& value, Mode& mode, const At& at = At::current()) const {
    Random* random = nullptr;
    if constexpr (is_training<Mode>) {
      if (o_.dropout > 0) random = &mode.random();
    }
    return as_typed(query, attend(Operand(query, at), key, value, random));
  }

  lc::Tensor in_proj_weight, in_proj_bias;

 private:
  lc::Tensor attend(Operand query, const lc::Tensor& key, const lc::Tensor& value, Random* random) const;
  std::int64_t width_;
  int heads_;
  AttentionLayerOptions o_;
  Linear<> out_proj_;
};

enum class Activation : std::uint8_t { ReLU, GELU };
struct EncoderLayerOptions {
  std::int64_t feedforward = 2048;
  double dropout = 0.1;
  Activation activation = Activation::ReLU;
  double eps = 1e-5;
  bool norm_first = false;
  bool causal = false;
};
// torch.nn.TransformerEncoderLayer: self-attention and two linear layers, each beside a shortcut. norm_first normalises
// before them, otherwise the sums behind them are normalised.
class TransformerEncoderLayer {
 public:
  TransformerEncoderLayer(std::int64_t width, int heads, const EncoderLayerOptions& o = {});
  void visit(Visitor& v);
  template <class X, class Mode>
    requires(is_mode<Mode>)
  X operator()(const X& x, Mode& mode, const At& at = At::current()) const {
    const lc::Tensor in = x;
    if (o_.norm_first) {
      const lc::Tensor h = in + attention(norm1_(in, at), mode, at);
      return as_typed(x, h + feed_forward(norm2_(h, at), mode, at));
    }
    const lc::Tensor h = norm1_(in + attention(in, mode, at), at);
    return as_typed(x, norm2_(h + feed_forward(h, mode, at), at));
  }

 private:
  template <class Mode>
  lc::Tensor attention(const lc::Tensor& x, Mode& mode, const At& at) const {
    return dropout_(self_attn_(x, mode, at), mode);
  }
  template <class Mode>
  lc::Tensor feed_forward(const lc::Tensor& x, Mode& mode, const At& at) const {
    const lc::Tensor h = linear1_(x, at);
    const lc::Tensor active = o_.activation == Activation::ReLU ? lc::relu(Operand(h, at)) : lc::gelu(Operand(h, at));
    return dropout_(linear2_(dropout_(active, mode), at), mode);
  }
  EncoderLayerOptions o_;
  MultiheadAttention self_attn_;
  Linear<> linear1_, linear2_;
  LayerNorm<> norm1_, norm2_;
  Dropout dropout_;
};

// torch.nn.TransformerEncoder: such layers one behind the other, named layers.0, layers.1, ...
class TransformerEncoder {
 public:
  TransformerEncoder(const TransformerEncoderLayer& layer, int layers)
      : layers_(static_cast<std::size_t>(layers), layer) {}
  void visit(Visitor& v);
  template <class X, class Mode>
    requires(is_mode<Mode>)
  X operator()(X x, Mode& mode, const At& at = At::current()) const {
    for (const TransformerEncoderLayer& layer : layers_) x = layer(x, mode, at);
    return x;
  }

 private:
  std::vector<TransformerEncoderLayer> layers_;
};

}  // namespace lc::nn
