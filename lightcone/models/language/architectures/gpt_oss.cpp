// GPT-OSS (OpenAI, 2025): sinks, windows in every second layer, experts with biases and limits, stored as MXFP4.
#include "lightcone/models/language/architectures/common.h"

namespace lc {
namespace {

void read_gpt_oss(const ConfigFile& c, LanguageConfig& l) {
  read_llama_keys(c, l, {.eps = 1e-5, .theta = 150000, .head = 64});
  if (!c.is_object("rope_scaling") && !c.is_object("rope_parameters")) c.fail("there is no rope_scaling");
  const bool bias = c.flag("attention_bias", true);
  set_attention_biases(l, bias, bias);
  l.attention.sinks = true;
  std::vector<bool> slides;
  for (std::size_t i = 0; i < l.layers.size(); ++i) slides.push_back(i % 2 == 0);
  read_windows(c, l, c.size("sliding_window", 128), slides);
  read_expert_sizes(c, l, {"num_local_experts", "num_experts"}, {"intermediate_size"}, 4);
  LanguageExperts& e = l.experts;
  e.stacked = e.stacked_transposed = e.alternating = e.router_bias = true;
  e.network.up_bias = e.network.down_bias = true;
  e.router = RouterKind::SoftmaxOfChosen;
  e.limit = c.number("swiglu_limit", 7), e.gate_slope = c.number("swiglu_alpha", 1.702);
  if (c.is_object("quantization_config")) {
    const ConfigFile stored = c.section("quantization_config");
    stored.only("quant_method", "mxfp4");
    stored.neutral({"modules_to_not_convert", "dequantize"});
    stored.require_all_known("gpt_oss");
  }
  c.neutral({"experts_per_token", "initial_context_length"});
}

constexpr WeightName kGptOssNames[] = {
    {"layers.#.self_attn.sinks", "layers.#.attention.sinks"},
    {"layers.#.mlp.router", "layers.#.experts.router"},
    {"layers.#.mlp.experts.gate_up_proj_bias", "layers.#.experts.gate_up_bias"},
    {"layers.#.mlp.experts.down_proj_bias", "layers.#.experts.down_bias"},
    {"layers.#.mlp.experts.gate_up_proj_blocks", "layers.#.experts.gate_up_blocks"},
    {"layers.#.mlp.experts.gate_up_proj_scales", "layers.#.experts.gate_up_scales"},
    {"layers.#.mlp.experts.down_proj_blocks", "layers.#.experts.down_blocks"},
    {"layers.#.mlp.experts.down_proj_scales", "layers.#.experts.down_scales"},
    {"layers.#.mlp.experts.gate_up_proj", "layers.#.experts.gate_up"},
    {"layers.#.mlp.experts.down_proj", "layers.#.experts.down"},
};

}  // namespace

constinit const LanguageArchitecture kGptOss{"gpt_oss", "GptOss", read_gpt_oss, kGptOssNames, kLlamaNames};

}  // namespace lc
