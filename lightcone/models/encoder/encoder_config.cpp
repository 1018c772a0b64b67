#include "lightcone/models/encoder/encoder_config.h"

#include <span>
#include <vector>

#include "lightcone/io/printable.h"
#include "lightcone/models/blocks/activation.h"
#include "lightcone/runtime/names.h"

namespace lc {
namespace {

struct Family {
  std::string_view type, class_name;
  EncoderKind kind;
};
constexpr Family kFamilies[] = {{"bert", "Bert", EncoderKind::Bert},
                                {"roberta", "Roberta", EncoderKind::Roberta},
                                {"xlm-roberta", "XLMRoberta", EncoderKind::Roberta},
                                {"camembert", "Camembert", EncoderKind::Roberta},
                                {"distilbert", "DistilBert", EncoderKind::DistilBert}};

struct Task {
  std::string_view suffix;
  EncoderHead head;
};
constexpr Task kTasks[] = {{"Model", EncoderHead::None},
                           {"ForSequenceClassification", EncoderHead::Sequence},
                           {"ForTokenClassification", EncoderHead::Tokens},
                           {"ForQuestionAnswering", EncoderHead::Answer},
                           {"ForMaskedLM", EncoderHead::MaskedLM},
                           {"ForPreTraining", EncoderHead::PreTraining},
                           {"ForNextSentencePrediction", EncoderHead::NextSentence}};

const Family& family_of(const ConfigFile& c) {
  const std::string type = c.text("model_type");
  for (const Family& f : kFamilies)
    if (f.type == type) return f;
  c.fail("model_type ", in_quotes(type), " is no encoder of BERT's family");
}

// The head by the class in `architectures`; the bare encoder if the file names none.
EncoderHead head_of(const ConfigFile& c, const Family& f, std::string& architecture) {
  const std::vector<std::string> all = c.texts("architectures");
  architecture = all.empty() ? str_cat(f.class_name, "Model") : all.front();
  std::vector<std::string> known;
  for (const Task& t : kTasks) {
    const bool bert_alone = t.head == EncoderHead::PreTraining || t.head == EncoderHead::NextSentence;
    if (bert_alone && f.kind != EncoderKind::Bert) continue;
    known.push_back(str_cat(f.class_name, t.suffix));
    if (architecture == known.back()) return t.head;
  }
  c.fail("the architecture ", in_quotes(architecture), " is not known for model_type ", in_quotes(f.type),
         "; the nearest is ", nearest_name(architecture, {known.begin(), known.end()}));
}

// A probability of dropout.
double share(const ConfigFile& c, std::string_view key, double otherwise) {
  const double p = c.number(key, otherwise);
  if (!(p >= 0 && p < 1)) c.fail(key, " is ", p, ", and not from 0 to below 1");
  return p;
}

void read_bert(const ConfigFile& c, EncoderConfig& e) {
  const bool roberta = e.kind == EncoderKind::Roberta;
  e.width = c.size("hidden_size"), e.layers = c.size("num_hidden_layers"), e.heads = c.size("num_attention_heads");
  e.inner = c.size("intermediate_size"), e.types = c.size("type_vocab_size", 2);
  e.eps = c.number("layer_norm_eps", 1e-12);
  e.activation = c.text("hidden_act", "gelu");
  e.dropout = {share(c, "hidden_dropout_prob", 0.1), share(c, "attention_probs_dropout_prob", 0.1), 0};
  e.dropout.head = share(c, "classifier_dropout", e.dropout.hidden);
  if (roberta) e.padding = c.id("pad_token_id", 1);
  c.only("position_embedding_type", "absolute");
  c.lacks({"is_decoder", "add_cross_attention"});
  // sizes of a pooler that BERT's authors wrote down and transformers never reads
  c.neutral({"directionality", "pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers",
             "pooler_size_per_head", "pooler_type"});
}

void read_distilbert(const ConfigFile& c, EncoderConfig& e) {
  e.width = c.size("dim"), e.layers = c.size("n_layers"), e.heads = c.size("n_heads"), e.inner = c.size("hidden_dim");
  e.activation = c.text("activation", "gelu");
  e.dropout = {share(c, "dropout", 0.1), share(c, "attention_dropout", 0.1), share(c, "seq_classif_dropout", 0.2)};
  // the table of positions is in the file, whatever it was computed by
  c.neutral({"sinusoidal_pos_embds", "tie_weights_", "qa_dropout"});
}

// The names that BERT and RoBERTa share, and those of their heads.
constexpr WeightName kBertBody[] = {
    {"embeddings.position_ids", ""},
    {"embeddings.token_type_ids", ""},
    {"embeddings.word_embeddings", "tokens"},
    {"embeddings.position_embeddings", "positions"},
    {"embeddings.token_type_embeddings", "types"},
    {"embeddings.LayerNorm", "embedding_norm"},
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
constexpr WeightName kBertHeads[] = {
    {"cls.predictions.transform.dense", "head.dense", true},
    {"cls.predictions.transform.LayerNorm", "head.norm", true},
    {"cls.predictions.bias", "head.out.bias", true, true},
    {"cls.predictions.decoder", "head.out", true},
    {"cls.seq_relationship", "next_sentence", true},
    {"qa_outputs", "head.out", true},
    {"classifier", "head.out", true},
};
constexpr WeightName kRobertaHeads[] = {
    {"lm_head.dense", "head.dense", true},
    {"lm_head.layer_norm", "head.norm", true},
    {"lm_head.bias", "head.out.bias", true, true},
    {"lm_head.decoder", "head.out", true},
    {"qa_outputs", "head.out", true},
    {"classifier.dense", "head.dense", true},
    {"classifier.out_proj", "head.out", true},
    {"classifier", "head.out", true},
};
std::vector<WeightName> joined(std::span<const WeightName> body, std::span<const WeightName> heads) {
  std::vector<WeightName> all(body.begin(), body.end());
  all.insert(all.end(), heads.begin(), heads.end());
  return all;
}
constexpr WeightName kDistilBertNames[] = {
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
    {"qa_outputs", "head.out", true},
    {"pre_classifier", "head.dense", true},
    {"classifier", "head.out", true},
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
// the first three in the order of EncoderKind
constexpr std::string_view kPrefixes[] = {"bert.", "roberta.", "distilbert.", "0.auto_model."};

}  // namespace

EncoderConfig EncoderConfig::from(const ConfigFile& c) {
  const Family& family = family_of(c);
  EncoderConfig e;
  e.kind = family.kind;
  e.head = head_of(c, family, e.architecture);
  e.vocab = c.size("vocab_size"), e.positions = c.size("max_position_embeddings", 512);
  if (e.kind == EncoderKind::DistilBert) read_distilbert(c, e);
  else read_bert(c, e);
  e.tied = c.flag("tie_word_embeddings", true);
  c.lacks({"pruned_heads", "is_encoder_decoder"});
  c.neutral({"pad_token_id"});
  if (e.head == EncoderHead::Sequence || e.head == EncoderHead::Tokens) e.labels = c.labels();
  if (e.heads > e.width || e.width % e.heads != 0)
    c.fail(e.heads, " attention heads do not divide a width of ", e.width);
  if (!(e.eps > 0)) c.fail("layer_norm_eps is ", e.eps, ", and not above 0");
  if (e.length() < 1)
    c.fail("max_position_embeddings is ", e.positions, ": there is no position after that of padding");
  const auto& known = activation_names();
  if (std::find(known.begin(), known.end(), e.activation) == known.end())
    c.fail("the activation ", in_quotes(e.activation), " is not known; the nearest is ",
           nearest_name(e.activation, known));
  c.require_all_known(family.type);
  return e;
}

void EncoderConfig::become_classifier(const ConfigFile& c, std::vector<std::string> names) {
  head = EncoderHead::Sequence, labels = std::move(names);
  pooler = kind == EncoderKind::Bert;
  architecture = str_cat(family_of(c).class_name, "ForSequenceClassification");
}

std::string classifier_name(EncoderKind kind, std::string_view ours) {
  constexpr std::string_view dense = "head.dense", out = "head.out";
  const bool roberta = kind == EncoderKind::Roberta;
  if (const auto name = rewritten(ours, dense, roberta ? "classifier.dense" : "pre_classifier")) return *name;
  if (const auto name = rewritten(ours, out, roberta ? "classifier.out_proj" : "classifier")) return *name;
  const auto prefix = kPrefixes[static_cast<std::size_t>(kind)];
  for (const WeightName& row : encoder_weight_names(kind))
    if (const auto name = row.ours.empty() ? std::nullopt : rewritten(ours, row.ours, row.theirs))
      return str_cat(prefix, *name);
  throw Error("encoder", str_cat("no parameter is called ", in_quotes(ours)));
}

std::span<const WeightName> encoder_weight_names(EncoderKind kind) {
  static const std::vector<WeightName> bert = joined(kBertBody, kBertHeads), roberta = joined(kBertBody, kRobertaHeads);
  if (kind == EncoderKind::DistilBert) return kDistilBertNames;
  return kind == EncoderKind::Roberta ? roberta : bert;
}
std::span<const std::string_view> encoder_prefixes() { return kPrefixes; }
std::span<const WeightName> encoder_gguf_names() { return kGgufEncoder; }

}  // namespace lc
