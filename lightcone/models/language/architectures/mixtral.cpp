// Mixtral (A. Jiang et al., 2024): Mistral with experts in every layer.
#include "lightcone/models/language/architectures/common.h"

namespace lc {
namespace {

void read_mixtral(const ConfigFile& c, LanguageConfig& l) {
  read_llama_keys(c, l, {.eps = 1e-5, .theta = 1e6});
  if (c.has("sliding_window"))
    for (LanguageLayerKind& layer : l.layers) layer.window = c.size("sliding_window");
  read_expert_sizes(c, l, {"num_local_experts", "num_experts"}, {"intermediate_size"}, 2);
  l.experts.normalized = true;
}

constexpr WeightName kMixtralNames[] = {
    {"layers.#.block_sparse_moe.gate", "layers.#.experts.router"},
    {"layers.#.block_sparse_moe.experts.#.w1", "layers.#.experts.#.gate"},
    {"layers.#.block_sparse_moe.experts.#.w2", "layers.#.experts.#.down"},
    {"layers.#.block_sparse_moe.experts.#.w3", "layers.#.experts.#.up"},
};

}  // namespace

constinit const LanguageArchitecture kMixtral{"mixtral",     "Mixtral",    read_mixtral,
                                              kMixtralNames, kExpertNames, kLlamaNames};

}  // namespace lc
