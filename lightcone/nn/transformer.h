// The Transformer (A. Vaswani et al., "Attention is all you need", 2017): torch.nn.TransformerEncoderLayer,
// TransformerDecoderLayer, TransformerEncoder, TransformerDecoder and Transformer, with batch_first=True. Sequences are
// [batch, length, d_model].
#pragma once

#include <optional>

#include "lightcone/nn/attention.h"
#include "lightcone/nn/linear.h"
#include "lightcone/nn/norm.h"

namespace lc::nn {

// Activation function of the feed-forward layers.
enum class Activation : std::uint8_t { ReLU, GELU };
// Options of an encoder or decoder layer, as in torch.
struct TransformerLayerOptions {
  std::int64_t dim_feedforward = 2048;
  double dropout = 0.1;
  Activation activation = Activation::ReLU;
  double layer_norm_eps = 1e-5;
  bool norm_first = false;  // pre-norm: normalise before attention and feed-forward layers, not after the sums
  bool bias = true;
  bool causal = false;  // self-attention is causal in every call
};

// The feed-forward block: dropout(linear2(dropout(activation(linear1(x))))).
struct FeedForward {
  FeedForward(std::int64_t d_model, const TransformerLayerOptions& o);
  lc::Tensor run(const lc::Tensor& x, Random* random) const;
  Linear<> linear1, linear2;
  Activation activation;
  double dropout;
};

// torch.nn.TransformerEncoderLayer: self-attention and a feed-forward block, each with a residual connection.
class TransformerEncoderLayer {
 public:
  TransformerEncoderLayer(std::int64_t d_model, int nhead, const TransformerLayerOptions& o = {});
  void visit(Visitor& v);
  template <class X, class Mode>
    requires(is_mode<Mode>)
  X operator()(const X& src, Mode& mode, const At& at = At::current()) const {
    return (*this)(src, AttentionMasks(), mode, at);
  }
  // With masks (torch: src_mask, src_key_padding_mask).
  template <class X, class Mode>
    requires(is_mode<Mode>)
  X operator()(const X& src, const AttentionMasks& masks, Mode& mode, const At& at = At::current()) const {
    return as_typed(src, run(Operand(src, at), masks, dropout_rng(mode, o_.dropout)));
  }
  // The untyped form. `random` draws the dropout masks; it is null in inference and if nothing is dropped.
  lc::Tensor run(Operand src, const AttentionMasks& masks, Random* random) const;
  double dropout() const { return o_.dropout; }  // probability of dropping an element

 private:
  TransformerLayerOptions o_;
  MultiheadAttention self_attn_;
  FeedForward feed_forward_;
  LayerNorm<> norm1_, norm2_;
};

// Masks of a decoder layer: `self` for self-attention (torch: tgt_mask, tgt_key_padding_mask) and `memory` for
// cross-attention (memory_mask, memory_key_padding_mask).
struct DecoderMasks {
  AttentionMasks self = {}, memory = {};
};
// torch.nn.TransformerDecoderLayer: self-attention, cross-attention to the encoder's output and a feed-forward block,
// each with a residual connection.
class TransformerDecoderLayer {
 public:
  TransformerDecoderLayer(std::int64_t d_model, int nhead, const TransformerLayerOptions& o = {});
  void visit(Visitor& v);
  // tgt [b, n, d_model], memory [b, m, d_model] -> [b, n, d_model].
  template <class X, class Mode>
    requires(is_mode<Mode>)
  X operator()(const X& tgt, const lc::Tensor& memory, Mode& mode, const At& at = At::current()) const {
    return (*this)(tgt, memory, DecoderMasks(), mode, at);
  }
  template <class X, class Mode>
    requires(is_mode<Mode>)
  X operator()(const X& tgt, const lc::Tensor& memory, const DecoderMasks& masks, Mode& mode,
               const At& at = At::current()) const {
    return as_typed(tgt, run(Operand(tgt, at), memory, masks, dropout_rng(mode, o_.dropout)));
  }
  // The untyped form. `random` draws the dropout masks; it is null in inference and if nothing is dropped.
  lc::Tensor run(Operand tgt, const lc::Tensor& memory, const DecoderMasks& masks, Random* random) const;
  double dropout() const { return o_.dropout; }  // probability of dropping an element

