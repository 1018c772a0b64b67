// Granite 3 (IBM, 2024): Llama with four factors; GraniteMoe routes every layer.
#include "lightcone/models/language/architectures/common.h"

namespace lc {
namespace {

void read_granite(const ConfigFile& c, LanguageConfig& l) {
  read_llama_keys(c, l);
  l.embedding_scale = c.number("embedding_multiplier", 1);
  l.residual_scale = c.number("residual_multiplier", 1);
  const double by = c.number("logits_scaling", 1), scale = c.number("attention_multiplier", 1);
  if (by == 0 || scale == 0) c.fail("logits_scaling is ", by, " and attention_multiplier ", scale, ", and not 0");
  l.logits_scale = 1 / by;
  for (LanguageLayerKind& layer : l.layers) layer.scale = scale;
}

void read_granitemoe(const ConfigFile& c, LanguageConfig& l) {
  read_granite(c, l);
  read_expert_sizes(c, l, {"num_local_experts"}, {"intermediate_size"}, 2);
  l.experts.stacked = true;
  l.experts.router = RouterKind::SoftmaxOfChosen;
  l.experts.shared = c.id("shared_intermediate_size", 0);
  l.experts.network.joined = true;
}

constexpr WeightName kGraniteMoeNames[] = {
    {"layers.#.block_sparse_moe.router.layer", "layers.#.experts.router"},
    {"layers.#.block_sparse_moe.router", "layers.#.experts.router"},
    {"layers.#.block_sparse_moe.input_linear.weight", "layers.#.experts.gate_up"},
    {"layers.#.block_sparse_moe.output_linear.weight", "layers.#.experts.down"},
    {"layers.#.block_sparse_moe.experts.gate_up_proj", "layers.#.experts.gate_up"},
    {"layers.#.block_sparse_moe.experts.down_proj", "layers.#.experts.down"},
    {"layers.#.shared_mlp.input_linear", "layers.#.experts.shared.gate_up"},
    {"layers.#.shared_mlp.output_linear", "layers.#.experts.shared.down"},
};

}  // namespace

constinit const LanguageArchitecture kGranite{"granite", "Granite", read_granite, kLlamaNames};
constinit const LanguageArchitecture kGraniteMoe{"granitemoe", "GraniteMoe", read_granitemoe, kGraniteMoeNames,
                                                 kLlamaNames};
constinit const LanguageArchitecture kGraniteMoeShared{"granitemoeshared", "GraniteMoeShared", read_granitemoe,
                                                       kGraniteMoeNames, kLlamaNames};

}  // namespace lc
