// The layers of encoder-decoders: attention to the own positions, of a decoder attention to the encoder's, and a
// feed-forward network, each with a residual sum (A. Vaswani et al., "Attention is all you need", 2017).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "lightcone/models/seq2seq/seq2seq_config.h"
#include "lightcone/nn/linear.h"
#include "lightcone/nn/norm.h"

namespace lc {

// Which programs a model is in: all of it in one; or the encoder with the keys and values that the decoder's layers
// make of its result, and the rest of the decoder in another.
enum class Seq2SeqPart : std::uint8_t { Whole, Encoder, Decoder };

// What attention looks at, [batch, heads, length, head] each.
struct KeysValues {
  Tensor keys, values;
};

// A norm of the kind that the model has.
class Seq2SeqNorm {
 public:
  explicit Seq2SeqNorm(const Seq2SeqConfig& c);
  void visit(nn::Visitor& v);
  Tensor operator()(const Tensor& x) const { return by_square_ ? square_(x) : layer_(x); }

 private:
  bool by_square_;
  nn::LayerNorm<> layer_;
  nn::RMSNorm<> square_;
};

// Attention whose keys and values are computed apart from its queries, so that they can be kept.
class Seq2SeqAttention {
 public:
  Seq2SeqAttention(const Seq2SeqConfig& c, std::int64_t heads, bool has_queries, bool has_keys);
  void visit(nn::Visitor& v);
  // x [batch, length, width] -> [batch, heads, length, head] each.
  KeysValues keys_values(const Tensor& x) const { return {heads(key_(x)), heads(value_(x))}; }
  // x [batch, n, width] -> the same shape. A mask broadcasts to [batch, heads, n, length]: bool (true: attend) or added
  // to the scores. The keys may have a batch of 1.
  Tensor operator()(const Tensor& x, const KeysValues& to, const Tensor& mask) const;
  // The weights with which each query attends, [batch, heads, n, length].
  Tensor weights(const Tensor& x, const Tensor& keys) const;

 private:
  Tensor heads(const Tensor& x) const;
  double scale() const;

  std::int64_t heads_, head_;
  std::optional<double> scale_;
  bool has_queries_, has_keys_;
  nn::Linear<> query_, key_, value_, output_;
};

// One layer of an encoder or a decoder.
class Seq2SeqLayer {
 public:
  // `cross`: it attends to an encoder. `distance`: it has a table of biases by distance.
  Seq2SeqLayer(const Seq2SeqConfig& c, const Seq2SeqStack& stack, Seq2SeqPart part, bool cross, bool distance);
  void visit(nn::Visitor& v);

  // What a layer looks at.
  struct Sight {
    std::function<KeysValues(const KeysValues& now)> remember = {};  // adds to what came before; unset: nothing did
    Tensor mask = {};                                                // for its own positions
    KeysValues cross = {};
    Tensor cross_mask = {};
    Tensor* cross_weights = nullptr;  // receives the weights with which it attends to `cross`
  };
  // x [batch, length, width] -> the same shape.
  Tensor operator()(const Tensor& x, const Sight& sight) const;
  KeysValues cross(const Tensor& hidden) const { return cross_.keys_values(hidden); }
  const Tensor& distance_table() const { return distance_.weight; }

 private:
  Tensor network(const Tensor& x) const;
  template <class F>
  Tensor with_sum(const Tensor& x, const Seq2SeqNorm& norm, const F& f) const {
    return norm_first_ ? x + f(norm(x)) : norm(x + f(x));
  }

  bool norm_first_, has_cross_, has_distance_, gated_, only_cross_keys_;
  std::string activation_;
  Seq2SeqAttention self_, cross_;
  Seq2SeqNorm self_norm_, cross_norm_, network_norm_;
  nn::Embedding<> distance_;
  nn::Linear<> gate_, up_, down_;
};

}  // namespace lc
