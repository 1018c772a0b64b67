// The hyperparameters of encoders of text of BERT's family: BERT (with E5, BGE, MiniLM and others that are BERTs),
// RoBERTa, XLM-RoBERTa, CamemBERT and DistilBERT.
#pragma once

#include "lightcone/macros_off.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lightcone/models/files/config_file.h"
#include "lightcone/models/files/weight_table.h"

namespace lc {

// The three layouts of the family.
enum class EncoderKind : std::uint8_t { Bert, Roberta, DistilBert };
// What stands on top of an encoder.
enum class EncoderHead : std::uint8_t { None, Sequence, Tokens, Answer, MaskedLM, PreTraining, NextSentence };

// Probabilities of dropout in training, as config.json states them.
struct EncoderDropout {
  double hidden = 0, attention = 0;  // what embeddings and layers give, and attention weights
  double head = 0;                   // what a classifier's layers take
};

// Hyperparameters of one encoder.
struct EncoderConfig {
  EncoderKind kind = EncoderKind::Bert;
  std::int64_t vocab = 0, width = 0, layers = 0, heads = 0, inner = 0;
  std::int64_t positions = 0;  // rows of the table of positions
  std::int64_t types = 0;      // kinds of tokens (token_type_ids); 0: the model has no table of them
  std::int64_t padding =
      0;  // RoBERTa: the id that pads; positions count the tokens that are not it, and begin after it
  double eps = 1e-12;
  std::string activation = "gelu";
  EncoderHead head = EncoderHead::None;
  std::vector<std::string> labels = {};
  bool tied = true;     // the head of a masked language model is the table of tokens
  bool pooler = false;  // a layer with tanh on the first token
  EncoderDropout dropout = {};
  std::string architecture = {};

  // The longest input.
  std::int64_t length() const { return kind == EncoderKind::Roberta ? positions - padding - 1 : positions; }
  // Reads config.json. Throws Error that names a key which is missing, wrong, not supported or not known.
  static EncoderConfig from(const ConfigFile& c);
  // Gives the encoder, whatever its head was, the head of a classifier of texts: transformers' class for sequences.
  void become_classifier(const ConfigFile& c, std::vector<std::string> names);
};

// The names of the weights in Hugging Face's checkpoints, and what may stand before them.
std::span<const WeightName> encoder_weight_names(EncoderKind kind);
std::span<const std::string_view> encoder_prefixes();
// The names of the weights in GGUF files of architecture "bert".
std::span<const WeightName> encoder_gguf_names();
// The name that transformers' classifier of sequences gives a parameter of Encoder.
std::string classifier_name(EncoderKind kind, std::string_view ours);

}  // namespace lc
#include "lightcone/macros_on.h"
