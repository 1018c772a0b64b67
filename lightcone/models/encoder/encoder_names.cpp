#include "lightcone/models/encoder/encoder_names.h"

#include <array>
#include <initializer_list>

#include "lightcone/io/printable.h"

namespace lc {
namespace {

using Names = std::span<const WeightName>;

// What BERT, RoBERTa and ELECTRA share.
constexpr WeightName kBertBody[] = {
    {"embeddings.position_ids", ""},
    {"embeddings.token_type_ids", ""},
    {"embeddings.word_embeddings", "tokens"},
    {"embeddings.position_embeddings", "positions"},
    {"embeddings.token_type_embeddings", "types"},
    {"embeddings.LayerNorm", "embedding_norm"},
    {"embeddings_project", "projection"},
    {"encoder.layer.#.attention.self.query", "layers.#.query"},
    {"encoder.layer.#.attention.self.key", "layers.#.key"},
    {"encoder.layer.#.attention.self.value", "layers.#.value"},
    {"encoder.layer.#.attention.output.dense", "layers.#.output"},
    {"encoder.layer.#.attention.output.LayerNorm", "layers.#.attention_norm"},
    {"encoder.layer.#.intermediate.dense", "layers.#.up"},
    {"encoder.layer.#.output.dense", "layers.#.down"},
    {"encoder.layer.#.output.LayerNorm", "layers.#.feed_forward_norm"},
    {"pooler.dense", "pooler", true},
};
constexpr WeightName kWordHead[] = {
    {"cls.predictions.transform.dense", "head.dense", true},
    {"cls.predictions.transform.LayerNorm", "head.norm", true},
    {"cls.predictions.transform.layer_norm", "head.norm", true},
    {"cls.predictions.bias", "head.out.bias", true, true},
    {"cls.predictions.decoder", "head.out", true},
    {"cls.seq_relationship", "next_sentence", true},
};
constexpr WeightName kClassifier[] = {
    {"qa_outputs", "head.out", true},
    {"classifier", "head.out", true},
};
constexpr WeightName kRobertaHeads[] = {
    {"lm_head.dense", "head.dense", true},
    {"lm_head.layer_norm", "head.norm", true},
    {"lm_head.bias", "head.out.bias", true, true},
    {"lm_head.decoder", "head.out", true},
};
constexpr WeightName kDenseClassifier[] = {
    {"classifier.dense", "head.dense", true},
    {"classifier.out_proj", "head.out", true},
};
constexpr WeightName kDistilBert[] = {
    {"embeddings.position_ids", ""},
    {"embeddings.word_embeddings", "tokens"},
    {"embeddings.position_embeddings", "positions"},
    {"embeddings.LayerNorm", "embedding_norm"},
    {"transformer.layer.#.attention.q_lin", "layers.#.query"},
    {"transformer.layer.#.attention.k_lin", "layers.#.key"},
    {"transformer.layer.#.attention.v_lin", "layers.#.value"},
    {"transformer.layer.#.attention.out_lin", "layers.#.output"},
    {"transformer.layer.#.sa_layer_norm", "layers.#.attention_norm"},
    {"transformer.layer.#.ffn.lin1", "layers.#.up"},
    {"transformer.layer.#.ffn.lin2", "layers.#.down"},
    {"transformer.layer.#.output_layer_norm", "layers.#.feed_forward_norm"},
    {"vocab_transform", "head.dense", true},
    {"vocab_layer_norm", "head.norm", true},
    {"vocab_projector", "head.out", true},
    {"pre_classifier", "head.dense", true},
};
constexpr WeightName kMPNet[] = {
    {"embeddings.position_ids", ""},
    {"embeddings.word_embeddings", "tokens"},
    {"embeddings.position_embeddings", "positions"},
    {"embeddings.LayerNorm", "embedding_norm"},
    {"encoder.relative_attention_bias", "distances"},
    {"encoder.layer.#.attention.attn.q", "layers.#.query"},
    {"encoder.layer.#.attention.attn.k", "layers.#.key"},
    {"encoder.layer.#.attention.attn.v", "layers.#.value"},
    {"encoder.layer.#.attention.attn.o", "layers.#.output"},
    {"encoder.layer.#.attention.LayerNorm", "layers.#.attention_norm"},
    {"encoder.layer.#.intermediate.dense", "layers.#.up"},
    {"encoder.layer.#.output.dense", "layers.#.down"},
    {"encoder.layer.#.output.LayerNorm", "layers.#.feed_forward_norm"},
    {"pooler.dense", "pooler", true},
};
constexpr WeightName kElectraHeads[] = {
    {"discriminator_predictions.dense", "head.dense", true},
    {"discriminator_predictions.dense_prediction", "head.out", true},
    {"generator_predictions.dense", "head.dense", true},
    {"generator_predictions.LayerNorm", "head.norm", true},
    {"generator_lm_head", "head.out", true},
    {"sequence_summary.summary", "head.dense", true},
};
constexpr WeightName kAlbert[] = {
    {"embeddings.position_ids", ""},
    {"embeddings.token_type_ids", ""},
    {"embeddings.word_embeddings", "tokens"},
    {"embeddings.position_embeddings", "positions"},
    {"embeddings.token_type_embeddings", "types"},
    {"embeddings.LayerNorm", "embedding_norm"},
    {"encoder.embedding_hidden_mapping_in", "projection"},
    {"encoder.albert_layer_groups.#.albert_layers.#.attention.query", "layers.#.#.query"},
    {"encoder.albert_layer_groups.#.albert_layers.#.attention.key", "layers.#.#.key"},
    {"encoder.albert_layer_groups.#.albert_layers.#.attention.value", "layers.#.#.value"},
    {"encoder.albert_layer_groups.#.albert_layers.#.attention.dense", "layers.#.#.output"},
    {"encoder.albert_layer_groups.#.albert_layers.#.attention.LayerNorm", "layers.#.#.attention_norm"},
    {"encoder.albert_layer_groups.#.albert_layers.#.ffn", "layers.#.#.up"},
    {"encoder.albert_layer_groups.#.albert_layers.#.ffn_output", "layers.#.#.down"},
    {"encoder.albert_layer_groups.#.albert_layers.#.full_layer_layer_norm", "layers.#.#.feed_forward_norm"},
    {"pooler", "pooler", true},
    {"predictions.dense", "head.dense", true},
    {"predictions.LayerNorm", "head.norm", true},
    {"predictions.bias", "head.out.bias", true, true},
    {"predictions.decoder", "head.out", true},
    {"sop_classifier.classifier", "next_sentence", true},
};
constexpr WeightName kDeberta[] = {
    {"embeddings.position_ids", ""},
    {"embeddings.word_embeddings", "tokens"},
    {"embeddings.position_embeddings", "positions", true},
    {"embeddings.token_type_embeddings", "types"},
    {"embeddings.embed_proj", "projection"},
    {"embeddings.LayerNorm", "embedding_norm"},
    {"encoder.rel_embeddings", "relative"},
    {"encoder.LayerNorm", "relative_norm"},
    {"encoder.layer.#.attention.self.query_proj", "layers.#.query"},
    {"encoder.layer.#.attention.self.key_proj", "layers.#.key"},
    {"encoder.layer.#.attention.self.value_proj", "layers.#.value"},
    {"encoder.layer.#.attention.self.pos_query_proj", "layers.#.distance_query"},
    {"encoder.layer.#.attention.self.pos_key_proj", "layers.#.distance_key"},
    {"encoder.layer.#.attention.output.dense", "layers.#.output"},
    {"encoder.layer.#.attention.output.LayerNorm", "layers.#.attention_norm"},
    {"encoder.layer.#.intermediate.dense", "layers.#.up"},
    {"encoder.layer.#.output.dense", "layers.#.down"},
    {"encoder.layer.#.output.LayerNorm", "layers.#.feed_forward_norm"},
    {"pooler.dense", "head.dense", true},
    {"lm_predictions.lm_head.dense", "head.dense", true},
    {"lm_predictions.lm_head.LayerNorm", "head.norm", true},
    {"lm_predictions.lm_head.bias", "head.out.bias", true, true},
    {"mask_predictions", "head.replaced", true},  // a part of its training that transformers leaves out
};
constexpr WeightName kModernBert[] = {
    {"embeddings.tok_embeddings", "tokens"},
    {"embeddings.norm", "embedding_norm"},
    {"layers.#.attn_norm", "layers.#.attention_norm"},
    {"layers.#.attn.Wqkv", "layers.#.query_key_value"},
    {"layers.#.attn.Wo", "layers.#.output"},
    {"layers.#.mlp_norm", "layers.#.feed_forward_norm"},
    {"layers.#.mlp.Wi", "layers.#.up"},
    {"layers.#.mlp.Wo", "layers.#.down"},
    {"final_norm", "final_norm"},
    {"head.dense", "head.dense", true},
    {"head.norm", "head.norm", true},
    {"decoder.bias", "head.out.bias", true, true},
    {"decoder", "head.out", true},
};
// First transformers' names, then those of the model's authors, which the published files have.
constexpr WeightName kNomicBert[] = {
    {"embeddings.word_embeddings", "tokens"},
    {"embeddings.token_type_embeddings", "types"},
    {"embeddings.LayerNorm", "embedding_norm"},
    {"layers.#.self_attn.q_proj", "layers.#.query"},
    {"layers.#.self_attn.k_proj", "layers.#.key"},
    {"layers.#.self_attn.v_proj", "layers.#.value"},
    {"layers.#.self_attn.o_proj", "layers.#.output"},
    {"layers.#.post_attention_layernorm", "layers.#.attention_norm"},
    {"layers.#.mlp.up_proj", "layers.#.up"},
    {"layers.#.mlp.gate_proj", "layers.#.gate"},
    {"layers.#.mlp.down_proj", "layers.#.down"},
    {"layers.#.post_mlp_layernorm", "layers.#.feed_forward_norm"},
    {"emb_ln", "embedding_norm"},
    {"encoder.layers.#.attn.Wqkv", "layers.#.query_key_value"},
    {"encoder.layers.#.attn.out_proj", "layers.#.output"},
    {"encoder.layers.#.norm1", "layers.#.attention_norm"},
    {"encoder.layers.#.mlp.fc11", "layers.#.up"},
    {"encoder.layers.#.mlp.fc12", "layers.#.gate"},
    {"encoder.layers.#.mlp.fc2", "layers.#.down"},
    {"encoder.layers.#.norm2", "layers.#.feed_forward_norm"},
    {"pooler.dense", "pooler", true},
};
constexpr WeightName kGgufEncoder[] = {
    {"token_embd", "tokens"},
    {"position_embd", "positions"},
    {"token_types", "types"},
    {"token_embd_norm", "embedding_norm"},
    {"blk.#.attn_q", "layers.#.query"},
    {"blk.#.attn_k", "layers.#.key"},
    {"blk.#.attn_v", "layers.#.value"},
    {"blk.#.attn_output", "layers.#.output"},
    {"blk.#.attn_output_norm", "layers.#.attention_norm"},
    {"blk.#.ffn_up", "layers.#.up"},
    {"blk.#.ffn_down", "layers.#.down"},
    {"blk.#.layer_output_norm", "layers.#.feed_forward_norm"},
};

std::vector<WeightName> joined(std::initializer_list<Names> parts) {
  std::vector<WeightName> all;
  for (const Names& p : parts) all.insert(all.end(), p.begin(), p.end());
  return all;
}

// A layout, in the order of EncoderKind: what stands before the names of a classifier's body, what its file calls the
// layers of its head, and the projections of queries and values.
struct Layout {
  std::string_view prefix, dense, norm, out;
  std::vector<std::string> lora;
  std::vector<WeightName> names;
};
const Layout& layout_of(EncoderKind kind) {
  static const std::array<Layout, 9> all{{
      {"bert.", "", "", "classifier", {"query", "value"}, joined({kBertBody, kWordHead, kClassifier})},
      {"roberta.",
       "classifier.dense",
       "",
       "classifier.out_proj",
       {"query", "value"},
       joined({kBertBody, kRobertaHeads, kDenseClassifier, kClassifier})},
      {"distilbert.", "pre_classifier", "", "classifier", {"q_lin", "v_lin"}, joined({kDistilBert, kClassifier})},
      {"mpnet.",
       "classifier.dense",
       "",
       "classifier.out_proj",
       {"q", "v"},
       joined({kMPNet, kRobertaHeads, kDenseClassifier, kClassifier})},
      {"electra.",
       "classifier.dense",
       "",
       "classifier.out_proj",
       {"query", "value"},
       joined({kBertBody, kElectraHeads, kDenseClassifier, kClassifier})},
      {"albert.", "", "", "classifier", {"query", "value"}, joined({kAlbert, kClassifier})},
      {"deberta.",
       "pooler.dense",
       "",
       "classifier",
       {"query_proj", "value_proj"},
       joined({kDeberta, kWordHead, kClassifier})},
      {"model.", "head.dense", "head.norm", "classifier", {"Wqkv"}, joined({kModernBert, kClassifier})},
      {"nomic_bert.", "", "", "classifier", {"q_proj", "v_proj"}, joined({kNomicBert, kWordHead, kClassifier})},
  }};
  return all[static_cast<std::size_t>(kind)];
}

constexpr std::string_view kPrefixes[] = {"bert.",   "roberta.", "distilbert.", "mpnet.",      "electra.",
                                          "albert.", "deberta.", "model.",      "nomic_bert.", "0.auto_model."};

}  // namespace

std::span<const WeightName> encoder_weight_names(EncoderKind kind) { return layout_of(kind).names; }
std::span<const WeightName> encoder_gguf_names() { return kGgufEncoder; }
std::span<const std::string_view> encoder_prefixes() { return kPrefixes; }
std::vector<std::string> default_lora_targets(EncoderKind kind) { return layout_of(kind).lora; }

std::string classifier_name(EncoderKind kind, std::string_view ours) {
  const Layout& l = layout_of(kind);
  for (const auto& [part, name] :
       {std::pair(std::string_view("head.dense"), l.dense), {"head.norm", l.norm}, {"head.out", l.out}})
    if (const auto theirs = rewritten(ours, part, name)) return *theirs;
  for (const WeightName& row : l.names)
    if (const auto name = row.ours.empty() ? std::nullopt : rewritten(ours, row.ours, row.theirs))
      return str_cat(l.prefix, *name);
  throw Error("encoder", str_cat("no parameter is called ", in_quotes(ours)));
}

}  // namespace lc
