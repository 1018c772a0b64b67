// The denoisers of Stable Diffusion 1, 2 and XL.
#include "lightcone/models/diffusion/pipeline/denoiser.h"
#include "lightcone/ops/ops.h"
#include "lightcone/ops/shape.h"

namespace lc::diffusion {
namespace {

Residuals scaled(Residuals r, const Tensor& by) {
  for (Tensor& x : r.down) x = x * by;
  r.middle = r.middle * by;
  return r;
}

std::int64_t channels_beside(const UNetConfig& u) { return u.in_channels - u.out_channels; }

}  // namespace

LoadedModel load_unet_denoiser(const Weights& unet, const std::optional<Weights>& controlnet, const LoadModelOptions& o,
                               const DenoiserSizes& sizes) {
  const UNetConfig u = UNetConfig::from(ConfigFile(unet, o.ignore), false, unet.tensors().size());
  LoadedModel m("UNet2DConditionModel", WeightTable(unet, {}, unet_weight_names()));
  const UNet& net = m.add(UNet(u));
  m.weights.require_all_used("a UNet2DConditionModel");
  SamplerGraph sampler(m, u.out_channels, sizes);
  const std::int64_t texts = sampler.texts();
  const auto add = [&](const char* name, const Shape& s) { return m.inputs[name] = m.graph().input(name, s); };
  Conditions given = unet_inputs(m, u, o, {texts, sizes.height, sizes.width, sizes.length}, false);
  Tensor beside;
  if (const std::int64_t more = channels_beside(u); more > 0)
    beside = add("beside", {1, more, sizes.height, sizes.width});
  given["sample"] = sampler.shown(beside);
  std::optional<Residuals> control;
  if (controlnet) {
    const UNetConfig c = UNetConfig::from(ConfigFile(*controlnet, o.ignore), true, controlnet->tensors().size());
    const WeightTable table(*controlnet, {}, unet_weight_names());
    const ControlNet& controls = m.add(ControlNet(c), "controlnet", table.below("controlnet"));
    table.require_all_used("a ControlNetModel");
    Conditions seen = given;
    seen["controlnet_cond"] = add(
        "controlnet_cond", {texts, c.hint_channels, sizes.height * controls.scale(), sizes.width * controls.scale()});
    control = scaled(controls(seen), add("control_scale", {1}).reshape({1, 1, 1, 1}));
  }
  sampler.finish(net(given, control));
  return m;
}

}  // namespace lc::diffusion
