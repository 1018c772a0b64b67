// GPT-2 (A. Radford et al., 2019) and GPT-BigCode (StarCoder), which adds multi-query attention.
#include <cmath>

#include "lightcone/models/language/architectures/common.h"

namespace lc {
namespace {

void read_gpt2_keys(const ConfigFile& c, LanguageConfig& l) {
  read_sizes(c, l,
             {.width = {"n_embd", "hidden_size"},
              .layers = {"n_layer", "num_hidden_layers"},
              .heads = {"n_head", "num_attention_heads"},
              .length = {"n_positions", "max_position_embeddings"}},
             1024);
  l.positions = l.length;
  l.norm = {.kind = NormKind::Layer, .eps = c.number("layer_norm_epsilon", 1e-5)};
  l.attention.layout = QueryKeyValue::Joined;
  set_attention_biases(l, true, true);
  l.network = {.inner = c.size("n_inner", 4 * l.width), .up_bias = true, .down_bias = true};
  if (!c.flag("scale_attn_weights", true))
    for (LanguageLayerKind& layer : l.layers) layer.scale = 1;
  l.tied = c.flag("tie_word_embeddings", true);
  c.lacks({"add_cross_attention"});
  c.neutral({"n_ctx", "resid_pdrop", "embd_pdrop", "attn_pdrop", "summary_activation", "summary_first_dropout",
             "summary_proj_to_labels", "summary_type", "summary_use_proj"});
}

void read_gpt2(const ConfigFile& c, LanguageConfig& l) {
  read_gpt2_keys(c, l);
  l.transposed = true;
  l.network.activation = c.text("activation_function", "gelu_new");
  if (c.flag("scale_attn_by_inverse_layer_idx", false))
    for (std::size_t i = 0; i < l.layers.size(); ++i) {
      const double scale = l.layers[i].scale != 0 ? 1 : 1 / std::sqrt(static_cast<double>(l.attention.head));
      l.layers[i].scale = scale / static_cast<double>(i + 1);
    }
  c.neutral({"reorder_and_upcast_attn"});  // it matters in f16 alone
}

void read_bigcode(const ConfigFile& c, LanguageConfig& l) {
  read_gpt2_keys(c, l);
  l.network.activation = c.text("activation_function", "gelu_pytorch_tanh");
  if (c.flag("multi_query", true)) l.attention.kv_heads = 1;
  else l.attention.layout = QueryKeyValue::Grouped;
  c.neutral({"attention_softmax_in_fp32", "scale_attention_softmax_in_fp32", "inference_runner",
             "pre_allocate_kv_cache", "max_batch_size", "max_sequence_length", "validate_runner_input"});
}

constexpr WeightName kGpt2Names[] = {
    {"h.#.attn.bias", ""},
    {"h.#.attn.masked_bias", ""},
    {"wte", "tokens"},
    {"wpe", "positions"},
    {"h.#.ln_1", "layers.#.attention_norm"},
    {"h.#.attn.c_attn", "layers.#.attention.query_key_value"},
    {"h.#.attn.c_proj", "layers.#.attention.output"},
    {"h.#.ln_2", "layers.#.network_norm"},
    {"h.#.mlp.c_fc", "layers.#.network.up"},
    {"h.#.mlp.c_proj", "layers.#.network.down"},
    {"ln_f", "norm"},
};

}  // namespace

constinit const LanguageArchitecture kGpt2{"gpt2", "GPT2", read_gpt2, kGpt2Names};
constinit const LanguageArchitecture kGptBigcode{"gpt_bigcode", "GPTBigCode", read_bigcode, kGpt2Names};

}  // namespace lc
