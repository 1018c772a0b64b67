// Attention of decoder-only language models, with every way that LanguageAttention knows.
//
// Parameters: query, key and value, or query_key_value; query_norm and key_norm; output; sinks [heads]. Of latent
// attention: query, or query_down, query_down_norm and query_up; latent_down, latent_norm, latent_up, or in place of it
// key_up [heads, rank, plain] and value_up [heads, value, rank]; output.
#pragma once

#include "lightcone/models/blocks/projection.h"
#include "lightcone/models/language/config/decoder_states.h"
#include "lightcone/models/language/positions.h"

namespace lc {

// Attention of one layer: x [..., rows, width] -> the same shape.
class AttentionLayer {
 public:
  AttentionLayer(const LanguageConfig& c, const LanguageLayerKind& kind);
  void visit(nn::Visitor& v);
  Tensor operator()(const Tensor& x, const Positions& at, const DecoderStates& states) const;

 private:
  struct Heads {
    Tensor q, k, v;  // [..., heads or kv_heads, rows, head]
  };
  Heads projected(const Tensor& x) const;
  Heads split(const Tensor& x) const;
  Tensor heads(const Tensor& x, std::int64_t count) const;
  std::int64_t rows() const;  // how many the joined matrix has
  Tensor joined(const Tensor& y) const;

  LanguageAttention a_;
  LanguageLayerKind kind_;
  std::optional<RopeConfig> rope_;
  Projection query_, key_, value_, query_key_value_, output_;
  Norm query_norm_, key_norm_;
  Tensor sinks_;
};

// Latent attention of one layer. A decoder keeps the short vectors and not what the heads make of them: its products
// with the matrices of keys and values are moved to the queries and to the results.
class LatentAttentionLayer {
 public:
  LatentAttentionLayer(const LanguageConfig& c, const LanguageLayerKind& kind);
  void visit(nn::Visitor& v);
  Tensor operator()(const Tensor& x, const Positions& at, const DecoderStates& states) const;

 private:
  Tensor expanded(const Tensor& plain, const Tensor& turned, const Tensor& latent, const Tensor& key,
                  const Positions& at) const;
  Tensor absorbed(const Tensor& plain, const Tensor& turned, const Tensor& latent, const Tensor& key,
                  const Positions& at, const DecoderStates& states) const;
  AttentionOptions options(const Positions& at) const;
  Tensor key_matrices() const;
  Tensor value_matrices() const;

  LatentAttention l_;
  std::int64_t heads_;
  LanguageLayerKind kind_;
  std::optional<RopeConfig> rope_;
  Projection query_, query_down_, query_up_, latent_down_, latent_up_, output_;
  Norm query_down_norm_, latent_norm_;
  Tensor key_up_, value_up_;
};

// Attention with all that a composite has no name for: q [..., heads, rows, head], k and v [..., kv_heads, positions,
// head] -> [..., heads, rows, head of v]. `sinks` is [heads] or undefined.
Tensor attend(const LanguageAttention& a, const LanguageLayerKind& kind, const Tensor& q, const Tensor& k,
              const Tensor& v, const Tensor& sinks, const Positions& at);

}  // namespace lc
