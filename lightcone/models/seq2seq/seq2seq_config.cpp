#include "lightcone/models/seq2seq/seq2seq_config.h"

#include <algorithm>
#include <cmath>

#include "lightcone/io/printable.h"
#include "lightcone/models/blocks/activation.h"
#include "lightcone/runtime/names.h"

namespace lc {
namespace {

constexpr std::int64_t kMostPositions = 1 << 16;  // no table in the file bounds those of sines
constexpr std::int64_t kLongestT5 = 4096;         // T5 knows distances only; this bounds the memory that is planned

enum class Layout : std::uint8_t { Bart, T5, Whisper };
struct Family {
  std::string_view type, class_name;
  Layout layout;
};
constexpr Family kFamilies[] = {{"t5", "T5", Layout::T5},
                                {"mt5", "MT5", Layout::T5},
                                {"umt5", "UMT5", Layout::T5},
                                {"bart", "Bart", Layout::Bart},
                                {"mbart", "MBart", Layout::Bart},
                                {"marian", "Marian", Layout::Bart},
                                {"pegasus", "Pegasus", Layout::Bart},
                                {"m2m_100", "M2M100", Layout::Bart},
                                {"whisper", "Whisper", Layout::Whisper}};

const Family& family_of(const ConfigFile& c) {
  const std::string type = c.text("model_type");
  for (const Family& f : kFamilies)
    if (f.type == type) return f;
  c.fail("model_type ", in_quotes(type), " is no encoder-decoder that is known");
}

void read_architecture(const ConfigFile& c, const Family& f, Seq2SeqConfig& s) {
  std::vector<std::string> known{str_cat(f.class_name, "ForConditionalGeneration"), str_cat(f.class_name, "Model")};
  if (f.layout == Layout::T5) known.push_back(str_cat(f.class_name, "EncoderModel"));
  if (f.type == "t5") known.emplace_back("T5WithLMHeadModel");  // the name of 2019
  if (f.type == "marian") known.front() = "MarianMTModel";
  const std::vector<std::string> all = c.texts("architectures");
  s.architecture = all.empty() ? known.front() : all.front();
  if (std::ranges::find(known, s.architecture) == known.end())
    c.fail("the architecture ", in_quotes(s.architecture), " is not known for model_type ", in_quotes(f.type),
           "; the nearest is ", nearest_name(s.architecture, {known.begin(), known.end()}));
  s.has_decoder = !s.architecture.ends_with("EncoderModel");
  s.predicts_words = s.architecture != known[1] && s.has_decoder;
}

// A key that has one value in every model of a type.
void always(const ConfigFile& c, std::string_view key, bool value) {
  if (c.flag(key, value) != value)
    c.fail(key, " is ", value ? "false" : "true", ", which is not supported for this type of model");
}

void read_stacks(const ConfigFile& c, Seq2SeqConfig& s, bool scales) {
  s.width = c.size("d_model");
  s.encoder = {.layers = c.size("encoder_layers"),
               .heads = c.size("encoder_attention_heads"),
               .inner = c.size("encoder_ffn_dim")};
  s.decoder = {.layers = c.size("decoder_layers"),
               .heads = c.size("decoder_attention_heads"),
               .inner = c.size("decoder_ffn_dim")};
  if (s.encoder.heads != s.decoder.heads)
    c.fail("encoder_attention_heads is ", s.encoder.heads, " and decoder_attention_heads ", s.decoder.heads,
           ": they must be the same");
  if (s.width % s.encoder.heads != 0) c.fail(s.encoder.heads, " attention heads do not divide a width of ", s.width);
  s.head = s.width / s.encoder.heads;
  s.activation = c.text("activation_function", s.activation);
  if (c.flag("scale_embedding", scales)) s.embedding_scale = std::sqrt(static_cast<double>(s.width));
  // layers of these shares are left out in training, numbers of first values, and a copy of encoder_layers
  c.neutral({"encoder_layerdrop", "decoder_layerdrop", "init_std", "num_hidden_layers", "classifier_dropout",
             "classif_dropout"});
}

// Ids of tokens that matter to generation.
void read_ids(const ConfigFile& c, Seq2SeqConfig& s, int start, int padding, int end) {
  s.padding = static_cast<int>(c.id("pad_token_id", padding));
  s.start = static_cast<int>(c.id("decoder_start_token_id", start));
  s.ends = {static_cast<int>(c.id("eos_token_id", end))};
}

void read_bart(const ConfigFile& c, std::string_view type, Seq2SeqConfig& s) {
  const bool m2m = type == "m2m_100", sines = type == "marian" || type == "pegasus" || m2m;
  if (m2m) s.activation = "relu";
  read_stacks(c, s, m2m);
  s.encoder.length = s.decoder.length = c.size("max_position_embeddings", 1024);
  s.norm_first = s.final_norm = type == "mbart" || type == "pegasus" || m2m;
  s.embedding_norm = type == "bart" || type == "mbart";
  s.encoder.positions = s.decoder.positions = sines ? PositionKind::Sines : PositionKind::Table;
  s.sine_steps = static_cast<double>(s.width) / 2 - (m2m ? 1 : 0);
  s.first_position = sines ? 0 : 2;
  c.neutral({"tie_word_embeddings"});
  const bool pegasus = type == "pegasus", marian = type == "marian";
  read_ids(c, s, marian ? 58100 : pegasus ? 0 : 2, marian ? 58100 : pegasus ? 0 : 1, marian ? 0 : pegasus ? 1 : 2);
  if (m2m) s.count_tokens = true, s.first_position = s.padding + 1;
  if (marian) {
    s.own_target_table = !c.flag("share_encoder_decoder_embeddings", true);
    if (const auto vocab = c.size("decoder_vocab_size", s.vocab); vocab != s.vocab)
      c.fail("decoder_vocab_size is ", vocab, " and vocab_size ", s.vocab, ": they must be the same");
  }
  // what fairseq's conversions of 2020 wrote down and each of these types has in one way
  always(c, "normalize_before", s.norm_first), always(c, "normalize_embedding", s.embedding_norm);
  always(c, "add_final_layer_norm", s.final_norm), always(c, "static_position_embeddings", sines);
  always(c, "add_bias_logits", false), always(c, "is_encoder_decoder", true);
  c.lacks({"is_decoder"});
  c.neutral({"extra_pos_embeddings", "force_bos_token_to_be_generated", "save_step", "max_source_positions",
             "max_target_positions"});
}

void read_t5_network(const ConfigFile& c, Seq2SeqConfig& s, std::string_view otherwise) {
  const std::string how = c.text("feed_forward_proj", otherwise);
  s.gated = how.starts_with("gated-");
  s.activation = s.gated ? how.substr(6) : how;
  if (how == "gated-gelu") s.activation = "gelu_new";  // as T5's authors meant it
  // these two are derived from it and written down by some versions
  if (const std::string act = c.text("dense_act_fn", s.activation); act != s.activation)
    c.fail("dense_act_fn is ", in_quotes(act), " and feed_forward_proj ", in_quotes(how), ", which do not agree");
  if (c.flag("is_gated_act", s.gated) != s.gated)
    c.fail("is_gated_act and feed_forward_proj ", in_quotes(how), " do not agree");
}

void read_t5(const ConfigFile& c, std::string_view type, Seq2SeqConfig& s) {
  s.width = c.size("d_model"), s.head = c.size("d_kv");
  const std::int64_t heads = c.size("num_heads"), inner = c.size("d_ff");
  s.encoder = {.layers = c.size("num_layers"),
               .heads = heads,
               .inner = inner,
               .length = kLongestT5,
               .positions = PositionKind::Distance};
  s.decoder = s.encoder;
  s.decoder.layers = c.size("num_decoder_layers", s.encoder.layers);
  s.norm_first = s.final_norm = s.rms_norm = true;
  s.biases = s.key_bias = false;
  s.eps = c.number("layer_norm_epsilon", 1e-6);
  s.attention_scale = 1;
  read_t5_network(c, s, type == "t5" ? "relu" : "gated-gelu");
  s.buckets = c.size("relative_attention_num_buckets", 32);
  s.most_distance = c.size("relative_attention_max_distance", 128);
  s.bias_each_layer = type == "umt5";
  if (s.buckets < 4 || s.buckets % 4 != 0 || s.buckets > 4096)
    c.fail("relative_attention_num_buckets is ", s.buckets, ", and not a multiple of 4 from 4 to 4096");
  if (s.most_distance <= s.buckets / 2)
    c.fail("relative_attention_max_distance is ", s.most_distance, ", and not above ", s.buckets / 2,
           ", the distances that have a bucket each");
  const bool one_table = c.flag("tie_word_embeddings", type != "mt5");
  if (c.flag("scale_decoder_outputs", one_table && type != "mt5"))
    s.logits_scale = 1 / std::sqrt(static_cast<double>(s.width));
  read_ids(c, s, 0, 0, 1);
  if (s.has_decoder) always(c, "is_encoder_decoder", true);
  c.lacks({"is_decoder"});
  c.neutral({"is_encoder_decoder", "dropout_rate", "n_positions", "classifier_dropout"});
}

void read_whisper(const ConfigFile& c, Seq2SeqConfig& s) {
  read_stacks(c, s, false);
  s.embedding_scale = 1;  // scale_embedding is written down, and no implementation heeds it
  s.mels = c.size("num_mel_bins", 80);
  s.encoder.length = c.size("max_source_positions", 1500), s.decoder.length = c.size("max_target_positions", 448);
  s.norm_first = s.final_norm = true;
  s.key_bias = false;
  s.sine_steps = static_cast<double>(s.width) / 2 - 1;
  c.neutral({"tie_word_embeddings"});
  read_ids(c, s, 50257, 50256, 50256);
  always(c, "is_encoder_decoder", true);
  c.lacks({"use_weighted_layer_sum"});
  // training masks parts of the spectrogram; the last ones steer generation
  c.neutral({"apply_spec_augment", "mask_time_prob", "mask_time_length", "mask_time_min_masks", "mask_feature_prob",
             "mask_feature_length", "mask_feature_min_masks", "classifier_proj_size", "median_filter_width",
             "forced_decoder_ids"});
}

}  // namespace

bool Seq2SeqConfig::knows(std::string_view model_type) {
  return std::ranges::find(kFamilies, model_type, &Family::type) != std::end(kFamilies);
}

Seq2SeqConfig Seq2SeqConfig::from(const ConfigFile& c) {
  const Family& family = family_of(c);
  Seq2SeqConfig s;
  s.type = family.type;
  read_architecture(c, family, s);
  s.vocab = c.size("vocab_size");
  if (family.layout == Layout::T5) read_t5(c, family.type, s);
  else if (family.layout == Layout::Bart) read_bart(c, family.type, s);
  else read_whisper(c, s);
  if (s.sine_steps > 0 && (s.width % 2 != 0 || s.width < 4))
    c.fail("d_model is ", s.width, ", and sines of positions need an even one from 4 on");
  if (const std::int64_t most = std::max(s.encoder.length, s.decoder.length); most > kMostPositions)
    c.fail(most, " positions, more than the ", kMostPositions, " that are supported");
  if (!(s.eps > 0)) c.fail("layer_norm_epsilon is ", s.eps, ", and not above 0");
  const auto& known = activation_names();
  if (std::ranges::find(known, s.activation) == known.end())
    c.fail("the activation ", in_quotes(s.activation), " is not known; the nearest is ",
           nearest_name(s.activation, known));
  c.require_all_known(family.type);
  return s;
}

void Seq2SeqConfig::complete(const Weights& w, const ConfigFile& c) {
  if (encoder.layers + decoder.layers > std::ssize(w.tensors()))
    c.fail(encoder.layers, " and ", decoder.layers, " layers, and ", w.tensors().size(), " weights");
  const auto find = [&](std::initializer_list<std::string_view> names) -> const StoredTensor* {
    for (const std::string_view name : names)
      for (const std::string& full : {std::string(name), str_cat("model.", name)})
        if (const StoredTensor* t = w.find(full)) return t;
    return nullptr;
  };
  logits_bias = predicts_words && find({"final_logits_bias"});
  // A head that differs from the table of tokens is one of its own, whatever tie_word_embeddings says: transformers 5
  // writes true in every case.
  const StoredTensor* head = find({"lm_head.weight", "proj_out.weight"});
  const StoredTensor* table =
      own_target_table ? find({"decoder.embed_tokens.weight"})
                       : find({"shared.weight", "decoder.embed_tokens.weight", "encoder.embed_tokens.weight"});
  tied = !head || !table || (head->type == table->type && std::ranges::equal(head->bytes, table->bytes));
  // Marian and PEGASUS may write their sines down, and Whisper may leave those of its encoder out
  for (const auto& [stack, name] :
       {std::pair(&encoder, "encoder.embed_positions.weight"), std::pair(&decoder, "decoder.embed_positions.weight")})
    if (sine_steps > 0 && !count_tokens) stack->positions = find({name}) ? PositionKind::Table : PositionKind::Sines;
}

}  // namespace lc
