// Decoder-only language models without routers. What transformers' classes do by default and GGUF has no key for
// (activations) is what each of these models was published with.
#include <cmath>

#include "lightcone/io/printable.h"
#include "lightcone/models/gguf/gguf_config.h"

namespace lc::gguf {
namespace {

void begin(const GgufMetadata& m, ConfigText& c, std::string_view type, std::string_view architecture) {
  c.set("model_type", type).set("architectures", std::vector<std::string>{std::string(architecture)});
  c.set("vocab_size", m.extent("token_embd.weight", 0));
  m.neutral({"vocab_size", "pooling_type"});
  if (!m.flag("attention.causal", true))
    m.fail("attention.causal is false, which is not supported of a language model");
}

double layer_norm_eps(const GgufMetadata& m) { return m.number("attention.layer_norm_epsilon", 1e-5); }

// GPT-2 and StarCoder 1: a table of positions, and all of them have as many keys as they say.
void write_gpt2(const GgufMetadata& m, ConfigText& c) {
  const bool starcoder = m.architecture() == "starcoder";
  begin(m, c, starcoder ? "gpt_bigcode" : "gpt2", starcoder ? "GPTBigCodeForCausalLM" : "GPT2LMHeadModel");
  const std::int64_t heads = m.size("attention.head_count"),
                     kv = m.size("attention.head_count_kv", starcoder ? 1 : heads);
  c.set("n_embd", m.size("embedding_length")).set("n_layer", m.size("block_count")).set("n_head", heads);
  c.set("n_positions", m.size("context_length")).set("n_inner", m.size("feed_forward_length"));
  c.set("layer_norm_epsilon", layer_norm_eps(m));
  if (starcoder) c.set("multi_query", kv == 1);
  if (kv != heads && !(starcoder && kv == 1)) m.fail("attention.head_count_kv is ", kv, " of ", heads, " heads");
}

void write_neox(const GgufMetadata& m, ConfigText& c) {
  begin(m, c, "gpt_neox", "GPTNeoXForCausalLM");
  write_sizes(m, c);
  c.set("layer_norm_eps", layer_norm_eps(m));
  c.set("use_parallel_residual", m.flag("use_parallel_residual", true));
  write_rope(m, c, head_of(m));
}

void write_gptj(const GgufMetadata& m, ConfigText& c) {
  begin(m, c, "gptj", "GPTJForCausalLM");
  c.set("n_embd", m.size("embedding_length")).set("n_layer", m.size("block_count"));
  c.set("n_head", m.size("attention.head_count")).set("n_positions", m.size("context_length"));
  c.set("n_inner", m.size("feed_forward_length")).set("layer_norm_epsilon", layer_norm_eps(m));
  c.set("rotary_dim", m.size("rope.dimension_count", head_of(m)));
  if (m.number("rope.freq_base", 10000) != 10000) m.fail("rope.freq_base is not 10000, as GPT-J has it");
}

// The file has one norm for both halves of a layer, or attn_norm_2 beside it.
void write_falcon(const GgufMetadata& m, ConfigText& c) {
  begin(m, c, "falcon", "FalconForCausalLM");
  const std::string layout = m.text("tensor_data_layout", "jploski");
  if (layout != "jploski") m.fail("tensor_data_layout is ", in_quotes(layout), ", and only 'jploski' is known");
  write_sizes(m, c);
  c.set("num_kv_heads", m.size("attention.head_count_kv", 1)).set("ffn_hidden_size", m.size("feed_forward_length"));
  c.set("layer_norm_epsilon", layer_norm_eps(m)).set("new_decoder_architecture", true);
  c.set("num_ln_in_parallel_attn", m.has_tensor("blk.0.attn_norm_2.weight") ? 2 : 1);
  write_rope(m, c, head_of(m));
}

void write_bloom(const GgufMetadata& m, ConfigText& c) {
  begin(m, c, "bloom", "BloomForCausalLM");
  const std::int64_t width = m.size("embedding_length"), inner = m.size("feed_forward_length", 4 * width);
  c.set("hidden_size", width).set("n_layer", m.size("block_count")).set("n_head", m.size("attention.head_count"));
  c.set("seq_length", m.size("context_length")).set("layer_norm_epsilon", layer_norm_eps(m));
  if (m.size("attention.head_count_kv", m.size("attention.head_count")) != m.size("attention.head_count"))
    m.fail("attention.head_count_kv is not attention.head_count");
  if (inner != 4 * width) m.fail("feed_forward_length is ", inner, ", and not four times ", width);
  if (m.number("attention.max_alibi_bias", 8) != 8)
    m.fail("attention.max_alibi_bias is ", m.number("attention.max_alibi_bias", 8), ", and only 8 is supported");
}

void write_starcoder2(const GgufMetadata& m, ConfigText& c) {
  begin(m, c, "starcoder2", "Starcoder2ForCausalLM");
  write_sizes(m, c);
  c.set("norm_epsilon", layer_norm_eps(m));
  if (const std::int64_t w = m.size("attention.sliding_window", 0); w > 0) c.set("sliding_window", w);
  write_rope(m, c, head_of(m));
}

void write_phi2(const GgufMetadata& m, ConfigText& c) {
  begin(m, c, "phi", "PhiForCausalLM");
  write_sizes(m, c);
  c.set("layer_norm_eps", layer_norm_eps(m));
  write_rope(m, c, head_of(m));
}

void write_phi3(const GgufMetadata& m, ConfigText& c) {
  begin(m, c, "phi3", "Phi3ForCausalLM");
  write_llama_sizes(m, c);
  if (const std::int64_t w = m.size("attention.sliding_window", 0); w > 0) c.set("sliding_window", w);
}

// Llama and Mistral; with experts it is Mixtral (routed_keys.cpp).
void write_llama(const GgufMetadata& m, ConfigText& c) {
  const bool routed = m.size("expert_count", 0) > 0;
  const std::int64_t window = m.size("attention.sliding_window", 0);
  if (routed) begin(m, c, "mixtral", "MixtralForCausalLM");
  else if (window > 0) begin(m, c, "mistral", "MistralForCausalLM");
  else begin(m, c, "llama", "LlamaForCausalLM");
  write_llama_sizes(m, c);
  if (window > 0) c.set("sliding_window", window);
  if (routed)
    c.set("num_local_experts", m.size("expert_count")).set("num_experts_per_tok", m.size("expert_used_count"));
  if (routed && m.size("expert_feed_forward_length", m.size("feed_forward_length")) != m.size("feed_forward_length"))
    m.fail("expert_feed_forward_length is not feed_forward_length");
  m.neutral({"expert_used_count"});
  m.lacks({"expert_shared_count", "expert_group_count", "attention.scale", "logit_scale", "attention.clamp_kqv",
           "attn_logit_softcapping", "final_logit_softcapping"});
}

void write_qwen2(const GgufMetadata& m, ConfigText& c) {
  begin(m, c, "qwen2", "Qwen2ForCausalLM");
  write_llama_sizes(m, c);
  m.lacks({"attention.sliding_window"});
}
void write_qwen3(const GgufMetadata& m, ConfigText& c) {
  begin(m, c, "qwen3", "Qwen3ForCausalLM");
  write_llama_sizes(m, c);
  m.lacks({"attention.sliding_window"});
}

// The 27B models of Gemma 2 and 3 scale scores by the width over the heads, the others by the width of a head: the file
// has no key for it.
double query_scalar(const GgufMetadata& m, std::int64_t layers_of_largest) {
  if (const double scale = m.number("attention.scale", 0); scale > 0) return 1 / (scale * scale);
  const auto width = static_cast<double>(m.size("embedding_length"));
  const bool largest = m.size("block_count") == layers_of_largest;
  return largest ? width / static_cast<double>(m.size("attention.head_count")) : static_cast<double>(head_of(m));
}

void write_gemma(const GgufMetadata& m, ConfigText& c) {
  begin(m, c, "gemma", "GemmaForCausalLM");
  write_llama_sizes(m, c);
}

void write_caps(const GgufMetadata& m, ConfigText& c) {
  for (const auto& [theirs, ours] : {std::pair("attn_logit_softcapping", "attn_logit_softcapping"),
                                     std::pair("final_logit_softcapping", "final_logit_softcapping")})
    if (const double cap = m.number(theirs, 0); cap > 0) c.set(ours, cap);
    else c.null(ours);
}

void write_gemma2(const GgufMetadata& m, ConfigText& c) {
  constexpr std::int64_t kLayersOf27B = 46;
  begin(m, c, "gemma2", "Gemma2ForCausalLM");
  write_llama_sizes(m, c);
  c.set("query_pre_attn_scalar", query_scalar(m, kLayersOf27B));
  c.set("sliding_window", m.size("attention.sliding_window", 4096));
  write_caps(m, c);
}

// Every sixth layer sees everything, unless the file says otherwise; the others turn by another base.
void write_gemma3(const GgufMetadata& m, ConfigText& c) {
  constexpr std::int64_t kLayersOf27B = 62, kPattern = 6;
  begin(m, c, "gemma3_text", "Gemma3ForCausalLM");
  write_sizes(m, c);
  c.set("rms_norm_eps", m.number("attention.layer_norm_rms_epsilon", 1e-6));
  c.set("query_pre_attn_scalar", query_scalar(m, kLayersOf27B));
  c.set("sliding_window", m.size("attention.sliding_window"));
  write_caps(m, c);
  const std::int64_t layers = m.size("block_count");
  const std::vector<double> listed = m.numbers("attention.sliding_window_pattern", static_cast<std::size_t>(layers));
  const std::int64_t pattern = listed.size() == 1 ? static_cast<std::int64_t>(listed.front()) : kPattern;
  if (pattern < 1) m.fail("attention.sliding_window_pattern is ", pattern, ", and not 1 or more");
  if (listed.size() > 1 && std::ssize(listed) != layers)
    m.fail("attention.sliding_window_pattern has ", listed.size(), " entries for ", layers, " layers");
  std::vector<std::string> kinds;
  for (std::int64_t i = 0; i < layers && i < 1 << 14; ++i) {
    const bool slides = listed.size() > 1 ? listed[static_cast<std::size_t>(i)] != 0 : (i + 1) % pattern != 0;
    kinds.emplace_back(slides ? "sliding_attention" : "full_attention");
  }
  c.set("layer_types", kinds);
  ConfigText local;
  local.set("rope_type", "default").set("rope_theta", m.number("rope.freq_base_swa", 10000));
  c.set("rope_parameters",
        ConfigText().set("full_attention", rope_of(m, head_of(m), 1e6)).set("sliding_attention", local));
}

void write_granite(const GgufMetadata& m, ConfigText& c) {
  begin(m, c, "granite", "GraniteForCausalLM");
  write_llama_sizes(m, c);
  c.set("embedding_multiplier", m.number("embedding_scale", 1))
      .set("residual_multiplier", m.number("residual_scale", 1));
  c.set("logits_scaling", m.number("logit_scale", 1));
  // without the key it is the usual scale
  const double usual = 1 / std::sqrt(static_cast<double>(head_of(m)));
  const double scale = m.number("attention.scale", 0);
  c.set("attention_multiplier", scale != 0 ? scale : usual);
}

void write_olmo2(const GgufMetadata& m, ConfigText& c) {
  begin(m, c, "olmo2", "Olmo2ForCausalLM");
  write_llama_sizes(m, c);
  m.lacks({"attention.sliding_window"});
  m.neutral({"attention.layer_norm_epsilon"});
}

void write_mamba(const GgufMetadata& m, ConfigText& c) {
  begin(m, c, "mamba", "MambaForCausalLM");
  c.set("hidden_size", m.size("embedding_length")).set("num_hidden_layers", m.size("block_count"));
  c.set("intermediate_size", m.size("ssm.inner_size")).set("state_size", m.size("ssm.state_size"));
  c.set("conv_kernel", m.size("ssm.conv_kernel")).set("time_step_rank", m.size("ssm.time_step_rank"));
  c.set("layer_norm_epsilon", m.number("attention.layer_norm_rms_epsilon", 1e-5));
  m.lacks({"ssm.dt_b_c_rms", "ssm.group_count"});
  m.neutral({"context_length", "feed_forward_length", "attention.head_count", "attention.head_count_kv"});
}

}  // namespace

std::int64_t head_of(const GgufMetadata& m) {
  const std::int64_t heads = m.size("attention.head_count"), width = m.size("embedding_length");
  const std::int64_t head = m.size("attention.key_length", width / heads),
                     value = m.size("attention.value_length", head);
  if (head < 1 || (!m.has("attention.key_length") && width % heads != 0))
    m.fail(heads, " attention heads do not divide a width of ", width);
  if (value != head) m.fail("heads of ", head, " elements for keys and ", value, " for values are not supported");
  return head;
}

void write_sizes(const GgufMetadata& m, ConfigText& c) {
  const std::int64_t heads = m.size("attention.head_count"), kv = m.size("attention.head_count_kv", heads);
  c.set("hidden_size", m.size("embedding_length")).set("num_hidden_layers", m.size("block_count"));
  c.set("num_attention_heads", heads);
  const bool falcon = m.architecture() == "falcon", neox = m.architecture() == "gptneox";
  if (!falcon && !neox) c.set("num_key_value_heads", kv);
  if (neox && kv != heads) m.fail("attention.head_count_kv is ", kv, " of ", heads, " heads");
  if (m.has("attention.key_length")) c.set("head_dim", head_of(m));
  c.set("max_position_embeddings", m.size("context_length"));
  if (!falcon) c.set("intermediate_size", m.size("feed_forward_length"));
  m.neutral({"attention.value_length"});
}

void write_llama_sizes(const GgufMetadata& m, ConfigText& c) {
  write_sizes(m, c);
  if (!m.has("attention.key_length")) c.set("head_dim", head_of(m));
  c.set("rms_norm_eps", m.number("attention.layer_norm_rms_epsilon", 1e-5));
  write_rope(m, c, head_of(m));
}

const std::vector<Translation> kLanguages{
    {"gpt2", write_gpt2},
    {"gptneox", write_neox},
    {"gptj", write_gptj},
    {"falcon", write_falcon},
    {"bloom", write_bloom},
    {"starcoder", write_gpt2},
    {"starcoder2", write_starcoder2},
    {"phi2", write_phi2},
    {"phi3", write_phi3},
    {"llama", write_llama},
    {"mistral", write_llama},
    {"qwen2", write_qwen2},
    {"qwen3", write_qwen3},
    {"gemma", write_gemma},
    {"gemma2", write_gemma2},
    {"gemma3", write_gemma3},
    {"granite", write_granite},
    {"olmo2", write_olmo2},
    {"mamba", write_mamba},
};

}  // namespace lc::gguf
