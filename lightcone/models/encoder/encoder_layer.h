// A layer of an encoder of texts: attention and a network with norms and residual sums, as EncoderConfig switches them.
//
// Parameters: query, key and value or query_key_value, output, attention_norm, up, down, feed_forward_norm, perhaps
// gate; of disentangled attention that does not share its projections distance_query and distance_key.
#pragma once

#include "lightcone/models/blocks/norm.h"
#include "lightcone/models/blocks/positions/rotation.h"
#include "lightcone/models/blocks/transformer_block.h"
#include "lightcone/models/encoder/encoder_config.h"
#include "lightcone/nn/linear.h"

namespace lc {

// What the layers of a graph attend by.
struct EncoderAttention {
  Tensor mask;             // broadcasts to [batch, heads, length, length]; bool (true: attend), or added to the scores
  RopeAngles angles = {};  // undefined: nothing is rotated
  Tensor table = {};       // the distances of disentangled attention, f32 [2 span, width]; undefined: there is none
  Tensor distances = {};   // i64 [length, length], from query to key, each a row of `table`; and from key to query
  Tensor distances_back = {};
  double dropout = 0;
  Random* random = nullptr;
};

// The distances of DeBERTa as rows of its table, i64 [length, length]: those of queries from keys, or, `back`, of keys
// from queries.
Tensor disentangled_distances(Graph& g, const DisentangledAttention& d, const Dim& length, bool back);

// One layer: x [batch, length, width] -> the same shape.
class EncoderLayer {
 public:
  // The first layer of an encoder whose norms come first has none before its attention.
  EncoderLayer(const EncoderConfig& c, bool first);
  void visit(nn::Visitor& v);
  Tensor operator()(const Tensor& x, const EncoderAttention& a, const ResidualDropout& dropout,
                    const nn::At& at = nn::At::current()) const;

 private:
  Tensor attend(const Tensor& x, const EncoderAttention& a) const;
  Tensor feed_forward(const Tensor& x) const;
  Tensor heads(const Tensor& x) const;  // [batch, length, width] -> [batch, heads, length, head]
  Tensor by_distance(const Tensor& q, const Tensor& k, const EncoderAttention& a) const;
  double scale() const;

  std::int64_t width_, heads_, inner_;
  std::string activation_;
  EncoderGate gating_;
  bool norm_first_, first_norm_, joined_;
  std::optional<DisentangledAttention> disentangled_;
  nn::Linear<> query_key_value_, query_, key_, value_, output_, distance_query_, distance_key_;
  nn::Linear<> up_, gate_, down_;
  Norm attention_norm_, feed_forward_norm_;
};

}  // namespace lc
