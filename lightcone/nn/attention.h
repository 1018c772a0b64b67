// torch.nn.MultiheadAttention with batch_first=True (A. Vaswani et al., "Attention is all you need", 2017).
#pragma once

#include "lightcone/nn/module.h"

namespace lc::nn {

// Options of MultiheadAttention. `dropout`, `bias`, `kdim` and `vdim` are those of torch.
struct AttentionLayerOptions {
  double dropout = 0;  // probability of dropping an attention weight
  bool bias = true;
  bool causal = false;    // in every call each position attends to itself and to earlier positions only
  std::int64_t kdim = 0;  // width of the keys; 0: the layer's width
  std::int64_t vdim = 0;  // width of the values; 0: the layer's width
  int kv_heads = 0;       // heads of keys and values, a divisor of `heads` (grouped-query attention); 0: `heads`
};

// Masks as in torch: true in a bool mask excludes a key, and a floating mask is added to the scores. If all keys of a
// query are excluded, its output is NaN.
struct AttentionMasks {
  lc::Tensor key_padding_mask = {};  // [batch, keys]
  lc::Tensor attn_mask = {};         // [queries, keys] or [batch * heads, queries, keys]
  bool causal = false;               // as attn_mask=generate_square_subsequent_mask(n) in torch
};

// Keys and values of the positions so far, in states of a graph: any decoder appends those of new positions and attends
// to all. The states have the shape [..., kv_heads, capacity, head], and are initially 0. In f16 and bf16 a position
// is rounded. In i8 it is integers from -127 to 127 times one scale per head and position, and the states of the
// scales, f32 [..., kv_heads, capacity, 1], are called as the others with ".scale" behind.
class KeyValueCache {
 public:
  // Undefined: it may only be assigned to.
  KeyValueCache() = default;
  // Adds the states `keys` and `values` to a graph. `past`, the number of positions in the cache, is an extent that is
  // bound before each run: Dim::symbol("past", 0, capacity - 1). `value_shape` is the shape of the values if it is
  // another one. Throws Error unless `stored` is F32, F16, BF16 or I8.
  KeyValueCache(Graph& g, const std::string& keys, const std::string& values, const Shape& shape, const Dim& past,
                DType stored = DType::F32, const std::optional<Shape>& value_shape = {});

  // Keys or values of all positions so far: [..., kv_heads, past + n, head], f32.
  struct All {
    lc::Tensor keys, values;
  };
  // Appends keys and values [..., kv_heads, n, head] of the positions past, past + 1, ...; the run assigns the states.
  // past + n must not exceed the capacity. Throws Error if they do not fit the states. Call it once for each graph.
  All append(const lc::Tensor& keys, const lc::Tensor& values) const;
  const Dim& past() const { return past_; }

 private:
  struct State {
    lc::Tensor numbers, scale;  // a scale in i8 only
  };
  State state(Graph& g, const std::string& name, const Shape& shape, DType stored) const;
  lc::Tensor append(const State& to, const lc::Tensor& now) const;
  lc::Tensor store(const lc::Tensor& state, const lc::Tensor& now) const;

  State keys_, values_;
  Dim past_;
};

// Parameters: in_proj_weight [3 width, width], in_proj_bias, out_proj.weight and out_proj.bias. If kdim or vdim is not
// the layer's width, q_proj_weight [width, width], k_proj_weight [width, kdim] and v_proj_weight [width, vdim] replace
// in_proj_weight. With kv_heads, keys and values have kv_heads * (width / heads) rows each. Weights are initialised by
// xavier_uniform, except out_proj.weight, which is initialised as in Linear; biases begin at 0. Sequences are
// [batch, length, width] or [length, width].
class MultiheadAttention {
 public:
  // Throws Error if `heads` does not divide `width`, or kv_heads does not divide `heads`.
  MultiheadAttention(std::int64_t width, int heads, const AttentionLayerOptions& o = {});
  void visit(Visitor& v);
  // Self-attention: x [b, n, width] -> [b, n, width].
  template <class X, class Mode>
    requires(is_mode<Mode>)
  X operator()(const X& x, Mode& mode, const At& at = At::current()) const {
    return (*this)(x, x, x, AttentionMasks(), mode, at);
  }
  // Self-attention with masks.
  template <class X, class Mode>
    requires(is_mode<Mode>)
  X operator()(const X& x, const AttentionMasks& masks, Mode& mode, const At& at = At::current()) const {
    return (*this)(x, x, x, masks, mode, at);
  }
  // Cross-attention: query [b, n, width], key [b, m, kdim] and value [b, m, vdim] -> [b, n, width].
  template <class X, class Mode>
    requires(is_mode<Mode>)
  X operator()(const X& query, const lc::Tensor& key, const lc::Tensor& value, Mode& mode,
               const At& at = At::current()) const {
    return (*this)(query, key, value, AttentionMasks(), mode, at);
  }
  // Cross-attention with masks.
  template <class X, class Mode>
    requires(is_mode<Mode>)
  X operator()(const X& query, const lc::Tensor& key, const lc::Tensor& value, const AttentionMasks& masks, Mode& mode,
               const At& at = At::current()) const {
    return as_typed(query, attend(Operand(query, at), key, value, masks, dropout_rng(mode, o_.dropout)));
  }
  // Computes all of the above. `random` draws the dropout masks; it is null in inference and if nothing is dropped.
  lc::Tensor attend(Operand query, const lc::Tensor& key, const lc::Tensor& value, const AttentionMasks& masks,
                    Random* random) const;
  // Also returns the attention weights [b, n, m], averaged over the heads (torch: need_weights=True). Operands have a
  // batch axis; nothing is dropped.
  struct Weighted {
    lc::Tensor output, weights;
  };
  Weighted with_weights(const lc::Tensor& query, const lc::Tensor& key, const lc::Tensor& value,
                        const AttentionMasks& masks = {}, const At& at = At::current()) const;

  // Makes a cache of this layer's shape in the states "NAME.keys" and "NAME.values" of a graph.
  KeyValueCache cache(Graph& g, const std::string& name, const Dim& batch, std::int64_t capacity, const Dim& past,
                      DType stored = DType::F32) const;
  // Causal self-attention of the positions past, past + 1, ...: x [b, n, width] -> [b, n, width]. They attend to
  // themselves and to the positions in the cache, and the run adds their keys and values to the cache. past + n must
  // not exceed the capacity.
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
