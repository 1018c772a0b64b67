// RWKV 4 (B. Peng et al., 2023).
#include <cmath>

#include "lightcone/models/language/architectures/common.h"

namespace lc {
namespace {

void read_rwkv(const ConfigFile& c, LanguageConfig& l) {
  l.vocab = c.size("vocab_size"), l.width = c.size("hidden_size"), l.length = c.size("context_length", 1024);
  read_layer_count(c, l, {"num_hidden_layers"});
  l.norm = {.eps = c.number("layer_norm_epsilon", 1e-5)};
  l.final_eps = 1e-5;  // whatever the file says
  l.embedding_norm = true;
  l.time_mixing = TimeMixing{.inner = c.size("attention_hidden_size", l.width),
                             .network = c.size("intermediate_size", 4 * l.width)};
  l.tied = c.flag("tie_word_embeddings", false);
  // every so many layers the hidden state is halved, and what later layers add as often
  const bool rescales = c.number("rescale_every", 6) > 0;
  const std::int64_t every = rescales ? c.size("rescale_every", 6) : 0;
  for (std::int64_t i = 0; every > 0 && i < std::ssize(l.layers); ++i) {
    LanguageLayerKind& layer = l.layers[static_cast<std::size_t>(i)];
    layer.added = std::exp2(-static_cast<double>(i / every));
    layer.after = (i + 1) % every == 0 ? 0.5 : 1;
  }
}

constexpr WeightName kRwkvNames[] = {
    {"embeddings", "tokens"},
    {"blocks.0.pre_ln", "embedding_norm"},
    {"blocks.#.ln1", "layers.#.attention_norm"},
    {"blocks.#.ln2", "layers.#.network_norm"},
    {"blocks.#.attention.time_decay", "layers.#.attention.decay"},
    {"blocks.#.attention.time_first", "layers.#.attention.bonus"},
    {"blocks.#.attention.time_mix_key", "layers.#.attention.mix_key"},
    {"blocks.#.attention.time_mix_value", "layers.#.attention.mix_value"},
    {"blocks.#.attention.time_mix_receptance", "layers.#.attention.mix_receptance"},
    {"blocks.#.attention", "layers.#.attention"},
    {"blocks.#.feed_forward.time_mix_key", "layers.#.network.mix_key"},
    {"blocks.#.feed_forward.time_mix_receptance", "layers.#.network.mix_receptance"},
    {"blocks.#.feed_forward", "layers.#.network"},
    {"ln_out", "norm"},
    {"head", "head", true},
};

}  // namespace

constinit const LanguageArchitecture kRwkv{"rwkv", "Rwkv", read_rwkv, kRwkvNames};

}  // namespace lc
