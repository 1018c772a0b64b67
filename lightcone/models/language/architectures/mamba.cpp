// Mamba (A. Gu and T. Dao, 2023): a state space in place of attention and network.
#include "lightcone/models/language/architectures/common.h"

namespace lc {
namespace {

void read_mamba(const ConfigFile& c, LanguageConfig& l) {
  constexpr std::int64_t kMambaLength = 2048;  // it was trained on these; the state has no limit
  l.vocab = c.size("vocab_size"), l.width = c.size("hidden_size"), l.length = kMambaLength;
  read_layer_count(c, l, {"num_hidden_layers", "n_layer"});
  l.norm = {.kind = NormKind::Rms, .eps = c.number("layer_norm_epsilon", 1e-5)};
  StateSpace& s = l.state_space.emplace();
  s.inner = c.size("intermediate_size", c.size("expand", 2) * l.width);
  s.state = c.size("state_size", 16), s.kernel = c.size("conv_kernel", 4);
  s.rank = c.is_text("time_step_rank") ? (l.width + 15) / 16 : c.size("time_step_rank", (l.width + 15) / 16);
  s.conv_bias = c.flag("use_conv_bias", true), s.bias = c.flag("use_bias", false);
  s.activation = c.text("hidden_act", "silu");
  l.tied = c.flag("tie_word_embeddings", true);
  c.neutral({"time_step_rank", "time_step_scale", "time_step_min", "time_step_max", "time_step_init_scheme",
             "time_step_floor", "rescale_prenorm_residual", "residual_in_fp32", "use_mambapy", "use_associative_scan",
             "fused_add_norm", "rms_norm", "d_model", "d_inner", "ssm_cfg", "pad_vocab_size_multiple", "layer_types"});
}

constexpr WeightName kMambaNames[] = {
    {"embeddings", "tokens"},
    {"embedding", "tokens"},
    {"layers.#.norm", "layers.#.mixer_norm"},
    {"layers.#.mixer.in_proj", "layers.#.mixer.in"},
    {"layers.#.mixer.conv1d", "layers.#.mixer.conv"},
    {"layers.#.mixer.x_proj", "layers.#.mixer.select"},
    {"layers.#.mixer.dt_proj", "layers.#.mixer.step"},
    {"layers.#.mixer.A_log", "layers.#.mixer.decay"},
    {"layers.#.mixer.D", "layers.#.mixer.skip"},
    {"layers.#.mixer.out_proj", "layers.#.mixer.output"},
    {"norm_f", "norm"},
};

}  // namespace

constinit const LanguageArchitecture kMamba{"mamba", "Mamba", read_mamba, kMambaNames};

}  // namespace lc
