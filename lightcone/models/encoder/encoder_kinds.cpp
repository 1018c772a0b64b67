#include "lightcone/models/encoder/encoder_kinds.h"

#include <algorithm>

#include "lightcone/io/printable.h"

namespace lc {
namespace {

// The sizes and the dropout by the names that BERT gave them.
void read_bert_sizes(const ConfigFile& c, EncoderConfig& e) {
  e.width = c.size("hidden_size"), e.heads = c.size("num_attention_heads");
  make_layers(c, e, c.size("num_hidden_layers"));
  e.inner = c.size("intermediate_size");
  e.eps = c.number("layer_norm_eps", 1e-12);
  e.activation = c.text("hidden_act", "gelu");
  e.dropout = {share_of(c, "hidden_dropout_prob", 0.1), share_of(c, "attention_probs_dropout_prob", 0.1)};
}

// RoBERTa counts positions from behind the id of padding. MPNet's padding is 1 for that whatever the file says.
void read_roberta(const ConfigFile& c, EncoderConfig& e) {
  e.positions_by_padding = true;
  e.padding = e.kind == EncoderKind::MPNet ? 1 : c.id("pad_token_id", 1);
  e.longest = e.positions - e.padding - 1;
  if (e.longest < 1) c.fail("max_position_embeddings is ", e.positions, ": there is no position after that of padding");
  if (e.kind != EncoderKind::MPNet) return;
  constexpr std::int64_t kBuckets = 32;  // transformers computes so many whatever the file says
  if (c.size("relative_attention_num_buckets", kBuckets) != kBuckets)
    c.fail("relative_attention_num_buckets is not ", kBuckets, ", which is not supported");
  e.distances = DistanceBuckets{.buckets = kBuckets, .both_directions = true};
  e.types = 0;
}

void read_albert(const ConfigFile& c, EncoderConfig& e) {
  e.embedding = c.size("embedding_size", 128), e.projects = true;
  e.groups = c.size("num_hidden_groups", 1), e.group_layers = c.size("inner_group_num", 1);
  e.activation = c.text("hidden_act", "gelu_new");
  const auto steps = std::ssize(e.layers);
  if (e.groups > steps) c.fail("num_hidden_groups is ", e.groups, ", and there are ", steps, " layers");
  if (e.group_layers > steps) c.fail("inner_group_num is ", e.group_layers, ", and there are ", steps, " layers");
  make_layers(c, e, steps * e.group_layers);
  e.dropout = {share_of(c, "hidden_dropout_prob", 0), share_of(c, "attention_probs_dropout_prob", 0),
               share_of(c, "classifier_dropout_prob", 0.1)};
  c.neutral({"net_structure_type", "gap_size", "num_memory_blocks", "down_scale_factor", "layers_to_keep"});
}

}  // namespace

void read_bert(const ConfigFile& c, EncoderConfig& e) {
  read_bert_sizes(c, e);
  e.types = c.size("type_vocab_size", 2);
  e.positions = e.longest = c.size("max_position_embeddings", 512);
  e.embedding = e.width;
  e.dropout.head = share_of(c, "classifier_dropout", e.dropout.hidden);
  if (e.kind == EncoderKind::Electra) {
    e.embedding = c.size("embedding_size", 128), e.projects = e.embedding != e.width;
    c.neutral({"summary_first_dropout", "summary_last_dropout"});
    c.only("summary_type", "first"), c.only("summary_activation", "gelu");
    if (!c.flag("summary_use_proj", true)) c.fail("summary_use_proj is false, which is not supported");
  }
  if (e.kind == EncoderKind::Roberta || e.kind == EncoderKind::MPNet) read_roberta(c, e);
  if (e.kind == EncoderKind::Albert) read_albert(c, e);
  c.only("position_embedding_type", "absolute");
  c.lacks({"is_decoder", "add_cross_attention"});
  // sizes of a pooler that BERT's authors wrote down and transformers never reads
  c.neutral({"directionality", "pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers",
             "pooler_size_per_head", "pooler_type"});
}

void read_distilbert(const ConfigFile& c, EncoderConfig& e) {
  e.width = e.embedding = c.size("dim"), e.heads = c.size("n_heads"), e.inner = c.size("hidden_dim");
  make_layers(c, e, c.size("n_layers"));
  e.positions = e.longest = c.size("max_position_embeddings", 512);
  e.activation = c.text("activation", "gelu");
  e.dropout = {share_of(c, "dropout", 0.1), share_of(c, "attention_dropout", 0.1),
               share_of(c, "seq_classif_dropout", 0.2), false};
  // the table of positions is in the file, whatever it was computed by
  c.neutral({"sinusoidal_pos_embds", "tie_weights_", "qa_dropout"});
}

void read_deberta(const ConfigFile& c, EncoderConfig& e) {
  read_bert_sizes(c, e);
  e.eps = c.number("layer_norm_eps", 1e-7);
  e.types = c.id("type_vocab_size", 0), e.longest = c.size("max_position_embeddings", 512);
  if (c.flag("position_biased_input", true)) e.positions = e.longest;
  e.embedding = c.size("embedding_size", e.width);
  e.projects = e.projects_before_norm = e.embedding != e.width;
  e.hides_padding = true;
  e.dropout.head = share_of(c, "cls_dropout", e.dropout.hidden);
  e.head_activation = c.text("pooler_hidden_act", "gelu");
  if (c.size("pooler_hidden_size", e.width) != e.width) c.fail("pooler_hidden_size is not hidden_size");
  c.neutral({"pooler_dropout", "legacy", "conv_act", "conv_groups", "z_steps"});
  if (c.id("conv_kernel_size", 0) > 0) c.fail("conv_kernel_size is above 0: a convolution is not supported");
  constexpr double kLongest = 1 << 20;
  const auto size = [&](std::string_view key) {  // -1 stands for a number that the file leaves to others
    const double n = c.number(key, 0);
    if (n > kLongest) c.fail(key, " is ", n, ", and at most ", kLongest, " is supported");
    return static_cast<std::int64_t>(std::max(n, 0.0));
  };
  DisentangledAttention d{.buckets = size("position_buckets"), .most = size("max_relative_positions")};
  if (d.most == 0) d.most = e.longest;
  d.span = d.buckets > 0 ? d.buckets : d.most;
  if (d.buckets > 0 && (d.buckets < 4 || d.most <= d.buckets / 2 + 1))
    c.fail("position_buckets is ", d.buckets, ", and distances go up to ", d.most);
  const std::string norm = c.text("norm_rel_ebd", "none");
  if (norm != "none" && norm != "layer_norm") c.fail("norm_rel_ebd is ", in_quotes(norm), ", which is not known");
  d.normalized = norm == "layer_norm", d.shared = c.flag("share_att_key", false);
  const std::vector<std::string> types =
      c.is_text("pos_att_type") ? std::vector{c.text("pos_att_type")} : c.texts("pos_att_type");
  for (const std::string& t : types) {
    d.queries |= t == "c2p" || t == "c2p|p2c" || t == "p2c|c2p";
    d.keys |= t == "p2c" || t == "c2p|p2c" || t == "p2c|c2p";
    if (t != "c2p" && t != "p2c" && t != "c2p|p2c" && t != "p2c|c2p")
      c.fail("pos_att_type holds ", in_quotes(t), ", and only c2p and p2c are known");
  }
  if (!c.flag("relative_attention", false)) return;
  if (!d.queries && !d.keys) c.fail("relative_attention is true, and pos_att_type names no kind of it");
  e.disentangled = d;
}

void read_modernbert(const ConfigFile& c, EncoderConfig& e) {
  e.width = e.embedding = c.size("hidden_size", 768), e.heads = c.size("num_attention_heads", 12);
  e.inner = c.size("intermediate_size", 1152), e.longest = c.size("max_position_embeddings", 8192);
  make_layers(c, e, c.size("num_hidden_layers", 22));
  e.eps = c.number("norm_eps", 1e-5), e.activation = c.text("hidden_activation", "gelu");
  e.norm_first = e.joined = true, e.gate = EncoderGate::Joined, e.padding = c.id("pad_token_id", 50283);
  e.attention_bias = c.flag("attention_bias", false), e.network_bias = c.flag("mlp_bias", false);
  e.norm_bias = c.flag("norm_bias", false), e.word_bias = c.flag("decoder_bias", true);
  e.head_activation = c.text("classifier_activation", "gelu"), e.head_bias = c.flag("classifier_bias", false);
  const std::string pool = c.text("classifier_pooling", "cls");
  if (pool != "cls" && pool != "mean")
    c.fail("classifier_pooling is ", in_quotes(pool), ", and only cls and mean are known");
  e.mean_pool = pool == "mean";
  // training drops no more than these: mlp_dropout, within the network of a layer, is left out
  e.dropout = {share_of(c, "embedding_dropout", 0), share_of(c, "attention_dropout", 0),
               share_of(c, "classifier_dropout", 0), false};
  const std::int64_t head = e.heads <= e.width ? e.width / e.heads : 0, reach = c.size("local_attention", 128) / 2;
  e.ropes = {read_rope(c, {.head = head, .theta = 160000, .theta_key = "global_rope_theta"}, "full_attention"),
             read_rope(c, {.head = head, .theta = 10000, .theta_key = "local_rope_theta"}, "sliding_attention")};
  const std::vector<std::string> kinds = c.texts("layer_types");
  const auto every = static_cast<std::size_t>(c.size("global_attn_every_n_layers", 3));
  if (!kinds.empty() && kinds.size() != e.layers.size())
    c.fail("layer_types has ", kinds.size(), " entries for ", e.layers.size(), " layers");
  for (std::size_t k = 0; k < e.layers.size(); ++k) {
    if (!kinds.empty() && kinds[k] != "full_attention" && kinds[k] != "sliding_attention")
      c.fail("layer_types holds ", in_quotes(kinds[k]), ", and only full_attention and sliding_attention are known");
    const bool slides = kinds.empty() ? k % every != 0 : kinds[k] == "sliding_attention";
    e.layers[k] = {.reach = slides ? std::max<std::int64_t>(reach, 1) : 0, .rope = slides ? 1 : 0};
  }
  c.neutral({"initializer_cutoff_factor", "deterministic_flash_attn", "sparse_prediction", "sparse_pred_ignore_index",
             "reference_compile", "repad_logits_with_grad", "layer_norm_eps", "mlp_dropout",
             "position_embedding_type"});
}

void read_nomic_bert(const ConfigFile& c, EncoderConfig& e) {
  e.attention_bias = e.network_bias = false, e.gate = EncoderGate::Separate;
  if (!c.has("n_embd")) {
    read_bert_sizes(c, e);
    e.activation = c.text("hidden_act", "silu");
    e.types = c.size("type_vocab_size", 2), e.longest = c.size("max_position_embeddings", 2048);
    e.dropout = {share_of(c, "hidden_dropout_prob", 0), share_of(c, "attention_probs_dropout_prob", 0)};
  } else {  // as its authors write it
    e.width = c.size("n_embd"), e.heads = c.size("n_head"), e.inner = c.size("n_inner");
    make_layers(c, e, c.size("n_layer"));
    e.eps = c.number("layer_norm_epsilon", 1e-12), e.types = c.size("type_vocab_size", 2);
    // beyond these the authors' program stretches the rotation
    e.longest = std::min(c.size("n_positions", 2048), c.size("max_trained_positions", 2048));
    c.only("activation_function", "swiglu");
    e.activation = "silu";
    e.attention_bias = c.flag("qkv_proj_bias", false), e.network_bias = c.flag("mlp_fc1_bias", false);
    if (c.flag("mlp_fc2_bias", false) != e.network_bias) c.fail("mlp_fc1_bias and mlp_fc2_bias differ");
    e.dropout = {share_of(c, "resid_pdrop", 0), share_of(c, "attn_pdrop", 0)};
    c.lacks({"prenorm", "parallel_block", "parallel_block_tied_norm", "use_rms_norm", "causal",
             "rotary_emb_interleaved", "rotary_emb_scale_base", "num_experts"});
    if (c.number("rotary_emb_fraction", 1) != 1) c.fail("rotary_emb_fraction is not 1, which is not supported");
    c.neutral({"embd_pdrop",
               "dense_seq_output",
               "fused_bias_fc",
               "fused_dropout_add_ln",
               "pad_vocab_size_multiple",
               "reorder_and_upcast_attn",
               "rotary_scaling_factor",
               "scale_attn_by_inverse_layer_idx",
               "scale_attn_weights",
               "summary_activation",
               "summary_first_dropout",
               "summary_proj_to_labels",
               "summary_type",
               "summary_use_proj",
               "use_flash_attn",
               "use_xentropy",
               "last_layer_subset",
               "layer_norm_training",
               "expert_choice_router",
               "moe_every_n_layers",
               "ffn_div"});
  }
  e.embedding = e.width;
  e.dropout.head = share_of(c, "classifier_dropout", e.dropout.hidden);
  if (c.has("head_dim") && e.heads * c.size("head_dim") != e.width)
    c.fail(e.heads, " heads of ", c.size("head_dim"), " elements are no width of ", e.width);
  const std::int64_t head = e.heads <= e.width ? e.width / e.heads : 0;
  const std::string_view theta = c.has("n_embd") ? "rotary_emb_base" : "rope_theta";
  e.ropes = {read_rope(c, {.head = head, .theta = 1000, .theta_key = theta})};
  for (EncoderLayerKind& layer : e.layers) layer.rope = 0;
}

}  // namespace lc
