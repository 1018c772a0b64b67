// Encoders of text as a module and as a loaded model: BERT's family, and what came of it up to ModernBERT.
//
// Inputs, all i64 [batch, length]: "input_ids"; "attention_mask", 1 for a token and 0 for padding; and
// "token_type_ids" if the model has more than one kind of them. An input whose mask is 0 everywhere gives NaN.
// Outputs: "hidden" [batch, length, width]; "pooled" [batch, width], the tanh layer on the first token, if the file has
// it; "logits", of a classifier [batch, labels], for each token [batch, length, labels], for answers [batch, length, 2]
// (begin and end), of a masked language model [batch, length, vocab], of multiple choice [batch], a score for each
// text, of ELECTRA's discriminator [batch, length], above 0 for a token that was replaced; and "next_sentence" [batch,
// 2]. Symbols: "batch" and "length".
//
// J. Devlin et al., "BERT", 2018; Y. Liu et al., "RoBERTa", 2019; A. Conneau et al., "XLM-R", 2019; V. Sanh et al.,
// "DistilBERT", 2019; Z. Lan et al., "ALBERT", 2019; K. Clark et al., "ELECTRA", 2020; K. Song et al., "MPNet", 2020;
// P. He et al., "DeBERTa", 2020, and "DeBERTaV3", 2021; B. Warner et al., "ModernBERT", 2024; Z. Nussbaum et al.,
// "Nomic Embed", 2024.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lightcone/models/encoder/encoder_config.h"
#include "lightcone/models/encoder/encoder_layer.h"
#include "lightcone/models/files/loaded_model.h"

namespace lc {

// An encoder with its head as a module.
class Encoder {
 public:
  explicit Encoder(EncoderConfig c);
  void visit(nn::Visitor& v);
  // The three parts of visit(), for models that train them in different ways.
  void visit_body(nn::Visitor& v);
  void visit_pooler(nn::Visitor& v);
  void visit_head(nn::Visitor& v);
  // Ids, mask and kinds are i64 [batch, length]; the kinds are not read unless the model has more than one. Returns the
  // outputs by name, as above.
  std::map<std::string, Tensor> operator()(const Tensor& ids, const Tensor& mask, const Tensor& types = {},
                                           const nn::At& at = nn::At::current()) const {
    return run(ids, mask, types, nullptr, at);
  }
  // The same in training, with the dropout of the configuration; without `random` there is none.
  std::map<std::string, Tensor> run(const Tensor& ids, const Tensor& mask, const Tensor& types, Random* random,
                                    const nn::At& at = nn::At::current()) const;
  const EncoderConfig& config() const { return c_; }

 private:
  Tensor embed(const Tensor& ids, const Tensor& mask, const Tensor& types, Random* random) const;
  static Tensor drop(const Tensor& x, Random* random, double p) { return random && p > 0 ? random->dropout(x, p) : x; }
  Tensor positions(const Tensor& ids) const;
  std::vector<EncoderAttention> attentions(const Tensor& mask, Random* random) const;
  const EncoderLayer& layer(std::size_t k) const;
  Tensor pool(const Tensor& hidden, const Tensor& pooled, const Tensor& mask) const;
  Tensor logits(const Tensor& hidden, const Tensor& pooled, const Tensor& mask, Random* random) const;
  bool words_by_table() const { return c_.predicts_words() && c_.tied; }
  std::int64_t head_width() const { return c_.predicts_words() ? c_.embedding : c_.width; }
  std::int64_t outputs() const;

  EncoderConfig c_;
  nn::Embedding<> tokens_, positions_, types_;
  Norm embedding_norm_;
  nn::Linear<> projection_;
  nn::Embedding<> distances_, relative_;  // tables of distances: of MPNet's bias, and of disentangled attention
  Norm relative_norm_, final_norm_;
  std::vector<EncoderLayer> layers_;
  nn::Linear<> pooler_, next_sentence_;
  nn::Linear<> dense_, out_;  // they belong to the head
  Norm norm_;
  Tensor out_bias_;  // its bias, of a masked language model whose head is the table of tokens
};

// Makes the loaded model of an opened checkpoint. Throws Error for the reasons of load_model().
LoadedModel load_encoder(const Weights& w, const ConfigFile& config, const LoadModelOptions& o);

}  // namespace lc
