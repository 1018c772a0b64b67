// OLMo 2 (Team OLMo, 2024): norms of what layers add, and of all heads together. OLMoE (N. Muennighoff et al., 2024):
// the same norms of heads, norms before, experts.
#include "lightcone/models/language/architectures/common.h"

namespace lc {
namespace {

void read_olmo2(const ConfigFile& c, LanguageConfig& l) {
  read_llama_keys(c, l, {.eps = 1e-5});
  l.place = NormPlace::Output;
  l.attention.norm = HeadNorm::Whole;
}

void read_olmoe(const ConfigFile& c, LanguageConfig& l) {
  read_llama_keys(c, l, {.eps = 1e-5});
  l.attention.norm = HeadNorm::Whole;
  l.attention.clip = c.number("clip_qkv", 0);
  read_expert_sizes(c, l, {"num_experts", "num_local_experts"}, {"intermediate_size"}, 8);
  l.experts.normalized = c.flag("norm_topk_prob", false);
}

constexpr WeightName kOlmo2Names[] = {
    {"layers.#.post_attention_layernorm", "layers.#.attention_output_norm"},
    {"layers.#.post_feedforward_layernorm", "layers.#.network_output_norm"},
};

}  // namespace

constinit const LanguageArchitecture kOlmo2{"olmo2", "Olmo2", read_olmo2, kOlmo2Names, kLlamaNames};
constinit const LanguageArchitecture kOlmoe{"olmoe", "Olmoe", read_olmoe, kExpertNames, kLlamaNames};

}  // namespace lc
