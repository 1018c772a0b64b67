// A decoder-only language model as a module: table of tokens, layers, head.
//
// Parameters: tokens.weight, positions.weight, embedding_norm, embedding_projection, layers.N (LanguageLayer),
// norm, output_projection, head.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lightcone/models/language/language_layer.h"
#include "lightcone/nn/linear.h"

namespace lc {

// The model of a configuration, for whole texts and for decoding.
class LanguageNet {
 public:
  explicit LanguageNet(LanguageConfig c);
  void visit(nn::Visitor& v);
  // Whole texts: ids and mask i64 [batch, length] -> the outputs by name (load_language.h). `replaced` changes the rows
  // of the table of tokens [batch, length, width] before the rest reads them: where pictures stand, their vectors.
  using Replace = std::function<Tensor(const Tensor& rows)>;
  std::map<std::string, Tensor> operator()(const Tensor& ids, const Tensor& mask, const Replace& replaced = {}) const;
  // Continues one text: ids i64 [rows] at the positions behind states.past -> logits [rows, vocab], or with
  // `last_alone` [vocab] of the last row.
  Tensor decode(const Tensor& ids, const DecoderStates& states, bool last_alone) const;
  const LanguageConfig& config() const { return c_; }

 private:
  Tensor embed(const Tensor& ids, const Positions& at, const Replace& replaced) const;
  Tensor hidden(const Tensor& ids, const Positions& at, const DecoderStates& states, const Replace& replaced) const;
  Tensor finished(const Tensor& x) const;  // what the head reads
  Tensor words(const Tensor& hidden) const;
  Tensor last_token(const Tensor& hidden, const Tensor& ids, const Tensor& mask) const;
  std::int64_t inner_width() const { return c_.embedding_width > 0 ? c_.embedding_width : c_.width; }
  std::int64_t outputs() const;

  LanguageConfig c_;
  nn::Embedding<> tokens_, positions_;
  Projection embedding_projection_, output_projection_;
  Norm embedding_norm_, norm_;
  std::vector<LanguageLayer> layers_;
  Projection head_;
  Tensor head_bias_;
};

}  // namespace lc
