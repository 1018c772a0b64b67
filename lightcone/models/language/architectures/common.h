// What the files of architectures share.
#pragma once

#include <string_view>
#include <vector>

#include "lightcone/models/language/architectures/architectures.h"

namespace lc {

// The value of the first of these keys that is there: transformers knows some sizes by several names. Throws Error if
// none is and there is no other value; 0 stands for that.
std::int64_t size_by(const ConfigFile& c, const std::vector<std::string_view>& keys, std::int64_t otherwise = 0);

// Reads width, layers, heads and their size, and, unless the architecture has others, what Llama calls them. Layers
// become plain ones.
struct SizeKeys {
  std::vector<std::string_view> width = {"hidden_size"}, layers = {"num_hidden_layers"},
                                heads = {"num_attention_heads"}, kv_heads = {"num_key_value_heads"},
                                length = {"max_position_embeddings"};
  std::int64_t head = 0;  // elements of a head if there is no head_dim; 0: an equal part of the width
};
void read_sizes(const ConfigFile& c, LanguageConfig& l, const SizeKeys& keys = {}, std::int64_t default_length = 2048);

// Reads the number of layers, which become plain ones.
void read_layer_count(const ConfigFile& c, LanguageConfig& l, const std::vector<std::string_view>& keys);

// Reads the rotation and gives it to every layer.
void read_one_rope(const ConfigFile& c, LanguageConfig& l, RopeKeys keys = {});
// Reads layer_types ("full_attention" or "sliding_attention"): the layers of the second kind get the
// window. Without the key, `slides` says for each layer whether it does.
void read_windows(const ConfigFile& c, LanguageConfig& l, std::int64_t window, const std::vector<bool>& slides);
// The same with the keys sliding_window, use_sliding_window and max_window_layers of Qwen 2.
void read_qwen_windows(const ConfigFile& c, LanguageConfig& l);

// Llama's keys: sizes, RMS norms, gated network, rotation, biases by attention_bias and mlp_bias.
struct LlamaDefaults {
  double eps = 1e-6, theta = 10000;
  std::int64_t head = 0;  // as in SizeKeys
};
void read_llama_keys(const ConfigFile& c, LanguageConfig& l, const LlamaDefaults& d = {});
// Reads how many experts there are, how many are chosen, and their width; every layer becomes routed.
void read_expert_sizes(const ConfigFile& c, LanguageConfig& l, const std::vector<std::string_view>& count_keys,
                       const std::vector<std::string_view>& width_keys, std::int64_t default_chosen = 0);
// Sets the biases of queries, keys and values, and that of what attention returns.
void set_attention_biases(LanguageConfig& l, bool inputs, bool output);

// Llama's names of weights, which most later models kept.
inline constexpr WeightName kLlamaNames[] = {
    {"layers.#.self_attn.rotary_emb.inv_freq", ""},
    {"rotary_emb", ""},
    {"embed_tokens", "tokens"},
    {"layers.#.input_layernorm", "layers.#.attention_norm"},
    {"layers.#.self_attn.q_proj", "layers.#.attention.query"},
    {"layers.#.self_attn.k_proj", "layers.#.attention.key"},
    {"layers.#.self_attn.v_proj", "layers.#.attention.value"},
    {"layers.#.self_attn.o_proj", "layers.#.attention.output"},
    {"layers.#.self_attn.q_norm", "layers.#.attention.query_norm"},
    {"layers.#.self_attn.k_norm", "layers.#.attention.key_norm"},
    {"layers.#.post_attention_layernorm", "layers.#.network_norm"},
    {"layers.#.mlp.gate_proj", "layers.#.network.gate"},
    {"layers.#.mlp.up_proj", "layers.#.network.up"},
    {"layers.#.mlp.down_proj", "layers.#.network.down"},
    {"norm", "norm"},
};
// Experts as Qwen's, OLMoE's and DeepSeek's files call them.
inline constexpr WeightName kExpertNames[] = {
    {"layers.#.mlp.gate.e_score_correction_bias", "layers.#.experts.choice_bias"},
    {"layers.#.mlp.gate", "layers.#.experts.router"},
    {"layers.#.mlp.experts.gate_up_proj", "layers.#.experts.gate_up"},
    {"layers.#.mlp.experts.down_proj", "layers.#.experts.down"},
    {"layers.#.mlp.experts.#.gate_proj", "layers.#.experts.#.gate"},
    {"layers.#.mlp.experts.#.up_proj", "layers.#.experts.#.up"},
    {"layers.#.mlp.experts.#.down_proj", "layers.#.experts.#.down"},
    {"layers.#.mlp.shared_experts.gate_proj", "layers.#.experts.shared.gate"},
    {"layers.#.mlp.shared_experts.up_proj", "layers.#.experts.shared.up"},
    {"layers.#.mlp.shared_experts.down_proj", "layers.#.experts.shared.down"},
    {"layers.#.mlp.shared_expert.gate_proj", "layers.#.experts.shared.gate"},
    {"layers.#.mlp.shared_expert.up_proj", "layers.#.experts.shared.up"},
    {"layers.#.mlp.shared_expert.down_proj", "layers.#.experts.shared.down"},
    {"layers.#.mlp.shared_expert_gate", "layers.#.experts.shared_gate"},
};

}  // namespace lc
