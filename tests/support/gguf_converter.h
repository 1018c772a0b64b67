// What llama.cpp's converter makes of a folder of transformers: GGUF files in its names and its layout.
#pragma once

#include <cmath>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lightcone/io/checkpoints/quantize.h"
#include "lightcone/models/files/weight_table.h"
#include "tiny_models.h"

namespace lc::test {

using Json = nlohmann::json;
using Names = std::vector<std::pair<std::string, std::string>>;

struct Matrix {
  std::vector<std::int64_t> shape;
  std::vector<float> values;
  std::int64_t rows() const { return shape[0]; }
  std::int64_t row() const { return std::ssize(values) / shape[0]; }
};

// What llama.cpp's converter (conversion/ of ggml-org/llama.cpp) does with the weights of a folder, written down again.
class Converter {
 public:
  Converter(Json config, const std::string& folder) : c_(std::move(config)) {
    const Weights w = Weights::open(folder);
    for (const auto& [name, t] : w.tensors()) hf_[name] = {t.shape, Weights::read(t)};
    type_ = c_["model_type"];
    std::erase_if(hf_, [](const auto& t) { return t.first.ends_with(".rotary_emb.inv_freq"); });
    for (const auto& [theirs, ours] : Names{{"rotary_emb_base", "rope_theta"}, {"rotary_pct", "partial_rotary_factor"}})
      if (c_.contains(theirs)) c_[ours] = c_[theirs];
    if (!c_.contains("rope_parameters") && c_.contains("rope_theta"))  // files before transformers 5
      c_["rope_parameters"] = {{"rope_type", "default"},
                               {"rope_theta", c_["rope_theta"]},
                               {"partial_rotary_factor", c_.value("partial_rotary_factor", 1.0)}};
  }
  // `apart`: latent attention as since 2025. `blocks`: matrices whose rows are whole blocks are quantised.
  void write(const std::string& path, bool apart = true, std::optional<QuantFormat> blocks = {});
  GgufFields fields = {};
  std::string arch = {};

