#include "lightcone/models/diffusion/pipeline/denoiser.h"

#include "lightcone/ops/ops.h"
#include "lightcone/ops/shape.h"

namespace lc::diffusion {
namespace {

// Element k of a vector, as a scalar that broadcasts over pictures.
Tensor element(const Tensor& vector, std::int64_t k) { return narrow(vector, 0, k, 1).reshape({1, 1, 1, 1}); }

// The rows of `update` times the columns [1, channels, h, w] each.
std::vector<Tensor> updated(const Tensor& update, const std::vector<Tensor>& columns) {
  std::vector<Tensor> rows;
  for (std::size_t r = 0; r < kRows; ++r) {
    Tensor sum;
    for (std::size_t k = 0; k < kColumns; ++k) {
      const auto at = [](std::size_t i) { return Dim(static_cast<std::int64_t>(i)); };
      const Tensor w = narrow(narrow(update, 0, at(r), 1), 1, at(k), 1).reshape({1, 1, 1, 1});
      sum = sum.defined() ? sum + w * columns[k] : w * columns[k];
    }
    rows.push_back(sum);
  }
  return rows;
}

Residuals scaled(Residuals r, const Tensor& by) {
  for (Tensor& x : r.down) x = x * by;
  r.middle = r.middle * by;
  return r;
}

}  // namespace

std::int64_t channels_beside(const UNetConfig& u) { return u.in_channels - u.out_channels; }

LoadedModel load_denoiser(const Weights& unet, const std::optional<Weights>& controlnet, const LoadModelOptions& o,
                          const DenoiserSizes& sizes) {
  const ConfigFile config(unet, o.ignore);
  const UNetConfig u = UNetConfig::from(config, false, unet.tensors().size());
  if (channels_beside(u) < 0)
    config.fail("a UNet of ", u.in_channels, " channels in and ", u.out_channels, " out, which is no denoiser");
  LoadedModel m("UNet2DConditionModel", WeightTable(unet, {}, unet_weight_names()));
  m.architecture = "denoiser";
  Graph& g = m.graph();
  const UNet& net = m.add(UNet(u));
  m.weights.require_all_used("a UNet2DConditionModel");
  const std::int64_t texts = sizes.guided ? 2 : 1;
  Conditions given = unet_inputs(m, u, o, {texts, sizes.height, sizes.width, sizes.length}, false);
  const Shape shape{1, u.out_channels, sizes.height, sizes.width};
  const auto add = [&](const char* name, const Shape& s) { return m.inputs[name] = g.input(name, s); };
  const Tensor sample = add("sample", shape), noise = add("noise", shape), step = add("step", {4});
  Shape memories = shape;
  memories[0] = static_cast<std::int64_t>(kMemories);
  const Tensor memory = add("memory", memories);
  const Tensor update = add("update", {static_cast<std::int64_t>(kRows), static_cast<std::int64_t>(kColumns)});
  Tensor shown = sample * element(step, 0);
  if (const std::int64_t beside = channels_beside(u); beside > 0)
    shown = cat({shown, add("beside", {1, beside, sizes.height, sizes.width})}, 1);
  given["sample"] = sizes.guided ? cat({shown, shown}, 0) : shown;
  std::optional<Residuals> control;
  if (controlnet) {
    const ConfigFile config_of_control(*controlnet, o.ignore);
    const UNetConfig c = UNetConfig::from(config_of_control, true, controlnet->tensors().size());
    const WeightTable table(*controlnet, {}, unet_weight_names());
    const ControlNet& controls = m.add(ControlNet(c), "controlnet", table.below("controlnet"));
    table.require_all_used("a ControlNetModel");
    Conditions seen = given;
    seen["controlnet_cond"] = add(
        "controlnet_cond", {texts, c.hint_channels, sizes.height * controls.scale(), sizes.width * controls.scale()});
    control = scaled(controls(seen), add("control_scale", {1}).reshape({1, 1, 1, 1}));
  }
  Tensor output = net(given, control);
  if (sizes.guided) {
    const Tensor without = narrow(output, 0, 0, 1), with = narrow(output, 0, 1, 1);
    output = without + element(add("guidance", {1}), 0) * (with - without);
  }
  const Tensor limit = element(step, 3);
  Tensor clean = element(step, 1) * sample + element(step, 2) * output;
  clean = minimum(maximum(clean, (-limit).expand(shape)), limit.expand(shape));
  std::vector<Tensor> columns{sample, clean, output};
  for (std::size_t k = 0; k < kMemories; ++k) columns.push_back(narrow(memory, 0, static_cast<std::int64_t>(k), 1));
  columns.push_back(noise);
  std::vector<Tensor> rows = updated(update, columns);
  m.give("next", rows.front());
  rows.erase(rows.begin());
  m.give("next_memory", cat(rows, 0));
  m.retrieve({});
  return m;
}

}  // namespace lc::diffusion
