// torch.nn.MultiheadAttention with batch_first=True (A. Vaswani et al., "Attention is all you need", 2017).
#pragma once

#include "lightcone/nn/module.h"

namespace lc::nn {

struct AttentionLayerOptions {
  double dropout = 0;  // of the weights of attention
  bool bias = true;
  bool causal = false;    // a place looks at itself and at what is before it, in each call
  std::int64_t kdim = 0;  // width of keys and
  std::int64_t vdim = 0;  // of values; 0: the layer's
  int kv_heads = 0;       // heads of keys and values, which divide `heads`: grouped queries; 0: as many
};

// Who looks where, as in torch: true in a bool mask means "not there", a floating mask is added to the scores. A place
// that may look nowhere gives NaN.
struct AttentionMasks {
  lc::Tensor key_padding_mask = {};  // [batch, keys]
  lc::Tensor attn_mask = {};         // [queries, keys] or [batch * heads, queries, keys]
  bool causal = false;               // torch: attn_mask=generate_square_subsequent_mask(n)
};

// Keys and values of the places so far, states of a graph that decode() writes.
struct KeyValueCache {
  lc::Tensor keys, values;  // [batch, kv_heads, capacity, width / heads]
  Dim past;                 // how many places there are
};

// Parameters in_proj_weight [3 width, width], in_proj_bias, out_proj.weight, out_proj.bias; where kdim or vdim is
// another width q_proj_weight [width, width], k_proj_weight [width, kdim], v_proj_weight [width, vdim] in place of the
// first. With kv_heads the rows of keys and values are kv_heads * (width / heads). Weights begin xavier_uniform, that
// of out_proj as a Linear's, biases at 0. Sequences are [batch, length, width], or [length, width].
class MultiheadAttention {
 public:
  // Error unless `heads` divides `width` and kv_heads divides `heads`.
  MultiheadAttention(std::int64_t width, int heads, const AttentionLayerOptions& o = {});
  void visit(Visitor& v);
  // Self-attention: x [b, n, width] -> [b, n, width].
  template <class X, class Mode>
    requires(is_mode<Mode>)
  X operator()(const X& x, Mode& mode, const At& at = At::current()) const {
    return (*this)(x, x, x, AttentionMasks(), mode, at);
  }
  template <class X, class Mode>
    requires(is_mode<Mode>)
  X operator()(const X& x, const AttentionMasks& masks, Mode& mode, const At& at = At::current()) const {
    return (*this)(x, x, x, masks, mode, at);
  }
  // query [b, n, width], key [b, m, kdim] and value [b, m, vdim] -> [b, n, width].
  template <class X, class Mode>
    requires(is_mode<Mode>)
  X operator()(const X& query, const lc::Tensor& key, const lc::Tensor& value, Mode& mode,
               const At& at = At::current()) const {
    return (*this)(query, key, value, AttentionMasks(), mode, at);
  }
  template <class X, class Mode>
    requires(is_mode<Mode>)
  X operator()(const X& query, const lc::Tensor& key, const lc::Tensor& value, const AttentionMasks& masks, Mode& mode,
               const At& at = At::current()) const {
    return as_typed(query, attend(Operand(query, at), key, value, masks, dropout_rng(mode, o_.dropout)));
  }
  // What the layers above are made of. `random` is null while the model does not train or nothing is dropped.
  lc::Tensor attend(Operand query, const lc::Tensor& key, const lc::Tensor& value, const AttentionMasks& masks,
                    Random* random) const;
  // Beside the output the weights, [b, n, m], which are the mean of those of all heads (torch: need_weights=True).
  struct Weighted {
    lc::Tensor output, weights;
  };
  Weighted with_weights(const lc::Tensor& query, const lc::Tensor& key, const lc::Tensor& value,
                        const AttentionMasks& masks = {}, const At& at = At::current()) const;

  // States "NAME.keys" and "NAME.values" of a graph, which begin at 0. `past` is an extent that is told before each
  // run, Dim::symbol("past", 0, capacity - 1).
  KeyValueCache cache(Graph& g, const std::string& name, const Dim& batch, std::int64_t capacity,
                      const Dim& past) const;
  // Causal self-attention of the places past, past + 1, ...: x [b, n, width] -> [b, n, width]. It looks at the places
  // before them in the cache, and after each run the cache holds these, too. past + n is at most the capacity.
  lc::Tensor decode(const lc::Tensor& x, const KeyValueCache& cache, const At& at = At::current()) const;

  lc::Tensor in_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight, in_proj_bias, out_proj_weight, out_proj_bias;

 private:
  enum Part { kQuery, kKey, kValue };
  std::int64_t input_of(Part p) const {
    return p == kKey && o_.kdim ? o_.kdim : p == kValue && o_.vdim ? o_.vdim : width_;
  }
  std::int64_t rows_of(Part p) const { return (p == kQuery ? heads_ : kv_heads()) * head(); }
  std::int64_t head() const { return width_ / heads_; }
  int kv_heads() const { return o_.kv_heads > 0 ? o_.kv_heads : heads_; }
  bool one_width() const { return input_of(kKey) == width_ && input_of(kValue) == width_; }
  lc::Tensor projected(Part p, const lc::Tensor& x) const;  // [b, heads, length, head]
  lc::Tensor mask(const AttentionMasks& m, const Dim& batch, const Dim& queries, const Dim& keys, Graph& g) const;
  lc::Tensor output(const lc::Tensor& y) const;
  void check_shapes(const lc::Tensor& query, const lc::Tensor& key, const lc::Tensor& value) const;

  std::int64_t width_;
  int heads_;
  AttentionLayerOptions o_;
};

}  // namespace lc::nn
