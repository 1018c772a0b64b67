// The denoisers of Stable Diffusion 3 and FLUX, and what all networks of pipelines say in their config.json.
#include "lightcone/models/diffusion/flux.h"
#include "lightcone/models/diffusion/mmdit.h"
#include "lightcone/models/diffusion/pipeline/denoiser.h"
#include "lightcone/ops/creation.h"
#include "lightcone/ops/shape.h"

namespace lc::diffusion {
namespace {

constexpr std::int64_t kFluxSample = 128;  // what FLUX was trained for, which its files do not say
constexpr double kFluxSteps = 1000;        // FLUX counts its times from 0 to 1

NetworkFacts unet_facts(const ConfigFile& config, const Weights& w) {
  const UNetConfig u = UNetConfig::from(config, false, w.tensors().size());
  if (u.in_channels < u.out_channels)
    config.fail("a UNet of ", u.in_channels, " channels in and ", u.out_channels, " out, which is no denoiser");
  return {.channels = u.out_channels,
          .beside = u.in_channels - u.out_channels,
          .context = u.context(),
          .pooled = u.pooled()};
}

NetworkFacts mmdit_facts(const ConfigFile& config, const Weights& w) {
  const MMDiTConfig c = MMDiTConfig::from(config, w.tensors().size());
  if (c.one_block || c.in_channels != c.out_channels)
    config.fail("a network of ", c.in_channels, " channels in and ", c.out_channels, " out, which is no denoiser");
  return {.channels = c.in_channels,
          .patch = c.patch,
          .sample_height = 128,
          .sample_width = 128,
          .context = c.context,
          .pooled = c.pooled};
}

NetworkFacts flux_facts(const ConfigFile& config, const Weights& w) {
  const FluxConfig c = FluxConfig::from(config, w.tensors().size());
  if (c.in_channels != c.out_channels || c.in_channels % 4 != 0 || c.axes.size() != 3)
    config.fail("a network of ", c.in_channels, " channels in, ", c.out_channels, " out and ", c.axes.size(),
                " axes; the denoiser of FLUX has as many out as in, four for each of the latents', and 3 axes");
  return {.channels = c.in_channels / 4,
          .patch = 2,
          .sample_height = kFluxSample,
          .sample_width = kFluxSample,
          .context = c.context,
          .pooled = c.pooled,
          .embeds_guidance = c.guidance,
          .steers = false};
}

// The places of tokens of a picture [rows columns, 3]: 0, row, column.
Tensor places_of_pixels(Graph& g, std::int64_t rows, std::int64_t columns) {
  const Shape grid{rows, columns, 1};
  const Tensor row = g.index(grid, Dim::index(0, rows), DType::F32),
               column = g.index(grid, Dim::index(1, columns), DType::F32);
  return cat({row * 0.0, row, column}, 2).reshape({rows * columns, 3});
}

}  // namespace

NetworkFacts network_facts(Family family, const Weights& w, const LoadModelOptions& o) {
  const ConfigFile config(w, o.ignore);
  const bool unet = family < Family::StableDiffusion3;
  NetworkFacts f = unet                                 ? unet_facts(config, w)
                   : family == Family::StableDiffusion3 ? mmdit_facts(config, w)
                                                        : flux_facts(config, w);
  if (const std::vector<std::int64_t> sample = config.sizes("sample_size"); !sample.empty())
    f.sample_height = sample.front(), f.sample_width = sample.back();
  return f;
}

LoadedModel load_mmdit_denoiser(const Weights& w, const LoadModelOptions& o, const DenoiserSizes& sizes) {
  const MMDiTConfig c = MMDiTConfig::from(ConfigFile(w, o.ignore), w.tensors().size());
  LoadedModel m("SD3Transformer2DModel", WeightTable(w, {}, mmdit_weight_names()));
  const MMDiT& net = m.add(MMDiT(c));
  m.weights.require_all_used("an SD3Transformer2DModel");
  SamplerGraph sampler(m, c.in_channels, sizes);
  const auto add = [&](const char* name, const Shape& s) { return m.inputs[name] = m.graph().input(name, s); };
  const std::int64_t texts = sampler.texts();
  const Tensor timestep = add("timestep", {texts}),
               states = add("encoder_hidden_states", {texts, sizes.length, c.context}),
               pooled = add("pooled_projections", {texts, c.pooled});
  sampler.finish(net(sampler.shown(), timestep, states, pooled));
  return m;
}

LoadedModel load_flux_denoiser(const Weights& w, const LoadModelOptions& o, const DenoiserSizes& sizes) {
  const FluxConfig c = FluxConfig::from(ConfigFile(w, o.ignore), w.tensors().size());
  LoadedModel m("FluxTransformer2DModel", WeightTable(w, {}, flux_weight_names()));
  const FluxTransformer& net = m.add(FluxTransformer(c));
  m.weights.require_all_used("a FluxTransformer2DModel");
  SamplerGraph sampler(m, c.in_channels / 4, sizes);
  const auto add = [&](const char* name, const Shape& s) { return m.inputs[name] = m.graph().input(name, s); };
  const std::int64_t texts = sampler.texts(), rows = sizes.height / 2, columns = sizes.width / 2;
  FluxTransformer::Inputs in{.tokens = packed_latents(sampler.shown()),
                             .states = add("encoder_hidden_states", {texts, sizes.length, c.context}),
                             .pooled = add("pooled_projections", {texts, c.pooled}),
                             .timestep = add("timestep", {texts}) / kFluxSteps,
                             .picture_places = places_of_pixels(m.graph(), rows, columns),
                             .text_places = zeros(m.graph(), {sizes.length, 3})};
  if (c.guidance) in.guidance = add("guidance", {1});
  sampler.finish(unpacked_latents(net(in), rows, columns));
  return m;
}

}  // namespace lc::diffusion
