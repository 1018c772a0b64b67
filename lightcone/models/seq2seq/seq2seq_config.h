// The hyperparameters of encoder-decoders: T5 (with mT5, UMT5 and Flan-T5), BART and its kin (mBART, Marian, PEGASUS,
// M2M100 and NLLB) and Whisper. They are one model with different choices.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lightcone/models/files/config_file.h"
#include "lightcone/models/files/weight_table.h"

namespace lc {

// How a model knows where a token stands: a table that the file holds, sines, or a bias of the attention by distance.
enum class PositionKind : std::uint8_t { Table, Sines, Distance };

// One of the two stacks of layers.
struct Seq2SeqStack {
  std::int64_t layers = 0, heads = 0;
  std::int64_t inner = 0;   // width between the two products of the feed-forward network
  std::int64_t length = 0;  // the longest input
  PositionKind positions = PositionKind::Table;
};

// Hyperparameters of one encoder-decoder.
struct Seq2SeqConfig {
  std::string type, architecture;
  std::int64_t vocab = 0, width = 0;
  std::int64_t head = 0;  // width of a head
  Seq2SeqStack encoder, decoder;
  bool has_decoder = true;     // false: only the encoder is there (T5EncoderModel)
  bool predicts_words = true;  // false: the model ends with the hidden states of its decoder

  bool norm_first = false;      // norms before attention and network, not after the sums
  bool rms_norm = false;        // norms by the root mean square, without a bias
  bool embedding_norm = false;  // a norm of the embeddings
  bool final_norm = false;      // a norm behind the last layer
  double eps = 1e-5;
  bool biases = true, key_bias = true;  // what the projections have, and those of the keys
  std::string activation = "gelu";
  bool gated = false;                          // activation(gate(x)) * up(x) in the network
  std::optional<double> attention_scale = {};  // unset: 1 / sqrt(head)
  double embedding_scale = 1, logits_scale = 1;

  std::int64_t first_position = 0;  // the row of a table, or the multiple of the angles, of the first token
  bool count_tokens = false;        // positions count the tokens that are not padding, which has none (M2M100)
  double sine_steps = 0;            // the wavelengths grow by 10000^(1 / sine_steps) from sine to sine
  std::int64_t buckets = 0;         // number of classes of distances
  std::int64_t most_distance = 0;   // from which on distances are in the last bucket
  bool bias_each_layer = false;     // every layer has a table of biases (UMT5), not only the first

  bool tied = true;               // the head is the table of tokens; complete() finds out
  bool own_target_table = false;  // the decoder has a table of tokens of its own (some of Marian's)
  bool logits_bias = false;
  std::int64_t mels = 0;  // Whisper: the input is a log-mel spectrogram of so many bands, and not ids

  int start = 0, padding = 0;  // ids of tokens: the first that the decoder is given, and padding
  std::vector<int> ends = {};  // the ids that end a text

  bool hears() const { return mels > 0; }
  bool knows_distances() const { return buckets > 0; }
  static bool knows(std::string_view model_type);  // true for the values of model_type that from() reads
  // Reads config.json. Throws Error that names a key which is missing, wrong, not supported or not known.
  static Seq2SeqConfig from(const ConfigFile& c);
  // Looks at the weights, which say what config.json does not: a head of its own, a bias of the logits, a table of
  // positions. Throws Error for more layers than there are weights.
  void complete(const Weights& w, const ConfigFile& c);
};

// The names of the weights in Hugging Face's checkpoints, and what may stand before them.
std::vector<WeightName> seq2seq_weight_names(const Seq2SeqConfig& c);
std::span<const std::string_view> seq2seq_prefixes();

}  // namespace lc
