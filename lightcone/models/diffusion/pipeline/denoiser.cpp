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

}  // namespace

SamplerGraph::SamplerGraph(LoadedModel& m, std::int64_t channels, const DenoiserSizes& sizes)
    : m_(&m), sizes_(sizes), shape_{1, channels, sizes.height, sizes.width} {
  m.architecture = "denoiser";
  const auto add = [&](const char* name, const Shape& s) { return m.inputs[name] = m.graph().input(name, s); };
  sample_ = add("sample", shape_), noise_ = add("noise", shape_), step_ = add("step", {4});
  Shape memories = shape_;
  memories[0] = static_cast<std::int64_t>(kMemories);
  memory_ = add("memory", memories);
  update_ = add("update", {static_cast<std::int64_t>(kRows), static_cast<std::int64_t>(kColumns)});
}

Tensor SamplerGraph::shown(const Tensor& beside) const {
  Tensor x = sample_ * element(step_, 0);
  if (beside.defined()) x = cat({x, beside}, 1);
  return sizes_.guided ? cat({x, x}, 0) : x;
}

void SamplerGraph::finish(Tensor output) {
  if (sizes_.guided) {
    const Tensor guidance = m_->inputs["guidance"] = m_->graph().input("guidance", {1});
    const Tensor without = narrow(output, 0, 0, 1), with = narrow(output, 0, 1, 1);
    output = without + element(guidance, 0) * (with - without);
  }
  const Tensor limit = element(step_, 3);
  Tensor clean = element(step_, 1) * sample_ + element(step_, 2) * output;
  clean = minimum(maximum(clean, (-limit).expand(shape_)), limit.expand(shape_));
  std::vector<Tensor> columns{sample_, clean, output};
  for (std::size_t k = 0; k < kMemories; ++k) columns.push_back(narrow(memory_, 0, static_cast<std::int64_t>(k), 1));
  columns.push_back(noise_);
  std::vector<Tensor> rows = updated(update_, columns);
  m_->give("next", rows.front());
  rows.erase(rows.begin());
  m_->give("next_memory", cat(rows, 0));
  m_->retrieve({});
}

LoadedModel load_denoiser(Family family, const Weights& network, const std::optional<Weights>& controlnet,
                          const LoadModelOptions& o, const DenoiserSizes& sizes) {
  if (family == Family::StableDiffusion3) return load_mmdit_denoiser(network, o, sizes);
  if (family == Family::Flux) return load_flux_denoiser(network, o, sizes);
  return load_unet_denoiser(network, controlnet, o, sizes);
}

}  // namespace lc::diffusion
