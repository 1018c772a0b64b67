// The names of weights in Hugging Face's checkpoints of encoder-decoders.
#include "lightcone/models/seq2seq/seq2seq_config.h"

namespace lc {
namespace {

constexpr WeightName kBart[] = {
    {"shared", "tokens"},
    {"encoder.embed_tokens", "tokens"},
    {"encoder.version", ""},
    {"decoder.version", ""},
    {"encoder.embed_positions.weights", ""},  // sines of M2M100
    {"decoder.embed_positions.weights", ""},
    {"encoder.embed_positions._float_tensor", ""},
    {"decoder.embed_positions._float_tensor", ""},
    {"encoder.embed_positions", "encoder.positions"},
    {"decoder.embed_positions", "decoder.positions"},
    {"encoder.conv1", "encoder.conv1"},
    {"encoder.conv2", "encoder.conv2"},
    {"encoder.layernorm_embedding", "encoder.embedding_norm"},
    {"decoder.layernorm_embedding", "decoder.embedding_norm"},
    {"encoder.layer_norm", "encoder.norm"},
    {"decoder.layer_norm", "decoder.norm"},
    {"encoder.layers.#.self_attn.q_proj", "encoder.layers.#.self.query"},
    {"encoder.layers.#.self_attn.k_proj", "encoder.layers.#.self.key"},
    {"encoder.layers.#.self_attn.v_proj", "encoder.layers.#.self.value"},
    {"encoder.layers.#.self_attn.out_proj", "encoder.layers.#.self.output"},
    {"encoder.layers.#.self_attn_layer_norm", "encoder.layers.#.self_norm"},
    {"encoder.layers.#.fc1", "encoder.layers.#.up"},
    {"encoder.layers.#.fc2", "encoder.layers.#.down"},
    {"encoder.layers.#.final_layer_norm", "encoder.layers.#.network_norm"},
    {"decoder.layers.#.self_attn.q_proj", "decoder.layers.#.self.query"},
    {"decoder.layers.#.self_attn.k_proj", "decoder.layers.#.self.key"},
    {"decoder.layers.#.self_attn.v_proj", "decoder.layers.#.self.value"},
    {"decoder.layers.#.self_attn.out_proj", "decoder.layers.#.self.output"},
    {"decoder.layers.#.self_attn_layer_norm", "decoder.layers.#.self_norm"},
    {"decoder.layers.#.encoder_attn.q_proj", "decoder.layers.#.cross.query"},
    {"decoder.layers.#.encoder_attn.k_proj", "decoder.layers.#.cross.key"},
    {"decoder.layers.#.encoder_attn.v_proj", "decoder.layers.#.cross.value"},
    {"decoder.layers.#.encoder_attn.out_proj", "decoder.layers.#.cross.output"},
    {"decoder.layers.#.encoder_attn_layer_norm", "decoder.layers.#.cross_norm"},
    {"decoder.layers.#.fc1", "decoder.layers.#.up"},
    {"decoder.layers.#.fc2", "decoder.layers.#.down"},
    {"decoder.layers.#.final_layer_norm", "decoder.layers.#.network_norm"},
    {"final_logits_bias", "logits_bias"},
};
constexpr WeightName kT5[] = {
    {"shared", "tokens"},
    {"encoder.embed_tokens", "tokens"},
    {"encoder.final_layer_norm", "encoder.norm"},
    {"decoder.final_layer_norm", "decoder.norm"},
    {"decoder.block.0.layer.1.EncDecAttention.relative_attention_bias",
     ""},  // files of 2019 have it, and nobody reads it
    {"encoder.block.#.layer.0.SelfAttention.q", "encoder.layers.#.self.query"},
    {"encoder.block.#.layer.0.SelfAttention.k", "encoder.layers.#.self.key"},
    {"encoder.block.#.layer.0.SelfAttention.v", "encoder.layers.#.self.value"},
    {"encoder.block.#.layer.0.SelfAttention.o", "encoder.layers.#.self.output"},
    {"encoder.block.#.layer.0.SelfAttention.relative_attention_bias", "encoder.layers.#.distance"},
    {"encoder.block.#.layer.0.layer_norm", "encoder.layers.#.self_norm"},
    {"encoder.block.#.layer.1.DenseReluDense.wi", "encoder.layers.#.up"},
    {"encoder.block.#.layer.1.DenseReluDense.wi_0", "encoder.layers.#.gate"},
    {"encoder.block.#.layer.1.DenseReluDense.wi_1", "encoder.layers.#.up"},
    {"encoder.block.#.layer.1.DenseReluDense.wo", "encoder.layers.#.down"},
    {"encoder.block.#.layer.1.layer_norm", "encoder.layers.#.network_norm"},
    {"decoder.block.#.layer.0.SelfAttention.q", "decoder.layers.#.self.query"},
    {"decoder.block.#.layer.0.SelfAttention.k", "decoder.layers.#.self.key"},
    {"decoder.block.#.layer.0.SelfAttention.v", "decoder.layers.#.self.value"},
    {"decoder.block.#.layer.0.SelfAttention.o", "decoder.layers.#.self.output"},
    {"decoder.block.#.layer.0.SelfAttention.relative_attention_bias", "decoder.layers.#.distance"},
    {"decoder.block.#.layer.0.layer_norm", "decoder.layers.#.self_norm"},
    {"decoder.block.#.layer.1.EncDecAttention.q", "decoder.layers.#.cross.query"},
    {"decoder.block.#.layer.1.EncDecAttention.k", "decoder.layers.#.cross.key"},
    {"decoder.block.#.layer.1.EncDecAttention.v", "decoder.layers.#.cross.value"},
    {"decoder.block.#.layer.1.EncDecAttention.o", "decoder.layers.#.cross.output"},
    {"decoder.block.#.layer.1.layer_norm", "decoder.layers.#.cross_norm"},
    {"decoder.block.#.layer.2.DenseReluDense.wi", "decoder.layers.#.up"},
    {"decoder.block.#.layer.2.DenseReluDense.wi_0", "decoder.layers.#.gate"},
    {"decoder.block.#.layer.2.DenseReluDense.wi_1", "decoder.layers.#.up"},
    {"decoder.block.#.layer.2.DenseReluDense.wo", "decoder.layers.#.down"},
    {"decoder.block.#.layer.2.layer_norm", "decoder.layers.#.network_norm"},
};
constexpr std::string_view kPrefixes[] = {"model."};

}  // namespace

std::vector<WeightName> seq2seq_weight_names(const Seq2SeqConfig& c) {
  std::vector<WeightName> names;
  if (c.knows_distances()) names.assign(std::begin(kT5), std::end(kT5));
  else names.assign(std::begin(kBart), std::end(kBart));
  names.push_back({"decoder.embed_tokens", c.own_target_table ? "decoder.tokens" : "tokens"});
  const std::string_view head = !c.tied ? "head" : c.own_target_table ? "decoder.tokens" : "tokens";
  for (const std::string_view theirs : {"lm_head", "proj_out"})
    names.push_back({.theirs = theirs, .ours = head, .optional = !c.tied && !c.predicts_words});
  return names;
}
std::span<const std::string_view> seq2seq_prefixes() { return kPrefixes; }

}  // namespace lc
