// Qwen 2 and Qwen 3 with experts (Qwen Team, 2024 and 2025); Qwen 2's have a gated network that every token runs.
#include <algorithm>

#include "lightcone/models/language/architectures/common.h"

namespace lc {
namespace {

// Layers named in mlp_only_layers, and those that decoder_sparse_step passes over, have no experts.
void read_sparse_layers(const ConfigFile& c, LanguageConfig& l) {
  const std::vector<double> plain = c.numbers("mlp_only_layers");
  const std::int64_t step = c.size("decoder_sparse_step", 1);
  for (std::size_t i = 0; i < l.layers.size(); ++i) {
    const bool named = std::ranges::find(plain, static_cast<double>(i)) != plain.end();
    l.layers[i].experts = !named && (static_cast<std::int64_t>(i) + 1) % step == 0;
  }
}

void read_qwen2_moe(const ConfigFile& c, LanguageConfig& l) {
  read_llama_keys(c, l);
  const bool bias = c.flag("qkv_bias", true);
  l.attention.query_bias = l.attention.key_bias = l.attention.value_bias = bias;
  read_expert_sizes(c, l, {"num_experts", "num_local_experts"}, {"moe_intermediate_size"}, 4);
  l.experts.normalized = c.flag("norm_topk_prob", false);
  l.experts.shared = c.size("shared_expert_intermediate_size", 5632), l.experts.shared_gate = true;
  read_sparse_layers(c, l);
  const std::int64_t window = c.id("sliding_window", 4096), below = c.id("max_window_layers", 28);
  std::vector<bool> slides;
  for (std::size_t i = 0; i < l.layers.size(); ++i)
    slides.push_back(i % 2 == 0 && static_cast<std::int64_t>(i) < below);
  if (c.flag("use_sliding_window", false)) read_windows(c, l, window, slides);
  else c.neutral({"layer_types"});
}

void read_qwen3_moe(const ConfigFile& c, LanguageConfig& l) {
  read_llama_keys(c, l);
  l.attention.norm = HeadNorm::Head;
  read_expert_sizes(c, l, {"num_experts", "num_local_experts"}, {"moe_intermediate_size"}, 8);
  l.experts.normalized = c.flag("norm_topk_prob", false);
  read_sparse_layers(c, l);
  const std::int64_t window = c.size("sliding_window", 4096);
  if (c.flag("use_sliding_window", false))
    for (LanguageLayerKind& layer : l.layers) layer.window = window;
  c.neutral({"max_window_layers", "layer_types"});
}

}  // namespace

constinit const LanguageArchitecture kQwen2Moe{"qwen2_moe", "Qwen2Moe", read_qwen2_moe, kExpertNames, kLlamaNames};
constinit const LanguageArchitecture kQwen3Moe{"qwen3_moe", "Qwen3Moe", read_qwen3_moe, kExpertNames, kLlamaNames};

}  // namespace lc
