// The hyperparameters of encoders of text: BERT (with E5, BGE, MiniLM and others that are BERTs), RoBERTa, XLM-RoBERTa,
// CamemBERT, DistilBERT, MPNet, ELECTRA, ALBERT, DeBERTa v2 and v3, ModernBERT and Nomic BERT. They are switches that
// do not depend on each other; the layers read nothing else.
#pragma once

#include "lightcone/macros_off.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lightcone/models/blocks/positions/relative_bias.h"
#include "lightcone/models/blocks/positions/rope_config.h"
#include "lightcone/models/files/config_file.h"
#include "lightcone/models/files/weight_table.h"

namespace lc {

// The layouts of the family: what config.json and the weights are called.
enum class EncoderKind : std::uint8_t {
  Bert,
  Roberta,
  DistilBert,
  MPNet,
  Electra,
  Albert,
  Deberta,
  ModernBert,
  NomicBert
};
// What stands on top of an encoder. Choice: a score for each text, of which the best is the answer. Replaced: a score
// for each token, above 0 if it was replaced.
enum class EncoderHead : std::uint8_t {
  None,
  Sequence,
  Tokens,
  Answer,
  MaskedLM,
  PreTraining,
  NextSentence,
  Choice,
  Replaced
};
// What the layers of a head read: every token, the first, their mean, or the pooler's vector.
enum class EncoderPool : std::uint8_t { Each, First, Mean, Pooled };
// The network of a layer: down(activation(up(x))), or down(activation(g) u), where g and u are the halves of up(x), or
// gate(x) and up(x).
enum class EncoderGate : std::uint8_t { None, Joined, Separate };

// The layers of a head before its last one.
struct EncoderTop {
  EncoderPool pool = EncoderPool::Each;
  bool dense = false, dense_bias = true;
  bool norm = false;
  std::string activation = {};
  bool drop_first = false;  // there is dropout before the dense layer, too
};

// Probabilities of dropout in training, as config.json states them.
struct EncoderDropout {
  double hidden = 0, attention = 0;  // what embeddings and layers give, and attention weights
  double head = 0;                   // what a classifier's layers take
  bool attended = true;              // what attention adds is dropped with probability `hidden`, too
};

// Disentangled attention (P. He et al., "DeBERTa", 2020): queries also meet the vector of the distance to a key, and
// keys that of the distance to a query.
struct DisentangledAttention {
  std::int64_t span = 0;               // the table has 2 span distances
  std::int64_t buckets = 0;            // distances from half of it on are bucketed up to `most`; 0: none are
  std::int64_t most = 0;               // the longest distance
  bool normalized = false;             // the table is normalised before it is read
  bool shared = false;                 // the projections of queries and keys serve the table, too
  bool queries = false, keys = false;  // queries meet distances (c2p), and keys do (p2c)
};

// What differs between layers.
struct EncoderLayerKind {
  std::int64_t reach = 0;                // tokens visible on either side; 0: all
  std::optional<std::size_t> rope = {};  // which of EncoderConfig::ropes; unset: no rotation
};

// Hyperparameters of one encoder.
struct EncoderConfig {
  EncoderKind kind = EncoderKind::Bert;
  std::int64_t vocab = 0, width = 0, heads = 0, inner = 0;
  std::vector<EncoderLayerKind> layers = {};
  std::int64_t embedding = 0;         // width of the table of tokens
  bool projects = false;              // a layer leads from there to the width
  bool projects_before_norm = false;  // without a bias and before the norm of the embeddings (DeBERTa)
  std::int64_t positions = 0;         // rows of the table of positions; 0: there is none
  bool positions_by_padding = false;  // positions count the tokens that are not `padding`, and begin after it
  std::int64_t padding = 0;           // the id that pads
  std::int64_t longest = 0;           // the longest input
  std::int64_t types = 0;             // kinds of tokens (token_type_ids); 0: the model has no table of them
  bool hides_padding = false;         // embeddings of padding are zeros (DeBERTa)
  double eps = 1e-12;
  std::string activation = "gelu";
  bool norm_first = false;  // norms before attention and network and at the end, none before the first attention
  bool attention_bias = true, network_bias = true, norm_bias = true;
  bool joined = false;  // queries, keys and values are one matrix
  EncoderGate gate = EncoderGate::None;
  std::vector<RopeConfig> ropes = {};
  std::int64_t groups = 0, group_layers = 1;  // ALBERT: layers share the weights of so many groups; 0: none do
  std::optional<DistanceBuckets> distances = {};
  std::optional<DisentangledAttention> disentangled = {};
  EncoderHead head = EncoderHead::None;
  EncoderTop top = {};
  std::vector<std::string> labels = {};
  bool tied = true;       // the head of a masked language model is the table of tokens
  bool word_bias = true;  // it has a bias
  bool pooler = false;    // a layer with tanh on the first token
  // what config.json says of the layers of a classifier
  std::string head_activation = {};
  bool head_bias = true, mean_pool = false;
  EncoderDropout dropout = {};
  std::string architecture = {};

  bool needs_pooler() const {
    return top.pool == EncoderPool::Pooled || head == EncoderHead::PreTraining || head == EncoderHead::NextSentence;
  }
  bool predicts_words() const { return head == EncoderHead::MaskedLM || head == EncoderHead::PreTraining; }
  // Reads config.json. Throws Error that names a key which is missing, wrong, not supported or not known.
  static EncoderConfig from(const ConfigFile& c);
  // Reads what only the weights say: whether there is a pooler, and how queries, keys and values are stored. Throws
  // Error for more layers than weights.
  void fit(const ConfigFile& c, const Weights& w, const WeightTable& table);
  // Gives the encoder, whatever its head was, the head of a classifier of texts: transformers' class for sequences.
  void become_classifier(const ConfigFile& c, std::vector<std::string> names);
  // Chooses the layers of the head.
  void choose_top();
};

}  // namespace lc
#include "lightcone/macros_on.h"
