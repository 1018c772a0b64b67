#include "lightcone/models/language/architectures/common.h"

#include "lightcone/io/printable.h"

namespace lc {

std::int64_t size_by(const ConfigFile& c, const std::vector<std::string_view>& keys, std::int64_t otherwise) {
  for (const std::string_view key : keys)
    if (c.has(key)) return c.size(key);
  return otherwise > 0 ? otherwise : c.size(keys.front());
}

void read_layer_count(const ConfigFile& c, LanguageConfig& l, const std::vector<std::string_view>& keys) {
  constexpr std::int64_t kMostLayers = 1 << 14;
  const std::int64_t layers = size_by(c, keys);
  if (layers > kMostLayers) c.fail(layers, " layers are more than the ", kMostLayers, " that are supported");
  l.layers.resize(static_cast<std::size_t>(layers));
}

void read_sizes(const ConfigFile& c, LanguageConfig& l, const SizeKeys& keys, std::int64_t default_length) {
  constexpr std::int64_t kMostHeads = 1 << 16, kMostElements = 1 << 16;
  l.vocab = c.size("vocab_size"), l.width = size_by(c, keys.width), l.length = size_by(c, keys.length, default_length);
  read_layer_count(c, l, keys.layers);
  LanguageAttention& a = l.attention;
  a.heads = size_by(c, keys.heads), a.kv_heads = size_by(c, keys.kv_heads, a.heads);
  a.head = c.size("head_dim", keys.head > 0 ? keys.head : std::max<std::int64_t>(l.width / a.heads, 1));
  if (!c.has("head_dim") && keys.head == 0 && l.width % a.heads != 0)
    c.fail(a.heads, " attention heads do not divide a width of ", l.width);
  if (a.heads > kMostHeads || a.head > kMostElements)
    c.fail(a.heads, " heads of ", a.head, " elements are more than the ", kMostHeads, " that are supported");
  if (a.heads % a.kv_heads != 0) c.fail(a.kv_heads, " heads of keys do not divide ", a.heads, " heads of queries");
}

void read_one_rope(const ConfigFile& c, LanguageConfig& l, RopeKeys keys) {
  keys.head = keys.head > 0 ? keys.head : l.attention.head;
  keys.positions = l.length;
  l.ropes = {read_rope(c, keys)};
  for (LanguageLayerKind& layer : l.layers) layer.rope = 0;
}

void read_windows(const ConfigFile& c, LanguageConfig& l, std::int64_t window, const std::vector<bool>& slides) {
  const std::vector<std::string> types = c.texts("layer_types");
  if (!types.empty() && types.size() != l.layers.size())
    c.fail("layer_types has ", types.size(), " entries for ", l.layers.size(), " layers");
  for (std::size_t i = 0; i < l.layers.size(); ++i) {
    if (!types.empty() && types[i] != "full_attention" && types[i] != "sliding_attention")
      c.fail("layer_types holds ", in_quotes(types[i]), ", and only full_attention and sliding_attention are known");
    if (types.empty() ? slides[i] : types[i] == "sliding_attention") l.layers[i].window = window;
  }
}

void read_qwen_windows(const ConfigFile& c, LanguageConfig& l) {
  const bool slides = c.flag("use_sliding_window", false);
  const std::int64_t window = c.size("sliding_window", 4096), first = c.id("max_window_layers", 28);
  std::vector<bool> sliding;
  for (std::size_t i = 0; i < l.layers.size(); ++i) sliding.push_back(static_cast<std::int64_t>(i) >= first);
  if (slides) read_windows(c, l, window, sliding);
  else c.neutral({"layer_types"});
}

void read_expert_sizes(const ConfigFile& c, LanguageConfig& l, const std::vector<std::string_view>& count_keys,
                       const std::vector<std::string_view>& width_keys, std::int64_t default_chosen) {
  LanguageExperts& e = l.experts;
  e.count = size_by(c, count_keys);
  e.chosen = size_by(c, {"num_experts_per_tok"}, default_chosen);
  if (e.chosen > e.count) c.fail(e.chosen, " experts are chosen of ", e.count);
  e.network = l.network;
  e.network.inner = size_by(c, width_keys);
  for (LanguageLayerKind& layer : l.layers) layer.experts = true;
  c.neutral({"router_aux_loss_coef", "output_router_logits", "router_jitter_noise", "input_jitter_noise"});
}

void set_attention_biases(LanguageConfig& l, bool inputs, bool output) {
  LanguageAttention& a = l.attention;
  a.query_bias = a.key_bias = a.value_bias = inputs;
  a.output_bias = output;
}

void read_llama_keys(const ConfigFile& c, LanguageConfig& l, const LlamaDefaults& d) {
  read_sizes(c, l, {.head = d.head});
  l.norm = {.kind = NormKind::Rms, .eps = c.number("rms_norm_eps", d.eps)};
  l.attention.norm_options = l.norm;
  l.network = {.inner = c.size("intermediate_size"), .activation = c.text("hidden_act", "silu"), .gated = true};
  l.network.up_bias = l.network.down_bias = c.flag("mlp_bias", false);
  read_one_rope(c, l, {.theta = d.theta});
  const bool bias = c.flag("attention_bias", false);
  set_attention_biases(l, bias, bias);
  l.tied = c.flag("tie_word_embeddings", false);
  c.neutral({"pretraining_tp"});  // in how many pieces training computed a product
}

}  // namespace lc
