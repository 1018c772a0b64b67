// Phi 3, 3.5 and 4 (M. Abdin et al., 2024): Llama with joined matrices and LongRoPE.
#include "lightcone/models/language/architectures/common.h"

namespace lc {
namespace {

void read_phi3(const ConfigFile& c, LanguageConfig& l) {
  read_llama_keys(c, l, {.eps = 1e-5});
  l.attention.layout = QueryKeyValue::Joined;
  l.network.joined = true;
  if (c.has("sliding_window"))
    for (LanguageLayerKind& layer : l.layers) layer.window = c.size("sliding_window");
  c.neutral({"original_max_position_embeddings", "resid_pdrop", "embd_pdrop"});
}

constexpr WeightName kPhi3Names[] = {
    {"layers.#.self_attn.qkv_proj", "layers.#.attention.query_key_value"},
    {"layers.#.mlp.gate_up_proj", "layers.#.network.gate_up"},
};

}  // namespace

constinit const LanguageArchitecture kPhi3{"phi3", "Phi3", read_phi3, kPhi3Names, kLlamaNames};

}  // namespace lc