 private:
  std::int64_t number(const char* key, const char* other = "") const {
    return c_.contains(key) && c_[key].is_number() ? c_[key].get<std::int64_t>() : *other != 0 ? number(other) : 0;
  }
  void whole(const std::string& key, std::int64_t n) {
    fields.emplace_back(arch + "." + key, static_cast<std::uint32_t>(n));
  }
  void real(const std::string& key, double x) { fields.emplace_back(arch + "." + key, static_cast<float>(x)); }
  void sizes();
  void rotation();
  void experts();
  void features();
  void put(std::string name, Matrix m);
  void stacked();
  Matrix changed(const std::string& name, Matrix m) const;
  Matrix permuted(const Matrix& m, std::int64_t heads) const;
  Matrix joined(const Matrix& m, std::int64_t kv, std::int64_t heads) const;
  void latent(const std::string& prefix);
  Json c_;
  std::string type_;
  std::map<std::string, Matrix> hf_;
  std::list<Matrix> kept_;
  std::list<std::vector<std::byte>> blocks_kept_;
  std::optional<QuantFormat> blocks_;
  std::vector<TensorToSave> tensors_;
};

inline const std::map<std::string, std::string> kArchitectures{{"gpt2", "gpt2"},
                                                               {"gpt_bigcode", "starcoder"},
                                                               {"gpt_neox", "gptneox"},
                                                               {"gptj", "gptj"},
                                                               {"falcon", "falcon"},
                                                               {"bloom", "bloom"},
                                                               {"starcoder2", "starcoder2"},
                                                               {"phi", "phi2"},
                                                               {"phi3", "phi3"},
                                                               {"llama", "llama"},
                                                               {"mistral", "llama"},
                                                               {"qwen2", "qwen2"},
                                                               {"qwen3", "qwen3"},
                                                               {"gemma", "gemma"},
                                                               {"gemma2", "gemma2"},
                                                               {"gemma3_text", "gemma3"},
                                                               {"granite", "granite"},
                                                               {"granitemoe", "granitemoe"},
                                                               {"granitemoeshared", "granitemoe"},
                                                               {"olmo2", "olmo2"},
                                                               {"olmoe", "olmoe"},
                                                               {"mixtral", "llama"},
                                                               {"qwen2_moe", "qwen2moe"},
                                                               {"qwen3_moe", "qwen3moe"},
                                                               {"deepseek_v2", "deepseek2"},
                                                               {"deepseek_v3", "deepseek2"},
                                                               {"gpt_oss", "gpt-oss"},
                                                               {"mamba", "mamba"}};

// The converter's names (gguf-py/gguf/tensor_mapping.py), longer ones first.
inline const Names kGgufNames{{"transformer.wte", "token_embd"},
                              {"transformer.wpe", "position_embd"},
                              {"transformer.ln_f", "output_norm"},
                              {"transformer.word_embeddings", "token_embd"},
                              {"transformer.word_embeddings_layernorm", "token_embd_norm"},
                              {"gpt_neox.embed_in", "token_embd"},
                              {"embed_out", "output"},
                              {"gpt_neox.final_layer_norm", "output_norm"},
                              {"backbone.embeddings", "token_embd"},
                              {"backbone.norm_f", "output_norm"},
                              {"model.embed_tokens", "token_embd"},
                              {"model.norm", "output_norm"},
                              {"model.final_layernorm", "output_norm"},
                              {"lm_head", "output"},
                              {"B.ln_1", "blk.#.attn_norm"},
                              {"B.ln_2", "blk.#.ffn_norm"},
                              {"B.attn.c_attn", "blk.#.attn_qkv"},
                              {"B.attn.c_proj", "blk.#.attn_output"},
                              {"B.attn.q_proj", "blk.#.attn_q"},
                              {"B.attn.k_proj", "blk.#.attn_k"},
                              {"B.attn.v_proj", "blk.#.attn_v"},
                              {"B.attn.out_proj", "blk.#.attn_output"},
                              {"B.mlp.fc_in", "blk.#.ffn_up"},
                              {"B.mlp.fc_out", "blk.#.ffn_down"},
                              {"B.mlp.c_fc", "blk.#.ffn_up"},
                              {"B.mlp.c_proj", "blk.#.ffn_down"},
                              {"B.mlp.fc1", "blk.#.ffn_up"},
                              {"B.mlp.fc2", "blk.#.ffn_down"},
                              {"B.mlp.dense_h_to_4h", "blk.#.ffn_up"},
                              {"B.mlp.dense_4h_to_h", "blk.#.ffn_down"},
                              {"B.input_layernorm", "blk.#.attn_norm"},
                              {"B.ln_attn", "blk.#.attn_norm_2"},
                              {"B.ln_mlp", "blk.#.attn_norm"},
                              {"B.self_attention.query_key_value", "blk.#.attn_qkv"},
                              {"B.attention.query_key_value", "blk.#.attn_qkv"},
                              {"B.self_attention.dense", "blk.#.attn_output"},
                              {"B.attention.dense", "blk.#.attn_output"},
                              {"B.self_attn.q_proj", "blk.#.attn_q"},
                              {"B.self_attn.k_proj", "blk.#.attn_k"},
                              {"B.self_attn.v_proj", "blk.#.attn_v"},
                              {"B.self_attn.o_proj", "blk.#.attn_output"},
                              {"B.self_attn.dense", "blk.#.attn_output"},
                              {"B.self_attn.qkv_proj", "blk.#.attn_qkv"},
                              {"B.self_attn.q_norm", "blk.#.attn_q_norm"},
                              {"B.self_attn.k_norm", "blk.#.attn_k_norm"},
                              {"B.self_attn.q_layernorm", "blk.#.attn_q_norm"},
                              {"B.self_attn.k_layernorm", "blk.#.attn_k_norm"},
                              {"B.self_attn.sinks", "blk.#.attn_sinks.weight"},
                              {"B.self_attn.q_a_proj", "blk.#.attn_q_a"},
                              {"B.self_attn.q_a_layernorm", "blk.#.attn_q_a_norm"},
                              {"B.self_attn.q_b_proj", "blk.#.attn_q_b"},
                              {"B.self_attn.kv_a_proj_with_mqa", "blk.#.attn_kv_a_mqa"},
                              {"B.self_attn.kv_a_layernorm", "blk.#.attn_kv_a_norm"},
                              {"B.self_attn.kv_b_proj", "blk.#.attn_kv_b"},
                              {"B.mlp.gate_up_proj", "blk.#.ffn_up"},
                              {"B.mlp.gate_proj", "blk.#.ffn_gate"},
                              {"B.mlp.up_proj", "blk.#.ffn_up"},
                              {"B.mlp.down_proj", "blk.#.ffn_down"},
                              {"B.mlp.gate.e_score_correction_bias", "blk.#.exp_probs_b.bias"},
                              {"B.mlp.gate", "blk.#.ffn_gate_inp"},
                              {"B.mlp.router", "blk.#.ffn_gate_inp"},
                              {"B.block_sparse_moe.gate", "blk.#.ffn_gate_inp"},
                              {"B.block_sparse_moe.router.layer", "blk.#.ffn_gate_inp"},
                              {"B.block_sparse_moe.router", "blk.#.ffn_gate_inp"},
                              {"B.mlp.shared_expert_gate", "blk.#.ffn_gate_inp_shexp"},
                              {"B.mlp.shared_expert.gate_proj", "blk.#.ffn_gate_shexp"},
                              {"B.mlp.shared_expert.up_proj", "blk.#.ffn_up_shexp"},
                              {"B.mlp.shared_expert.down_proj", "blk.#.ffn_down_shexp"},
                              {"B.mlp.shared_experts.gate_proj", "blk.#.ffn_gate_shexp"},
                              {"B.mlp.shared_experts.up_proj", "blk.#.ffn_up_shexp"},
                              {"B.mlp.shared_experts.down_proj", "blk.#.ffn_down_shexp"},
                              {"B.shared_mlp.output_linear", "blk.#.ffn_down_shexp"},
                              {"B.pre_feedforward_layernorm", "blk.#.ffn_norm"},
                              {"B.post_feedforward_layernorm", "blk.#.post_ffw_norm"},
                              {"B.norm", "blk.#.attn_norm"},
                              {"B.mixer.in_proj", "blk.#.ssm_in"},
                              {"B.mixer.conv1d", "blk.#.ssm_conv1d"},
                              {"B.mixer.x_proj", "blk.#.ssm_x"},
                              {"B.mixer.dt_proj", "blk.#.ssm_dt"},
                              {"B.mixer.A_log", "blk.#.ssm_a"},
                              {"B.mixer.D", "blk.#.ssm_d"},
                              {"B.mixer.out_proj", "blk.#.ssm_out"}};

inline std::string gguf_name(const std::string& type, const std::string& name) {
  const bool both = type == "gemma2" || type == "gemma3_text" || type == "olmo2" || type == "gpt_oss";
  for (const char* block : {"transformer.h.#", "gpt_neox.layers.#", "model.layers.#", "backbone.layers.#"}) {
    if (const auto n = rewritten(name, str_cat(block, ".post_attention_layernorm"),
                                 both ? "blk.#.post_attention_norm" : "blk.#.ffn_norm"))
      return *n;
    for (const auto& [theirs, ours] : kGgufNames)
      if (theirs.starts_with("B."))
        if (const auto n = rewritten(name, block + theirs.substr(1), ours)) return *n;
  }
  for (const auto& [theirs, ours] : kGgufNames)
    if (const auto n = rewritten(name, theirs, ours)) return *n;
  throw Error("test", "no name for " + name);
}

inline void Converter::sizes() {
  whole("vocab_size", number("vocab_size"));
  if (type_ == "mamba") {
    whole("embedding_length", number("hidden_size")), whole("block_count", number("num_hidden_layers"));
    whole("context_length", 1 << 20), whole("feed_forward_length", 0), whole("attention.head_count", 0);
    whole("ssm.conv_kernel", number("conv_kernel")), whole("ssm.state_size", number("state_size"));
    whole("ssm.inner_size", number("expand") * number("hidden_size"));
    whole("ssm.time_step_rank", number("time_step_rank"));
    real("attention.layer_norm_rms_epsilon", c_["layer_norm_epsilon"]);
    return;
  }
  const std::int64_t width = number("hidden_size", "n_embd"), heads = number("num_attention_heads", "n_head");
  whole("context_length", type_ == "bloom" ? 32 : number("max_position_embeddings", "n_positions"));
  whole("embedding_length", width), whole("block_count", number("num_hidden_layers", "n_layer"));
  const std::int64_t inner = number(type_ == "falcon" ? "ffn_hidden_size" : "intermediate_size", "n_inner");
  whole("feed_forward_length", inner > 0 ? inner : 4 * width);
  whole("attention.head_count", heads);
  if (type_ == "falcon") whole("attention.head_count_kv", c_["new_decoder_architecture"] ? number("num_kv_heads") : 1);
  else if (type_ == "gpt_bigcode") whole("attention.head_count_kv", 1);
  else if (type_.starts_with("deepseek")) whole("attention.head_count_kv", 1);
  else if (number("num_key_value_heads") > 0) whole("attention.head_count_kv", number("num_key_value_heads"));
  if (number("head_dim") > 0 && !type_.starts_with("deepseek"))
    whole("attention.key_length", number("head_dim")), whole("attention.value_length", number("head_dim"));
  for (const char* key : {"layer_norm_epsilon", "layer_norm_eps", "norm_epsilon"})
    if (c_.contains(key)) real("attention.layer_norm_epsilon", c_[key]);
  if (c_.contains("rms_norm_eps")) real("attention.layer_norm_rms_epsilon", c_["rms_norm_eps"]);
}

inline void Converter::rotation() {
  if (type_ == "gptj") whole("rope.dimension_count", number("rotary_dim"));
  if (!c_.contains("rope_parameters")) return;
  const Json all = c_["rope_parameters"], r = all.contains("full_attention") ? all["full_attention"] : all;
  real("rope.freq_base", r["rope_theta"]);
  const std::int64_t head =
      number("head_dim") > 0 ? number("head_dim") : number("hidden_size") / number("num_attention_heads");
  if (type_.starts_with("deepseek")) whole("rope.dimension_count", number("qk_rope_head_dim"));
  else
    whole("rope.dimension_count",
          static_cast<std::int64_t>(r.value("partial_rotary_factor", 1.0) * static_cast<double>(head)));
  const std::string kind = r["rope_type"];
  if (kind == "linear")
    fields.emplace_back(arch + ".rope.scaling.type", kind), real("rope.scaling.factor", r["factor"]);
  if (kind == "yarn") {
    fields.emplace_back(arch + ".rope.scaling.type", kind);
    real("rope.scaling.factor", r["factor"]);
    whole("rope.scaling.original_context_length", r["original_max_position_embeddings"]);
    if (r.contains("mscale_all_dim")) real("rope.scaling.yarn_log_multiplier", 0.1 * r["mscale_all_dim"].get<double>());
    if (r.contains("beta_fast")) real("rope.scaling.yarn_beta_fast", r["beta_fast"]);
    if (r.contains("attention_factor")) real("rope.scaling.yarn_attn_factor", r["attention_factor"]);
  }
  if (kind == "longrope") {
    whole("rope.scaling.original_context_length", r["original_max_position_embeddings"]);
    fields.emplace_back(arch + ".rope.scaling.type", kind);
    for (const char* length : {"short", "long"}) {
      const std::vector<double> by = r[str_cat(length, "_factor")].get<std::vector<double>>();
      put(str_cat("rope_factors_", length, ".weight"), {{std::ssize(by)}, {by.begin(), by.end()}});
    }
  }
  if (kind == "llama3") {  // divisors of the frequencies, as the converter computes them
    const double factor = r["factor"], low = r["low_freq_factor"], high = r["high_freq_factor"];
    const double old = r["original_max_position_embeddings"], theta = r["rope_theta"];
    Matrix by{{head / 2}, {}};
    for (std::int64_t k = 0; k < head / 2; ++k) {
      const double wave = 2 * M_PI * std::pow(theta, 2.0 * static_cast<double>(k) / static_cast<double>(head));
      const double smooth = (old / wave - low) / (high - low);
      by.values.push_back(static_cast<float>(wave < old / high  ? 1
                                             : wave > old / low ? factor
                                                                : 1 / ((1 - smooth) / factor + smooth)));
    }
    put("rope_freqs.weight", by);
  }
}

inline void Converter::experts() {
  const std::int64_t n = number("num_local_experts", "num_experts") + number("n_routed_experts");
  if (n == 0) return;
  whole("expert_count", n), whole("expert_used_count", number("num_experts_per_tok"));
  if (const std::int64_t w = number("moe_intermediate_size"); w > 0) whole("expert_feed_forward_length", w);
  if (type_ == "gpt_oss") whole("expert_feed_forward_length", number("intermediate_size"));
  if (const std::int64_t w = number("shared_expert_intermediate_size", "shared_intermediate_size"); w > 0)
    whole("expert_shared_feed_forward_length", w);
  if (!type_.starts_with("deepseek")) return;
  if (c_.contains("n_group") && c_["n_group"].is_number())
    whole("expert_group_count", number("n_group")), whole("expert_group_used_count", number("topk_group"));
  whole("expert_shared_count", number("n_shared_experts"));
  whole("leading_dense_block_count", number("first_k_dense_replace"));
  real("expert_weights_scale", c_["routed_scaling_factor"]);
  whole("expert_gating_func", type_ == "deepseek_v3" ? 2 : 1);
  if (type_ == "deepseek_v3") fields.emplace_back(arch + ".expert_weights_norm", true);
  const std::int64_t rank = number("kv_lora_rank"), turned = number("qk_rope_head_dim");
  if (number("q_lora_rank") > 0) whole("attention.q_lora_rank", number("q_lora_rank"));
  whole("attention.kv_lora_rank", rank), whole("attention.key_length", rank + turned);
  whole("attention.value_length", rank);
  whole("attention.key_length_mla", number("qk_nope_head_dim") + turned);
  whole("attention.value_length_mla", number("v_head_dim"));
}

inline void Converter::features() {
  for (const char* key : {"attn_logit_softcapping", "final_logit_softcapping"})
    if (c_.contains(key) && c_[key].is_number()) real(key, c_[key]);
  if (number("sliding_window") > 0) whole("attention.sliding_window", number("sliding_window"));
  if (type_ == "gemma3_text") {
    std::vector<std::int32_t> slides;
    for (const auto& kind : c_.value("layer_types", Json::array()))
      slides.push_back(kind == "sliding_attention" ? 1 : 0);
    if (!slides.empty()) fields.emplace_back(arch + ".attention.sliding_window_pattern", slides);
    else whole("attention.sliding_window_pattern", number("sliding_window_pattern"));
    if (c_.contains("rope_local_base_freq")) real("rope.freq_base_swa", c_["rope_local_base_freq"]);
    if (const double by = c_["query_pre_attn_scalar"]; by != c_["head_dim"]) real("attention.scale", 1 / std::sqrt(by));
  }
  if (type_ == "gpt_neox")
    fields.emplace_back(arch + ".use_parallel_residual", c_["use_parallel_residual"].get<bool>());
  if (type_ == "falcon") fields.emplace_back(arch + ".tensor_data_layout", std::string("jploski"));
  for (const auto& [theirs, ours] : Names{{"embedding_multiplier", "embedding_scale"},
                                          {"residual_multiplier", "residual_scale"},
                                          {"attention_multiplier", "attention.scale"},
                                          {"logits_scaling", "logit_scale"}})
    if (c_.contains(theirs)) real(ours, c_[theirs]);
}

inline void Converter::put(std::string name, Matrix m) {
  std::erase(m.shape, 1);  // the converter squeezes everything
  if (m.shape.empty()) m.shape = {1};
  Matrix& k = kept_.emplace_back(std::move(m));
  if (blocks_ && k.shape.size() > 1 && k.shape.back() % info(*blocks_).elements == 0) {
    std::vector<std::byte>& b =
        blocks_kept_.emplace_back(k.values.size() / static_cast<std::size_t>(info(*blocks_).elements) *
                                  static_cast<std::size_t>(info(*blocks_).bytes));
    quantize(*blocks_, k.values, b);
    tensors_.push_back({std::move(name), DType::F32, k.shape, b, blocks_});
    return;
  }
  tensors_.push_back({std::move(name), DType::F32, k.shape, std::as_bytes(std::span(k.values))});
}

// Rows of a head in the order in which neighbours turn together.
inline Matrix Converter::permuted(const Matrix& m, std::int64_t heads) const {
  Matrix out = m;
  const std::int64_t head = m.rows() / heads, n = m.row();
  for (std::int64_t r = 0; r < m.rows(); ++r) {
    const std::int64_t h = r / head, k = r % head, from = h * head + (k % 2) * (head / 2) + k / 2;
    std::copy_n(m.values.begin() + from * n, n, out.values.begin() + r * n);
  }
  return out;
}

// Queries, keys and values of each head of keys in turn -> all queries, all keys, all values.
inline Matrix Converter::joined(const Matrix& m, std::int64_t kv, std::int64_t heads) const {
  Matrix out{m.shape, {}};
  const std::int64_t group = heads / kv, head = m.rows() / (heads + 2 * kv), n = m.row();
  const auto add = [&](std::int64_t g, std::int64_t first, std::int64_t count) {
    const auto at = m.values.begin() + (g * (group + 2) + first) * head * n;
    out.values.insert(out.values.end(), at, at + count * head * n);
  };
  for (std::int64_t g = 0; g < kv; ++g) add(g, 0, group);
  for (std::int64_t g = 0; g < kv; ++g) add(g, group, 1);
  for (std::int64_t g = 0; g < kv; ++g) add(g, group + 1, 1);
  return out;
}

inline Matrix Converter::changed(const std::string& name, Matrix m) const {
  const std::int64_t heads = number("num_attention_heads", "n_head");
  const bool is_qkv = name.find("query_key_value") != name.npos;
  if (type_ == "gpt2" && m.shape.size() == 2 && name.find(".h.") != name.npos) {
    Matrix t{{m.shape[1], m.shape[0]}, {}};
    for (std::int64_t r = 0; r < m.shape[1]; ++r)
      for (std::int64_t c = 0; c < m.shape[0]; ++c)
        t.values.push_back(m.values[static_cast<std::size_t>(c * m.shape[1] + r)]);
    return t;
  }
  if (is_qkv && (type_ == "gpt_neox" || type_ == "bloom")) return joined(m, heads, heads);
  if (is_qkv && type_ == "falcon" && c_["new_decoder_architecture"]) return joined(m, number("num_kv_heads"), heads);
  if (arch == "llama" || arch == "granite" || arch == "granitemoe") {
    if (name.find("q_proj") != name.npos) return permuted(m, heads);
    if (name.find("k_proj") != name.npos) return permuted(m, number("num_key_value_heads"));
  }
  if (type_.starts_with("gemma") && name.ends_with("norm.weight"))
    for (float& x : m.values) x += 1;
  if (name.ends_with("A_log"))
    for (float& x : m.values) x = -std::exp(x);
  return m;
}

// kv_b_proj becomes a matrix of keys, transposed, and one of values for each head.
inline void Converter::latent(const std::string& name) {
  const Matrix m = hf_.at(name);
  const std::int64_t heads = number("num_attention_heads"), plain = number("qk_nope_head_dim"),
                     value = number("v_head_dim"), rank = number("kv_lora_rank");
  Matrix k{{heads, rank, plain}, {}}, v{{heads, value, rank}, {}};
  const auto at = [&](std::int64_t h, std::int64_t row, std::int64_t col) {
    return m.values[static_cast<std::size_t>((h * (plain + value) + row) * rank + col)];
  };
  for (std::int64_t h = 0; h < heads; ++h) {
    for (std::int64_t r = 0; r < rank; ++r)
      for (std::int64_t p = 0; p < plain; ++p) k.values.push_back(at(h, p, r));
    for (std::int64_t r = 0; r < value; ++r)
      for (std::int64_t c = 0; c < rank; ++c) v.values.push_back(at(h, plain + r, c));
  }
  put(*rewritten(name, "model.layers.#.self_attn.kv_b_proj.weight", "blk.#.attn_k_b.weight"), k);
  put(*rewritten(name, "model.layers.#.self_attn.kv_b_proj.weight", "blk.#.attn_v_b.weight"), v);
}

// Experts become one tensor for each of gate, up and down; removes them from the rest.
inline void Converter::stacked() {
  std::map<std::string, Matrix> all;
  const std::int64_t n = number("num_local_experts", "num_experts") + number("n_routed_experts");
  const auto append = [&](const std::string& to, const Matrix& m) {
    Matrix& s = all[to];
    s.shape = {n, m.shape[0], m.shape[1]};
    s.values.insert(s.values.end(), m.values.begin(), m.values.end());
  };
  // in the order of their numbers
  for (std::int64_t layer = 0; layer < number("num_hidden_layers"); ++layer)
    for (std::int64_t e = 0; e < n; ++e)
      for (const auto& [theirs, ours] : Names{{"mlp.experts.#.gate_proj", "gate"},
                                              {"mlp.experts.#.up_proj", "up"},
                                              {"mlp.experts.#.down_proj", "down"},
                                              {"block_sparse_moe.experts.#.w1", "gate"},
                                              {"block_sparse_moe.experts.#.w3", "up"},
                                              {"block_sparse_moe.experts.#.w2", "down"}}) {
        std::string name = str_cat("model.layers.", layer, ".", theirs, ".weight");
        name.replace(name.find('#'), 1, std::to_string(e));
        if (const auto it = hf_.find(name); it != hf_.end())
          append(str_cat("blk.", layer, ".ffn_", ours, "_exps.weight"), it->second), hf_.erase(it);
      }
  // stacked already: a part of every row, of each `step`-th from `first` on; transposed where the file has [in, out]
  const auto part = [&](const Matrix& m, std::int64_t first, std::int64_t step, std::int64_t count, bool transposed) {
    const bool bias = m.shape.size() == 2;
    const std::int64_t out = transposed || bias ? m.shape.back() : m.shape[1], in = bias         ? 1
                                                                                    : transposed ? m.shape[1]
                                                                                                 : m.shape[2];
    Matrix p{bias ? std::vector<std::int64_t>{n, count} : std::vector<std::int64_t>{n, count, in}, {}};
    for (std::int64_t e = 0; e < n; ++e)
      for (std::int64_t k = 0; k < count; ++k)
        for (std::int64_t i = 0; i < in; ++i) {
          const std::int64_t row = first + k * step, at = transposed ? i * out + row : row * in + i;
          p.values.push_back(m.values[static_cast<std::size_t>(e * in * out + at)]);
        }
    return p;
  };
  for (auto it = hf_.begin(); it != hf_.end();) {
    const std::string name = it->first;
    const Matrix& m = it->second;
    bool taken = true;
    const auto to = [&](const std::string& from, const std::string& ours) {
      return rewritten(name, "model.layers.#." + from, "blk.#." + ours);
    };
    const std::int64_t inner = number("intermediate_size"), shared = number("shared_intermediate_size");
    if (const auto up = to("block_sparse_moe.input_linear.weight", "ffn_")) {
      put(*up + "gate_exps.weight", part(m, 0, 1, inner, false)),
          put(*up + "up_exps.weight", part(m, inner, 1, inner, false));
    } else if (const auto down = to("block_sparse_moe.output_linear.weight", "ffn_down_exps.weight")) {
      put(*down, m);
    } else if (const auto both = to("shared_mlp.input_linear.weight", "ffn_")) {
      Matrix half{{shared, m.shape[1]}, {m.values.begin(), m.values.begin() + shared * m.shape[1]}};
      put(*both + "gate_shexp.weight", half);
      half.values.assign(m.values.begin() + shared * m.shape[1], m.values.end());
      put(*both + "up_shexp.weight", half);
    } else if (const auto w = to("mlp.experts.gate_up_proj", "ffn_")) {
      const bool t = type_ == "gpt_oss";
      const std::int64_t width = number("moe_intermediate_size") > 0 ? number("moe_intermediate_size") : inner;
      put(*w + "gate_exps.weight", part(m, 0, t ? 2 : 1, width, t)),
          put(*w + "up_exps.weight", part(m, t ? 1 : width, t ? 2 : 1, width, t));
    } else if (const auto b = to("mlp.experts.gate_up_proj_bias", "ffn_")) {
      put(*b + "gate_exps.bias", part(m, 0, 2, inner, false)), put(*b + "up_exps.bias", part(m, 1, 2, inner, false));
    } else if (const auto d = to("mlp.experts.down_proj", "ffn_down_exps.weight")) {
      put(*d, type_ == "gpt_oss" ? part(m, 0, 1, number("hidden_size"), true) : m);
    } else if (const auto db = to("mlp.experts.down_proj_bias", "ffn_down_exps.bias")) {
      put(*db, m);
    } else {
      taken = false;
    }
    it = taken ? hf_.erase(it) : std::next(it);
  }
  for (const auto& [name, m] : all) put(name, m);
}

inline void Converter::write(const std::string& path, bool apart, std::optional<QuantFormat> blocks) {
  blocks_ = blocks;
  arch = kArchitectures.at(type_);
  fields.insert(fields.begin(), {"general.architecture", arch});
  sizes(), rotation(), experts(), features(), stacked();
  for (const auto& [name, m] : hf_) {
    if (name.ends_with("kv_b_proj.weight") && apart) latent(name);
    else put(gguf_name(type_, name), changed(name, m));
  }
  save_gguf(path, tensors_, fields);
}

}  // namespace lc::test
