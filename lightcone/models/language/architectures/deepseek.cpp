// DeepSeek V2 and V3 (DeepSeek-AI, 2024): latent attention, fine experts in groups, networks that every token runs.
#include <cmath>

#include "lightcone/io/printable.h"
#include "lightcone/models/language/architectures/common.h"

namespace lc {
namespace {

// YaRN scales the scores by a factor of its own.
double yarn_scale(const ConfigFile& c) {
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    if (!c.is_object(key)) continue;
    const ConfigFile s = c.section(key);
    const double all = s.number("mscale_all_dim", 0), factor = s.number("factor", 1);
    if (s.text("rope_type", s.text("type", "default")) == "default" || all == 0 || factor <= 1) return 1;
    const double m = 0.1 * all * std::log(factor) + 1;
    return m * m;
  }
  return 1;
}

void read_latent_attention(const ConfigFile& c, LanguageConfig& l) {
  LatentAttention& a = l.attention.latent.emplace();
  a.query_rank = c.has("q_lora_rank") ? c.size("q_lora_rank") : 0;
  a.rank = c.size("kv_lora_rank", 512), a.plain = c.size("qk_nope_head_dim", 128);
  a.rotated = c.size("qk_rope_head_dim", 64), a.value = c.size("v_head_dim", 128);
  l.attention.kv_heads = l.attention.heads;
  RopeKeys keys{.head = a.rotated, .interleaved = true};
  if (!c.flag("rope_interleave", true)) keys.interleaved = false;
  read_one_rope(c, l, keys);
  const double scale = yarn_scale(c) / std::sqrt(static_cast<double>(a.plain + a.rotated));
  for (LanguageLayerKind& layer : l.layers) layer.scale = scale;
}

void read_deepseek_keys(const ConfigFile& c, LanguageConfig& l) {
  read_sizes(c, l);
  l.norm = {.kind = NormKind::Rms, .eps = c.number("rms_norm_eps", 1e-6)};
  l.network = {.inner = c.size("intermediate_size"), .activation = c.text("hidden_act", "silu"), .gated = true};
  const bool bias = c.flag("attention_bias", false);
  set_attention_biases(l, bias, bias);
  l.tied = c.flag("tie_word_embeddings", false);
  read_latent_attention(c, l);
  read_expert_sizes(c, l, {"n_routed_experts", "num_experts", "num_local_experts"}, {"moe_intermediate_size"});
  LanguageExperts& e = l.experts;
  const std::int64_t plain = c.id("first_k_dense_replace", 0), step = c.size("moe_layer_freq", 1);
  for (std::size_t i = 0; i < l.layers.size(); ++i) {
    const auto n = static_cast<std::int64_t>(i);
    l.layers[i].experts = n >= plain && n % step == 0;
  }
  e.shared = c.size("n_shared_experts", 1) * e.network.inner;
  e.scale = c.number("routed_scaling_factor", 1);
  c.neutral({"pretraining_tp", "ep_size", "aux_loss_alpha", "seq_aux", "num_nextn_predict_layers", "num_mtp_layers",
             "qk_head_dim", "head_dim"});
}

void read_groups(const ConfigFile& c, LanguageExperts& e, std::int64_t groups, std::int64_t chosen) {
  e.groups = c.size("n_group", groups), e.chosen_groups = c.size("topk_group", chosen);
  if (e.count % e.groups != 0 || e.chosen_groups > e.groups || e.count / e.groups < e.group_best)
    c.fail(e.chosen_groups, " of ", e.groups, " groups of ", e.count, " experts cannot be chosen");
}

void read_deepseek_v2(const ConfigFile& c, LanguageConfig& l) {
  read_deepseek_keys(c, l);
  if (c.flag("mlp_bias", false)) c.fail("mlp_bias is true, which is not supported");
  c.lacks({"norm_topk_prob"});
  c.only("scoring_func", "softmax");
  const std::string method = c.text("topk_method", "greedy");
  if (method == "group_limited_greedy") read_groups(c, l.experts, 1, 1);
  else if (method != "greedy") c.fail("topk_method ", in_quotes(method), " is not known of deepseek_v2");
  c.neutral({"n_group", "topk_group"});
}

void read_deepseek_v3(const ConfigFile& c, LanguageConfig& l) {
  read_deepseek_keys(c, l);
  LanguageExperts& e = l.experts;
  e.router = RouterKind::Sigmoid, e.choice_bias = true, e.group_best = 2;
  e.normalized = c.flag("norm_topk_prob", true);
  e.scale = c.number("routed_scaling_factor", 2.5);
  c.only("scoring_func", "sigmoid");
  c.only("topk_method", "noaux_tc");
  read_groups(c, e, 8, 4);
}

constexpr WeightName kDeepseekNames[] = {
    {"layers.#.self_attn.q_proj", "layers.#.attention.query"},
    {"layers.#.self_attn.q_a_proj", "layers.#.attention.query_down"},
    {"layers.#.self_attn.q_a_layernorm", "layers.#.attention.query_down_norm"},
    {"layers.#.self_attn.q_b_proj", "layers.#.attention.query_up"},
    {"layers.#.self_attn.kv_a_proj_with_mqa", "layers.#.attention.latent_down"},
    {"layers.#.self_attn.kv_a_layernorm", "layers.#.attention.latent_norm"},
    {"layers.#.self_attn.kv_b_proj", "layers.#.attention.latent_up"},
};

}  // namespace

constinit const LanguageArchitecture kDeepseekV2{"deepseek_v2",  "DeepseekV2", read_deepseek_v2,
                                                 kDeepseekNames, kExpertNames, kLlamaNames};
constinit const LanguageArchitecture kDeepseekV3{"deepseek_v3",  "DeepseekV3", read_deepseek_v3,
                                                 kDeepseekNames, kExpertNames, kLlamaNames};

}  // namespace lc
