// LanguageConfig: what a decoder-only language model is made of, as switches that do not depend on each other. An
// architecture (models/language/architectures) sets them from its config.json; the layers read nothing else.
#pragma once

#include "lightcone/macros_off.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lightcone/models/blocks/norm.h"
#include "lightcone/models/blocks/positions/rope_config.h"

namespace lc {

// Where a layer normalises. Before: what attention and network read (GPT-2, Llama). Output: what they add (OLMo 2).
// Both (Gemma 2). Sum: the sums (OPT 350M).
enum class NormPlace : std::uint8_t { Before, Output, Both, Sum };
// How the file lays out queries, keys and values. Separate: three matrices. Joined: one, with all queries, then all
// keys, then all values. Grouped: one, with the queries, the key and the value of one head of keys after another.
enum class QueryKeyValue : std::uint8_t { Separate, Joined, Grouped };
// What of queries and keys is normalised: each head with one weight, or the rows of all heads before they are split.
enum class HeadNorm : std::uint8_t { None, Head, Whole };
// What stands on top.
enum class LanguageHead : std::uint8_t { None, Words, Sequence, Tokens, Answer };

// Latent attention of DeepSeek V2: keys and values of a position are one short vector, of which each head makes its
// own.
struct LatentAttention {
  std::int64_t query_rank = 0;  // width of the vector that queries are made of; 0: they are made of the row itself
  std::int64_t rank = 0;        // width of the vector for keys and values
  std::int64_t plain = 0;       // elements of a head that no position rotates
  std::int64_t rotated = 0;     // elements that RoPE rotates; their keys are shared by all heads
  std::int64_t value = 0;       // elements of a head of values
  bool apart = false;           // the matrices of keys and of values are tensors of their own, a matrix a head
};

// Attention of all layers.
struct LanguageAttention {
  std::int64_t heads = 0, kv_heads = 0, head = 0;  // kv_heads divide heads; head: elements of one
  QueryKeyValue layout = QueryKeyValue::Separate;
  bool query_bias = false, key_bias = false, value_bias = false, output_bias = false;
  HeadNorm norm = HeadNorm::None;
  NormOptions norm_options = {};
  double cap = 0;              // scores are cap tanh(score / cap); 0: as they are
  double clip = 0;             // queries, keys and values are limited to this magnitude; 0: they are not
  bool sinks = false;          // a learned score for each head that nothing is read for (GPT-OSS)
  bool alibi = false;          // scores sink with the distance, by a slope for each head
  double alibi_scale = 1;      // factor of the slopes
  bool alibi_rounded = false;  // slopes are rounded to bf16 (Falcon)
  std::optional<LatentAttention> latent = {};
};

// The network of a layer, and of an expert.
struct LanguageNetwork {
  std::int64_t inner = 0;
  std::string activation = "gelu";
  bool gated = false;   // down(activation(gate(x)) * up(x)), not down(activation(up(x)))
  bool joined = false;  // gate and up are one matrix: the rows of the gate, then those of up
  bool up_bias = false, down_bias = false;
};

// How a router scores experts. SoftmaxOfChosen is a softmax over the scores of the chosen ones alone.
enum class RouterKind : std::uint8_t { Softmax, SoftmaxOfChosen, Sigmoid };
// A network of which a router chooses parts for each token.
struct LanguageExperts {
  std::int64_t count = 0, chosen = 0;
  LanguageNetwork network = {};
  bool stacked = false;             // the file has one tensor [experts, out, in] for all experts, not one for each
  bool stacked_transposed = false;  // [experts, in, out]
  bool apart = false;               // stacked, and gate and up are tensors of their own
  bool mxfp4 = false;               // stacked as blocks of 4-bit floats and scales (GPT-OSS)
  bool alternating = false;         // rows of gate and up alternate in one tensor
  double limit = 0;                 // GPT-OSS: gate and up are limited to this magnitude, and up + 1 counts
  double gate_slope = 1;            // GPT-OSS: the gate is x sigmoid(slope x)
  RouterKind router = RouterKind::Softmax;
  bool normalized = false;                     // the weights of the chosen ones are divided by their sum
  bool router_bias = false;                    // added to the scores
  bool choice_bias = false;                    // added for the choice only (DeepSeek V3)
  double scale = 1;                            // factor of the weights
  std::int64_t groups = 1, chosen_groups = 1;  // experts of the best groups only
  std::int64_t group_best = 1;                 // so many of its best experts score a group
  std::int64_t shared = 0;                     // width of a network that every token runs; 0: there is none
  bool shared_gate = false;                    // a factor between 0 and 1 for it
};

// A selective state space in place of attention and network (Mamba).
struct StateSpace {
  std::int64_t inner = 0, state = 0;  // channels, and numbers that each of them keeps
  std::int64_t rank = 0;              // width of the vector that steps are made of
  std::int64_t kernel = 0;            // rows of the convolution
  bool conv_bias = false, bias = false;
  bool rates = false;  // the file has the rates of decay themselves, and not log(-rate)
  std::string activation = "silu";
  double inner_eps = 0;  // epsilon of norms without weights of what the recurrence is made of; 0: there are none
  // Mamba 2: heads of channels have one rate and step each, and groups of heads share what they read and give
  std::int64_t heads = 0, groups = 0;    // 0: Mamba
  double least_step = 0, most_step = 0;  // a most step of 0 is no limit
};

// RWKV 4 (B. Peng et al., 2023) in place of attention and network: each channel averages the values so far by weights
// that decay.
struct TimeMixing {
  std::int64_t inner = 0;    // channels of the average
  std::int64_t network = 0;  // width of the network
};

// One layer.
struct LanguageLayerKind {
  std::int64_t window = 0;               // positions visible to a position, itself included; 0: all before it
  std::int64_t chunk = 0;                // 0, or: only positions of the same chunk of this length
  std::optional<std::size_t> rope = {};  // which of LanguageConfig::ropes; unset: no rotation
  double scale = 0;                      // factor of the scores; 0: 1 / sqrt(elements of a head)
  bool experts = false;                  // routed experts in place of the network
  double added = 1, after = 1;           // factors of what attention and network add, and of the layer's result
};

// A language model.
struct LanguageConfig {
  std::string architecture = {};
  LanguageHead top = LanguageHead::Words;
  std::vector<std::string> labels = {};
  std::int64_t vocab = 0, width = 0;
  std::int64_t length = 0;           // the longest text
  std::int64_t positions = 0;        // rows of a table of positions; 0: there is none
  std::int64_t position_offset = 0;  // the first row that a position uses (OPT: 2)
  bool positions_by_mask = false;    // positions count the tokens that the mask shows
  std::int64_t embedding_width = 0;  // 0: width; otherwise projections lead to it and back (OPT 350M)
  double embedding_scale = 1;
  bool embedding_norm = false;  // BLOOM
  NormOptions norm = {};
  NormPlace place = NormPlace::Before;
  bool parallel = false;     // attention and network read the same row, and both are added to it
  bool shared_norm = false;  // a parallel layer has one norm for both
  bool final_norm = true;
  double residual_scale = 1;  // factor of what attention and network add
  bool transposed = false;    // matrices of layers are [in, out] (GPT-2)
  LanguageAttention attention = {};
  LanguageNetwork network = {};
  LanguageExperts experts = {};
  std::optional<StateSpace> state_space = {};  // it makes up every layer, without attention and network
  std::optional<TimeMixing> time_mixing = {};
  std::vector<RopeConfig> ropes = {};
  std::vector<LanguageLayerKind> layers = {};
  bool tied = true;  // the head is the table of tokens
  bool head_bias = false;
  double logits_scale = 1, logits_cap = 0;   // logits are cap tanh(scale logit / cap); no cap: 0
  std::optional<std::int64_t> padding = {};  // the id that fills up texts
  std::vector<int> ends = {};                // ids that end a text
  double final_eps = 0;                      // epsilon of the last norm; 0: that of the others

  bool recurrent() const { return state_space || time_mixing; }  // a state stands for all tokens so far
};

}  // namespace lc
#include "lightcone/macros_on.h"
