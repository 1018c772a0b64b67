// Language models with routed experts.
#include <algorithm>
#include <cmath>

#include "lightcone/models/gguf/gguf_config.h"

namespace lc::gguf {
namespace {

// llama.cpp's numbers of ways to score experts; 0: the architecture's own.
enum class Gating : std::uint8_t { Own = 0, Softmax = 1, Sigmoid = 2, SoftmaxOfChosen = 3 };

void begin_routed(const GgufMetadata& m, ConfigText& c, std::string_view type, std::string_view architecture) {
  c.set("model_type", type).set("architectures", std::vector<std::string>{std::string(architecture)});
  c.set("vocab_size", m.extent("token_embd.weight", 0));
  m.neutral({"vocab_size", "pooling_type"});
}

// What each architecture does and no config.json of it may say otherwise.
void only_gating(const GgufMetadata& m, Gating one) {
  const double said = m.number("expert_gating_func", 0);
  if (said != 0 && said != static_cast<double>(one))
    m.fail("expert_gating_func is ", said, ", which is not supported of ", m.architecture());
}
void only_plain_choice(const GgufMetadata& m) {
  m.lacks({"leading_dense_block_count", "attention.sliding_window"});
  for (const char* key : {"expert_weights_scale", "expert_group_count", "expert_group_used_count"})
    if (const double n = m.number(key, 1); n != 1 && n != 0)
      m.fail(key, " is ", n, ", which is not supported of ", m.architecture());
}

// The first layer that has a router.
std::int64_t first_routed(const GgufMetadata& m) {
  const std::int64_t layers = std::min<std::int64_t>(m.size("block_count"), std::ssize(m.weights().tensors()));
  for (std::int64_t i = 0; i < layers; ++i)
    if (m.has_tensor(str_cat("blk.", i, ".ffn_gate_inp.weight"))) return i;
  m.fail("no layer has a router (blk.N.ffn_gate_inp.weight)");
}

// The width of an expert, for which files of 2024 have no key.
std::int64_t expert_width(const GgufMetadata& m) {
  return m.size("expert_feed_forward_length", m.extent(str_cat("blk.", first_routed(m), ".ffn_down_exps.weight"), 2));
}

void write_experts(const GgufMetadata& m, ConfigText& c, std::string_view count) {
  c.set(count, m.size("expert_count")).set("num_experts_per_tok", m.size("expert_used_count"));
}

// Whether the weights of the chosen experts are divided by their sum is fixed in llama.cpp for each architecture.
void write_norm(const GgufMetadata& m, ConfigText& c, bool usual) {
  c.set("norm_topk_prob", m.flag("expert_weights_norm", usual));
}

void write_qwen2moe(const GgufMetadata& m, ConfigText& c) {
  begin_routed(m, c, "qwen2_moe", "Qwen2MoeForCausalLM");
  write_llama_sizes(m, c);
  write_experts(m, c, "num_experts");
  c.set("moe_intermediate_size", expert_width(m));
  c.set("shared_expert_intermediate_size",
        m.size("expert_shared_feed_forward_length",
               m.extent(str_cat("blk.", first_routed(m), ".ffn_down_shexp.weight"), 1)));
  write_norm(m, c, false);
  only_gating(m, Gating::Softmax), only_plain_choice(m);
  m.neutral({"expert_shared_count"});
}

void write_qwen3moe(const GgufMetadata& m, ConfigText& c) {
  begin_routed(m, c, "qwen3_moe", "Qwen3MoeForCausalLM");
  write_llama_sizes(m, c);
  write_experts(m, c, "num_experts");
  c.set("moe_intermediate_size", expert_width(m));
  write_norm(m, c, true);
  only_gating(m, Gating::Softmax), only_plain_choice(m);
  m.lacks({"expert_shared_count", "expert_shared_feed_forward_length"});
}

void write_olmoe(const GgufMetadata& m, ConfigText& c) {
  begin_routed(m, c, "olmoe", "OlmoeForCausalLM");
  write_llama_sizes(m, c);
  write_experts(m, c, "num_experts");
  if (expert_width(m) != m.size("feed_forward_length")) m.fail("expert_feed_forward_length is not feed_forward_length");
  if (const double clip = m.number("attention.clamp_kqv", 0); clip > 0) c.set("clip_qkv", clip);
  write_norm(m, c, false);
  only_gating(m, Gating::Softmax), only_plain_choice(m);
  m.neutral({"attention.layer_norm_epsilon"});
}

void write_granitemoe(const GgufMetadata& m, ConfigText& c) {
  const std::int64_t shared = m.size("expert_shared_feed_forward_length", 0);
  if (shared > 0) begin_routed(m, c, "granitemoeshared", "GraniteMoeSharedForCausalLM");
  else begin_routed(m, c, "granitemoe", "GraniteMoeForCausalLM");
  write_llama_sizes(m, c);
  write_experts(m, c, "num_local_experts");
  if (shared > 0) c.set("shared_intermediate_size", shared);
  c.set("embedding_multiplier", m.number("embedding_scale", 1))
      .set("residual_multiplier", m.number("residual_scale", 1));
  c.set("logits_scaling", m.number("logit_scale", 1));
  const double scale = m.number("attention.scale", 0);
  c.set("attention_multiplier", scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(head_of(m))));
  if (expert_width(m) != m.size("feed_forward_length")) m.fail("expert_feed_forward_length is not feed_forward_length");
  only_plain_choice(m);
  if (m.number("expert_gating_func", 0) != static_cast<double>(Gating::SoftmaxOfChosen))
    only_gating(m, Gating::Softmax);  // divided by the sum it is the same
  if (!m.flag("expert_weights_norm", true)) m.fail("expert_weights_norm is false, which is not supported");
}

void write_gpt_oss(const GgufMetadata& m, ConfigText& c) {
  begin_routed(m, c, "gpt_oss", "GptOssForCausalLM");
  write_sizes(m, c);
  if (!m.has("attention.key_length")) c.set("head_dim", head_of(m));
  c.set("rms_norm_eps", m.number("attention.layer_norm_rms_epsilon", 1e-5));
  write_rope(m, c, head_of(m), 150000);
  write_experts(m, c, "num_local_experts");
  if (expert_width(m) != m.size("feed_forward_length")) m.fail("expert_feed_forward_length is not feed_forward_length");
  c.set("sliding_window", m.size("attention.sliding_window"));
  only_gating(m, Gating::SoftmaxOfChosen);
  m.lacks({"expert_shared_count", "leading_dense_block_count"});
}

// DeepSeek V2 scores by softmax, V3 by sigmoid.
void write_deepseek_experts(const GgufMetadata& m, ConfigText& c, bool sigmoid) {
  write_experts(m, c, "n_routed_experts");
  c.set("moe_intermediate_size", m.size("expert_feed_forward_length"));
  c.set("n_shared_experts", m.size("expert_shared_count"));
  const std::int64_t plain = m.size("leading_dense_block_count", 0);
  c.set("first_k_dense_replace", plain);
  const double scale = m.number("expert_weights_scale", 1);
  c.set("routed_scaling_factor", scale == 0 ? 1 : scale);  // 0 stands for none
  const std::int64_t groups = m.size("expert_group_count", 1), chosen = m.size("expert_group_used_count", 1);
  c.set("n_group", groups).set("topk_group", chosen);
  const bool normalized = m.flag("expert_weights_norm", sigmoid);
  if (sigmoid) c.set("norm_topk_prob", normalized);
  else if (normalized) m.fail("expert_weights_norm is true with a softmax, which is not supported");
  if (!sigmoid) c.set("topk_method", groups > 1 ? "group_limited_greedy" : "greedy");
}

void write_deepseek2(const GgufMetadata& m, ConfigText& c) {
  const auto gating = m.number("expert_gating_func", static_cast<double>(Gating::Softmax));
  const bool sigmoid = gating == static_cast<double>(Gating::Sigmoid);
  if (!sigmoid && gating != static_cast<double>(Gating::Softmax))
    m.fail("expert_gating_func is ", gating, ", and only softmax (1) and sigmoid (2) are supported");
  if (sigmoid) begin_routed(m, c, "deepseek_v3", "DeepseekV3ForCausalLM");
  else begin_routed(m, c, "deepseek_v2", "DeepseekV2ForCausalLM");
  const std::int64_t heads = m.size("attention.head_count"), turned = m.size("rope.dimension_count");
  // files before 2025 have the sizes of whole heads under the plain names
  const std::int64_t key = m.size("attention.key_length_mla", m.size("attention.key_length"));
  const std::int64_t value = m.size("attention.value_length_mla", m.size("attention.value_length"));
  if (turned >= key) m.fail("rope.dimension_count is ", turned, " of heads of ", key, " elements");
  c.set("hidden_size", m.size("embedding_length")).set("num_hidden_layers", m.size("block_count"));
  c.set("num_attention_heads", heads).set("num_key_value_heads", heads).set("head_dim", turned);
  c.set("max_position_embeddings", m.size("context_length")).set("intermediate_size", m.size("feed_forward_length"));
  c.set("rms_norm_eps", m.number("attention.layer_norm_rms_epsilon", 1e-6));
  c.set("kv_lora_rank", m.size("attention.kv_lora_rank"));
  if (const std::int64_t rank = m.size("attention.q_lora_rank", 0); rank > 0) c.set("q_lora_rank", rank);
  else c.null("q_lora_rank");
  c.set("qk_nope_head_dim", key - turned).set("qk_rope_head_dim", turned).set("v_head_dim", value);
  write_rope(m, c, turned);
  write_deepseek_experts(m, c, sigmoid);
  m.lacks({"nextn_predict_layers"});
  m.neutral({"attention.head_count_kv"});
}

}  // namespace

const std::vector<Translation> kRouted{
    {"qwen2moe", write_qwen2moe},     {"qwen3moe", write_qwen3moe}, {"olmoe", write_olmoe},
    {"granitemoe", write_granitemoe}, {"gpt-oss", write_gpt_oss},   {"deepseek2", write_deepseek2},
};

}  // namespace lc::gguf