 private:
  TransformerLayerOptions o_;
  MultiheadAttention self_attn_, multihead_attn_;
  FeedForward feed_forward_;
  LayerNorm<> norm1_, norm2_, norm3_;
};

// torch.nn.TransformerEncoder: copies of a layer in sequence, named layers.0, layers.1, ..., and an optional final
// normalisation `norm`.
class TransformerEncoder {
 public:
  TransformerEncoder(const TransformerEncoderLayer& layer, int num_layers, std::optional<LayerNorm<>> norm = {})
      : layers_(static_cast<std::size_t>(num_layers), layer), norm_(std::move(norm)), dropout_(layer.dropout()) {}
  void visit(Visitor& v);
  template <class X, class Mode>
    requires(is_mode<Mode>)
  X operator()(const X& src, Mode& mode, const At& at = At::current()) const {
    return (*this)(src, AttentionMasks(), mode, at);
  }
  template <class X, class Mode>
    requires(is_mode<Mode>)
  X operator()(const X& src, const AttentionMasks& masks, Mode& mode, const At& at = At::current()) const {
    return as_typed(src, run(Operand(src, at), masks, dropout_rng(mode, dropout_)));
  }
  // The untyped form. `random` draws the dropout masks; it is null in inference and if nothing is dropped.
  lc::Tensor run(Operand src, const AttentionMasks& masks, Random* random) const;

 private:
  std::vector<TransformerEncoderLayer> layers_;
  std::optional<LayerNorm<>> norm_;
  double dropout_;
};
// torch.nn.TransformerDecoder: copies of a layer in sequence, named as in TransformerEncoder.
class TransformerDecoder {
 public:
  TransformerDecoder(const TransformerDecoderLayer& layer, int num_layers, std::optional<LayerNorm<>> norm = {})
      : layers_(static_cast<std::size_t>(num_layers), layer), norm_(std::move(norm)), dropout_(layer.dropout()) {}
  void visit(Visitor& v);
  template <class X, class Mode>
    requires(is_mode<Mode>)
  X operator()(const X& tgt, const lc::Tensor& memory, Mode& mode, const At& at = At::current()) const {
    return (*this)(tgt, memory, DecoderMasks(), mode, at);
  }
  template <class X, class Mode>
    requires(is_mode<Mode>)
  X operator()(const X& tgt, const lc::Tensor& memory, const DecoderMasks& masks, Mode& mode,
               const At& at = At::current()) const {
    return as_typed(tgt, run(Operand(tgt, at), memory, masks, dropout_rng(mode, dropout_)));
  }
  // The untyped form. `random` draws the dropout masks; it is null in inference and if nothing is dropped.
  lc::Tensor run(Operand tgt, const lc::Tensor& memory, const DecoderMasks& masks, Random* random) const;

 private:
  std::vector<TransformerDecoderLayer> layers_;
  std::optional<LayerNorm<>> norm_;
  double dropout_;
};

// Options of Transformer.
struct TransformerOptions {
  int num_encoder_layers = 6, num_decoder_layers = 6;
  TransformerLayerOptions layer = {};  // for encoder and decoder
};
// Masks of Transformer: of the source, of the target, and of the encoder's output.
struct TransformerMasks {
  AttentionMasks src = {}, tgt = {}, memory = {};
};
// torch.nn.Transformer: encoder and decoder, each with a final normalisation. As in torch, weights of two or more axes
// are initialised by xavier_uniform.
class Transformer {
 public:
  explicit Transformer(std::int64_t d_model = 512, int nhead = 8, const TransformerOptions& o = {});
  void visit(Visitor& v);
  // src [b, m, d_model], tgt [b, n, d_model] -> [b, n, d_model].
  template <class X, class Mode>
    requires(is_mode<Mode>)
  X operator()(const lc::Tensor& src, const X& tgt, Mode& mode, const At& at = At::current()) const {
    return (*this)(src, tgt, TransformerMasks(), mode, at);
  }
  template <class X, class Mode>
    requires(is_mode<Mode>)
  X operator()(const lc::Tensor& src, const X& tgt, const TransformerMasks& masks, Mode& mode,
               const At& at = At::current()) const {
    Random* const random = dropout_rng(mode, dropout_);
    const lc::Tensor memory = encoder_.run(Operand(src, at), masks.src, random);
    return as_typed(tgt, decoder_.run(Operand(tgt, at), memory, {masks.tgt, masks.memory}, random));
  }

 private:
  TransformerEncoder encoder_;
  TransformerDecoder decoder_;
  double dropout_;
};

}  // namespace lc::nn
