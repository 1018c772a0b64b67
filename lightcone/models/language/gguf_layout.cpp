#include "lightcone/models/language/gguf_layout.h"

#include <algorithm>
#include <iterator>

namespace lc {
namespace {

constexpr WeightName kGgufNames[] = {
    {"rope_freqs.weight", ""},
    {"rope_factors_long.weight", ""},
    {"rope_factors_short.weight", ""},
    {"token_embd", "tokens"},
    {"token_embd_norm", "embedding_norm"},
    {"position_embd", "positions"},
    {"output_norm", "norm"},
    {"output", "head"},
    {"blk.#.attn_rot_embd", ""},
    {"blk.#.attn_norm", "layers.#.attention_norm"},
    {"blk.#.attn_q", "layers.#.attention.query"},
    {"blk.#.attn_k", "layers.#.attention.key"},
    {"blk.#.attn_v", "layers.#.attention.value"},
    {"blk.#.attn_qkv", "layers.#.attention.query_key_value"},
    {"blk.#.attn_output", "layers.#.attention.output"},
    {"blk.#.attn_q_norm", "layers.#.attention.query_norm"},
    {"blk.#.attn_k_norm", "layers.#.attention.key_norm"},
    {"blk.#.attn_sinks.weight", "layers.#.attention.sinks"},
    {"blk.#.attn_q_a", "layers.#.attention.query_down"},
    {"blk.#.attn_q_a_norm", "layers.#.attention.query_down_norm"},
    {"blk.#.attn_q_b", "layers.#.attention.query_up"},
    {"blk.#.attn_kv_a_mqa", "layers.#.attention.latent_down"},
    {"blk.#.attn_kv_a_norm", "layers.#.attention.latent_norm"},
    {"blk.#.attn_kv_b", "layers.#.attention.latent_up"},
    {"blk.#.attn_k_b.weight", "layers.#.attention.key_up"},
    {"blk.#.attn_v_b.weight", "layers.#.attention.value_up"},
    {"blk.#.post_attention_norm", "layers.#.attention_output_norm"},
    {"blk.#.ffn_norm", "layers.#.network_norm"},
    {"blk.#.post_ffw_norm", "layers.#.network_output_norm"},
    {"blk.#.ffn_gate_inp", "layers.#.experts.router"},
    {"blk.#.exp_probs_b.bias", "layers.#.experts.choice_bias"},
    {"blk.#.exp_probs_b", "layers.#.experts.choice_bias"},
    {"blk.#.ffn_gate_exps.weight", "layers.#.experts.gate"},
    {"blk.#.ffn_gate_exps.bias", "layers.#.experts.gate_bias"},
    {"blk.#.ffn_up_exps.weight", "layers.#.experts.up"},
    {"blk.#.ffn_up_exps.bias", "layers.#.experts.up_bias"},
    {"blk.#.ffn_gate_up_exps.weight", "layers.#.experts.gate_up"},
    {"blk.#.ffn_gate_up_exps.bias", "layers.#.experts.gate_up_bias"},
    {"blk.#.ffn_down_exps.weight", "layers.#.experts.down"},
    {"blk.#.ffn_down_exps.bias", "layers.#.experts.down_bias"},
    {"blk.#.ffn_gate_inp_shexp", "layers.#.experts.shared_gate"},
    {"blk.#.ffn_gate_shexp", "layers.#.experts.shared.gate"},
    {"blk.#.ffn_up_shexp", "layers.#.experts.shared.up"},
    {"blk.#.ffn_down_shexp", "layers.#.experts.shared.down"},
    // files of 2023 have a tensor for each expert
    {"blk.#.ffn_gate.#", "layers.#.experts.#.gate"},
    {"blk.#.ffn_up.#", "layers.#.experts.#.up"},
    {"blk.#.ffn_down.#", "layers.#.experts.#.down"},
    {"blk.#.ffn_gate", "layers.#.network.gate"},
    {"blk.#.ffn_up", "layers.#.network.up"},
    {"blk.#.ffn_down", "layers.#.network.down"},
    {"blk.#.ssm_in", "layers.#.mixer.in"},
    {"blk.#.ssm_conv1d", "layers.#.mixer.conv"},
    {"blk.#.ssm_x", "layers.#.mixer.select"},
    {"blk.#.ssm_dt", "layers.#.mixer.step"},
    {"blk.#.ssm_a", "layers.#.mixer.decay"},
    {"blk.#.ssm_d", "layers.#.mixer.skip"},
    {"blk.#.ssm_out", "layers.#.mixer.output"},
};
// Names that mean another part in some architectures.
constexpr WeightName kFalconTwoNorms[] = {
    {"blk.#.attn_norm", "layers.#.network_norm"},
    {"blk.#.attn_norm_2", "layers.#.attention_norm"},
};
constexpr WeightName kGptOssNorms[] = {{"blk.#.post_attention_norm", "layers.#.network_norm"}};
constexpr WeightName kMambaNorms[] = {{"blk.#.attn_norm", "layers.#.mixer_norm"}};
constexpr WeightName kPhi3Joined[] = {{"blk.#.ffn_up", "layers.#.network.gate_up"}};

// Architectures whose queries and keys the converter put in the order in which neighbours turn together.
constexpr std::string_view kInterleaved[] = {"llama", "mistral", "granite", "granitemoe", "deepseek2", "gptj"};

bool has(const Weights& w, std::string_view name) { return w.find(name) != nullptr; }

// Gemma's norms hold 1 + weight here.
void use_norms(const Weights& w, std::string_view first, NormOptions& n) {
  if (n.kind == NormKind::RmsPlusOne) n.kind = NormKind::Rms;
  n.bias = has(w, str_cat(first, ".bias"));
}

void use_attention(const Weights& w, LanguageAttention& a) {
  const auto with = [&](std::string_view part) { return has(w, str_cat("blk.0.attn_", part)); };
  a.layout = with("qkv.weight") ? QueryKeyValue::Joined : QueryKeyValue::Separate;
  a.query_bias = with("q.bias") || with("qkv.bias") || with("q_a.bias");
  a.key_bias = with("k.bias") || with("kv_a_mqa.bias");
  a.value_bias = with("v.bias"), a.output_bias = with("output.bias");
  use_norms(w, "blk.0.attn_q_norm", a.norm_options);
  if (a.latent) a.latent->apart = with("k_b.weight");
}

void use_network(const Weights& w, LanguageNetwork& n, const std::string& before, const std::string& after) {
  const auto with = [&](const char* part) { return has(w, str_cat(before, part, after)); };
  n.up_bias = with("ffn_up") || with("ffn_gate_up");
  n.down_bias = with("ffn_down");
}

void use_experts(const Weights& w, LanguageExperts& e, std::size_t layer) {
  const std::string before = str_cat("blk.", layer, ".");
  const auto with = [&](const char* part) { return has(w, str_cat(before, part)); };
  e.stacked = !with("ffn_gate.0.weight");
  e.apart = e.stacked && !with("ffn_gate_up_exps.weight");
  e.stacked_transposed = e.alternating = e.mxfp4 = e.network.joined = false;
  e.router_bias = with("ffn_gate_inp.bias");
  use_network(w, e.network, before, "_exps.bias");
}

}  // namespace

std::vector<WeightName> gguf_names(const Weights& w, std::string_view architecture) {
  std::vector<WeightName> all;
  const auto add = [&](const auto& rows) { all.insert(all.end(), std::begin(rows), std::end(rows)); };
  if (architecture == "falcon" && has(w, "blk.0.attn_norm_2.weight")) add(kFalconTwoNorms);
  if (architecture == "gpt-oss") add(kGptOssNorms);
  if (architecture == "mamba") add(kMambaNorms);
  if (architecture == "phi3" && !has(w, "blk.0.ffn_gate.weight")) add(kPhi3Joined);
  add(kGgufNames);
  return all;
}

void use_gguf_layout(const Weights& w, std::string_view architecture, LanguageConfig& l) {
  l.transposed = false;
  l.tied = !has(w, "output.weight"), l.head_bias = has(w, "output.bias");
  use_norms(w, "output_norm", l.norm);
  use_attention(w, l.attention);
  use_network(w, l.network, "blk.0.", ".bias");
  l.network.joined = l.network.gated && !has(w, "blk.0.ffn_gate.weight");
  const bool pairs = std::ranges::find(kInterleaved, architecture) != std::end(kInterleaved);
  for (RopeConfig& r : l.ropes) r.interleaved = pairs;
  if (l.state_space) l.state_space->rates = true;
  if (l.experts.count > 0)
    for (std::size_t i = 0; i < l.layers.size(); ++i)
      l.layers[i].experts = has(w, str_cat("blk.", i, ".ffn_gate_inp.weight"));
  const auto routed = std::ranges::find_if(l.layers, [](const LanguageLayerKind& k) { return k.experts; });
  if (routed != l.layers.end()) use_experts(w, l.experts, static_cast<std::size_t>(routed - l.layers.begin()));
  // a family whose first layers are experts has no plain network to look at
  if (routed == l.layers.begin()) l.network.joined = false;
}

}  // namespace lc
