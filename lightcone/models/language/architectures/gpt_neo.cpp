// GPT-Neo (S. Black et al., 2021): layers that see everything and layers with a window, in turn; scores without a
// scale.
#include "lightcone/io/printable.h"
#include "lightcone/models/language/architectures/common.h"

namespace lc {
namespace {

void read_neo(const ConfigFile& c, LanguageConfig& l) {
  read_sizes(c, l, {.layers = {"num_layers", "num_hidden_layers"}, .heads = {"num_heads", "num_attention_heads"}});
  l.positions = l.length;
  l.norm = {.kind = NormKind::Layer, .eps = c.number("layer_norm_epsilon", 1e-5)};
  l.attention.output_bias = true;
  l.network = {.inner = c.size("intermediate_size", 4 * l.width),
               .activation = c.text("activation_function", "gelu_new"),
               .up_bias = true,
               .down_bias = true};
  std::vector<std::string> kinds = c.texts("attention_layers");
  const std::vector<std::string> pattern = c.repeated_texts("attention_types");
  if (kinds.empty()) kinds = pattern;
  if (kinds.size() != l.layers.size())
    c.fail("attention_layers and attention_types name ", kinds.size(), " layers of ", l.layers.size());
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if (kinds[i] != "global" && kinds[i] != "local")
      c.fail("a layer is ", in_quotes(kinds[i]), ", not global or local");
    l.layers[i].scale = 1;
    if (kinds[i] == "local") l.layers[i].window = c.size("window_size", 256);
  }
  l.tied = c.flag("tie_word_embeddings", true);
  c.neutral({"window_size", "resid_dropout", "embed_dropout", "summary_activation", "summary_first_dropout",
             "summary_proj_to_labels", "summary_type", "summary_use_proj"});
}

constexpr WeightName kNeoNames[] = {
    {"h.#.attn.attention.bias", ""},
    {"h.#.attn.attention.masked_bias", ""},
    {"wte", "tokens"},
    {"wpe", "positions"},
    {"h.#.ln_1", "layers.#.attention_norm"},
    {"h.#.attn.attention.q_proj", "layers.#.attention.query"},
    {"h.#.attn.attention.k_proj", "layers.#.attention.key"},
    {"h.#.attn.attention.v_proj", "layers.#.attention.value"},
    {"h.#.attn.attention.out_proj", "layers.#.attention.output"},
    {"h.#.ln_2", "layers.#.network_norm"},
    {"h.#.mlp.c_fc", "layers.#.network.up"},
    {"h.#.mlp.c_proj", "layers.#.network.down"},
    {"ln_f", "norm"},
};

}  // namespace

constinit const LanguageArchitecture kGptNeo{"gpt_neo", "GPTNeo", read_neo, kNeoNames};

}  // namespace lc
