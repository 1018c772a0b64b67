// Mamba (A. Gu and T. Dao, 2023), Falcon Mamba (J. Zuo et al., 2024) and Mamba 2 (T. Dao and A. Gu, 2024): a state
// space in place of attention and network.
#include "lightcone/models/language/architectures/common.h"

namespace lc {
namespace {

// What Mamba and Mamba 2 share.
StateSpace& read_state_space(const ConfigFile& c, LanguageConfig& l) {
  constexpr std::int64_t kMambaLength = 2048;  // it was trained on these; the state has no limit
  l.vocab = c.size("vocab_size"), l.width = c.size("hidden_size"), l.length = kMambaLength;
  read_layer_count(c, l, {"num_hidden_layers", "n_layer"});
  l.norm = {.kind = NormKind::Rms, .eps = c.number("layer_norm_epsilon", 1e-5)};
  StateSpace& s = l.state_space.emplace();
  s.inner = c.size("intermediate_size", c.size("expand", 2) * l.width);
  s.state = c.size("state_size", 16), s.kernel = c.size("conv_kernel", 4);
  s.conv_bias = c.flag("use_conv_bias", true), s.bias = c.flag("use_bias", false);
  s.activation = c.text("hidden_act", "silu");
  c.neutral({"time_step_rank", "time_step_scale", "time_step_min", "time_step_max", "time_step_init_scheme",
             "time_step_floor", "rescale_prenorm_residual", "residual_in_fp32", "use_mambapy", "use_associative_scan",
             "fused_add_norm", "rms_norm", "d_model", "d_inner", "ssm_cfg", "pad_vocab_size_multiple", "layer_types"});
  return s;
}

void read_mamba(const ConfigFile& c, LanguageConfig& l) {
  StateSpace& s = read_state_space(c, l);
  s.rank = c.is_text("time_step_rank") ? (l.width + 15) / 16 : c.size("time_step_rank", (l.width + 15) / 16);
  l.tied = c.flag("tie_word_embeddings", true);
}

void read_falcon_mamba(const ConfigFile& c, LanguageConfig& l) {
  read_mamba(c, l);
  l.state_space->inner_eps = c.number("mixer_rms_eps", 1e-6);
  if (!(l.state_space->inner_eps > 0)) c.fail("mixer_rms_eps is ", l.state_space->inner_eps, ", and not above 0");
}

void read_mamba2(const ConfigFile& c, LanguageConfig& l) {
  StateSpace& s = read_state_space(c, l);
  s.state = c.size("state_size", 128), s.heads = c.size("num_heads", 128), s.groups = c.size("n_groups", 8);
  const std::int64_t head = c.size("head_dim", 64);
  if (s.heads * head != s.inner)
    c.fail(s.heads, " heads of ", head, " channels are no ", s.inner, " channels, which expand and hidden_size make");
  if (s.heads % s.groups != 0 || s.inner % s.groups != 0)
    c.fail(s.groups, " groups do not divide ", s.heads, " heads and ", s.inner, " channels");
  const std::vector<double> limits = c.numbers("time_step_limit");
  if (!limits.empty() && (limits.size() != 2 || !(limits[0] >= 0) || !(limits[1] >= limits[0]) || limits[1] == 0))
    c.fail("time_step_limit is no least and most step");
  constexpr double kNoLimit = 1e30;
  if (!limits.empty()) s.least_step = limits[0], s.most_step = limits[1] < kNoLimit ? limits[1] : 0;
  l.tied = c.flag("tie_word_embeddings", false);
  c.neutral({"chunk_size"});  // into how many pieces a text is cut
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
    {"layers.#.mixer.dt_bias", "layers.#.mixer.step_bias"},
    {"layers.#.mixer.norm", "layers.#.mixer.gate_norm"},
    {"layers.#.mixer.out_proj", "layers.#.mixer.output"},
    {"norm_f", "norm"},
};

}  // namespace

constinit const LanguageArchitecture kMamba{"mamba", "Mamba", read_mamba, kMambaNames};
constinit const LanguageArchitecture kFalconMamba{"falcon_mamba", "FalconMamba", read_falcon_mamba, kMambaNames};
constinit const LanguageArchitecture kMamba2{"mamba2", "Mamba2", read_mamba2, kMambaNames};

}  // namespace lc
