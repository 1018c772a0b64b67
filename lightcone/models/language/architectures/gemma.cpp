// Gemma 1, 2 and 3 (Gemma Team, 2024 and 2025): scaled embeddings and norms with a factor of 1 + weight; Gemma 2 adds
// norms of what layers add, caps and windows, Gemma 3 norms of heads and a rotation of its own for layers with windows.
#include <cmath>

#include "lightcone/models/language/architectures/common.h"

namespace lc {
namespace {

void read_gemma_keys(const ConfigFile& c, LanguageConfig& l) {
  read_sizes(c, l, {.head = 256});
  l.norm = {.kind = NormKind::RmsPlusOne, .eps = c.number("rms_norm_eps", 1e-6)};
  l.attention.norm_options = l.norm;
  l.embedding_scale = static_cast<float>(std::sqrt(static_cast<double>(l.width)));
  // hidden_act of Gemma 1 says gelu and means the approximation by tanh
  std::string activation = c.text("hidden_activation", c.text("hidden_act", "gelu_pytorch_tanh"));
  if (activation == "gelu") activation = "gelu_pytorch_tanh";
  l.network = {.inner = c.size("intermediate_size"), .activation = activation, .gated = true};
  const bool bias = c.flag("attention_bias", false);
  set_attention_biases(l, bias, bias);
  l.tied = c.flag("tie_word_embeddings", true);
  c.lacks({"use_bidirectional_attention"});
  if (!l.padding) l.padding = 0;
}

void set_scale(const ConfigFile& c, LanguageConfig& l) {
  const double by = c.number("query_pre_attn_scalar", 256);
  if (!(by > 0)) c.fail("query_pre_attn_scalar is ", by, ", and not above 0");
  for (LanguageLayerKind& layer : l.layers) layer.scale = 1 / std::sqrt(by);
}

void read_gemma(const ConfigFile& c, LanguageConfig& l) {
  read_gemma_keys(c, l);
  read_one_rope(c, l);
}

void read_gemma2(const ConfigFile& c, LanguageConfig& l) {
  read_gemma_keys(c, l);
  l.place = NormPlace::Both;
  l.attention.cap = c.number("attn_logit_softcapping", c.is_null("attn_logit_softcapping") ? 0 : 50);
  l.logits_cap = c.number("final_logit_softcapping", c.is_null("final_logit_softcapping") ? 0 : 30);
  read_one_rope(c, l);
  set_scale(c, l);
  std::vector<bool> slides;
  for (std::size_t i = 0; i < l.layers.size(); ++i) slides.push_back(i % 2 == 0);
  read_windows(c, l, c.size("sliding_window", 4096), slides);
  c.neutral({"cache_implementation", "sliding_window_size"});
}

void read_gemma3(const ConfigFile& c, LanguageConfig& l) {
  read_gemma_keys(c, l);
  l.place = NormPlace::Both;
  l.attention.norm = HeadNorm::Head;
  l.attention.cap = c.number("attn_logit_softcapping", 0), l.logits_cap = c.number("final_logit_softcapping", 0);
  const std::int64_t pattern = c.size("sliding_window_pattern", c.size("_sliding_window_pattern", 6));
  std::vector<bool> slides;
  for (std::size_t i = 0; i < l.layers.size(); ++i) slides.push_back((static_cast<std::int64_t>(i) + 1) % pattern != 0);
  read_windows(c, l, c.size("sliding_window", 4096), slides);
  const RopeKeys keys{.head = l.attention.head, .theta = 1e6, .positions = l.length};
  RopeKeys local = keys;
  local.theta = 1e4, local.theta_key = "rope_local_base_freq", local.scaling_key = "";
  l.ropes = {read_rope(c, keys, "full_attention"), read_rope(c, local, "sliding_attention")};
  for (LanguageLayerKind& layer : l.layers) layer.rope = layer.window > 0 ? 1 : 0;
  set_scale(c, l);
  c.neutral({"cache_implementation"});
}

constexpr WeightName kGemma2Names[] = {
    {"layers.#.post_attention_layernorm", "layers.#.attention_output_norm"},
    {"layers.#.pre_feedforward_layernorm", "layers.#.network_norm"},
    {"layers.#.post_feedforward_layernorm", "layers.#.network_output_norm"},
};

}  // namespace

constinit const LanguageArchitecture kGemma{"gemma", "Gemma", read_gemma, kLlamaNames};
constinit const LanguageArchitecture kGemma2{"gemma2", "Gemma2", read_gemma2, kGemma2Names, kLlamaNames};
constinit const LanguageArchitecture kGemma3{"gemma3_text", "Gemma3", read_gemma3, kGemma2Names, kLlamaNames};

}  // namespace lc
