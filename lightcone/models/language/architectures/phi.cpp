// Phi 1, 1.5 and 2 (S. Gunasekar et al., 2023): parallel layers with one norm, a part of each head is rotated.
#include "lightcone/models/language/architectures/common.h"

namespace lc {
namespace {

void read_phi(const ConfigFile& c, LanguageConfig& l) {
  read_sizes(c, l);
  l.norm = {.kind = NormKind::Layer, .eps = c.number("layer_norm_eps", 1e-5)};
  l.parallel = l.shared_norm = true;
  set_attention_biases(l, true, true);
  if (c.flag("qk_layernorm", false)) l.attention.norm = HeadNorm::Head, l.attention.norm_options = l.norm;
  l.network = {.inner = c.size("intermediate_size"),
               .activation = c.text("hidden_act", "gelu_new"),
               .up_bias = true,
               .down_bias = true};
  read_one_rope(c, l, {.partial = 0.5});
  l.tied = c.flag("tie_word_embeddings", false);
  l.head_bias = l.head_bias || l.top == LanguageHead::Words;
  c.neutral({"resid_pdrop", "embd_pdrop"});
}

constexpr WeightName kPhiNames[] = {
    {"layers.#.self_attn.dense", "layers.#.attention.output"},
    {"layers.#.self_attn.q_layernorm", "layers.#.attention.query_norm"},
    {"layers.#.self_attn.k_layernorm", "layers.#.attention.key_norm"},
    {"layers.#.mlp.fc1", "layers.#.network.up"},
    {"layers.#.mlp.fc2", "layers.#.network.down"},
    {"final_layernorm", "norm"},
};

}  // namespace

constinit const LanguageArchitecture kPhi{"phi", "Phi", read_phi, kPhiNames, kLlamaNames};

}  // namespace lc
