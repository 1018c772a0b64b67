#include "lightcone/models/diffusion/pipeline/components.h"

#include <algorithm>
#include <filesystem>

#include "lightcone/base/error.h"
#include "lightcone/io/printable.h"
#include "lightcone/runtime/names.h"

namespace lc::diffusion {
namespace {

namespace fs = std::filesystem;

// The pipelines that are one program here: what they begin with is a matter of ImageRequest.
constexpr std::pair<std::string_view, Family> kPipelines[] = {
    {"StableDiffusionPipeline", Family::StableDiffusion},
    {"StableDiffusionImg2ImgPipeline", Family::StableDiffusion},
    {"StableDiffusionInpaintPipeline", Family::StableDiffusion},
    {"StableDiffusionControlNetPipeline", Family::StableDiffusion},
    {"StableDiffusionXLPipeline", Family::StableDiffusionXL},
    {"StableDiffusionXLImg2ImgPipeline", Family::StableDiffusionXL},
    {"StableDiffusionXLInpaintPipeline", Family::StableDiffusionXL},
    {"StableDiffusion3Pipeline", Family::StableDiffusion3},
    {"StableDiffusion3Img2ImgPipeline", Family::StableDiffusion3},
    {"StableDiffusion3InpaintPipeline", Family::StableDiffusion3},
    {"FluxPipeline", Family::Flux},
    {"FluxImg2ImgPipeline", Family::Flux},
    {"FluxInpaintPipeline", Family::Flux}};

// The parts without which a family cannot work, besides its network.
std::vector<std::string_view> parts_of(Family f) {
  std::vector<std::string_view> all{"vae", "text_encoder", "tokenizer", "scheduler"};
  if (f != Family::StableDiffusion) all.insert(all.end(), {"text_encoder_2", "tokenizer_2"});
  return all;
}

// Files in the order in which they are taken: whole numbers of bits before halves, safetensors before pickles.
constexpr std::string_view kFiles[] = {"diffusion_pytorch_model.safetensors.index.json",
                                       "diffusion_pytorch_model.safetensors",
                                       "model.safetensors.index.json",
                                       "model.safetensors",
                                       "diffusion_pytorch_model.fp16.safetensors",
                                       "model.fp16.safetensors",
                                       "diffusion_pytorch_model.bin",
                                       "pytorch_model.bin",
                                       "diffusion_pytorch_model.fp16.bin",
                                       "pytorch_model.fp16.bin"};

}  // namespace

PipelineIndex PipelineIndex::read(const std::string& folder, const ReadOptions& o,
                                  const std::vector<std::string>& ignore) {
  const ConfigFile c((fs::path(folder) / "model_index.json").string(), o, ignore);
  PipelineIndex p;
  p.folder = folder;
  p.class_name = c.text("_class_name");
  const auto at = std::ranges::find(kPipelines, p.class_name, &std::pair<std::string_view, Family>::first);
  if (at == std::end(kPipelines)) {
    std::vector<std::string> known;
    for (const auto& [name, family] : kPipelines) known.emplace_back(name);
    c.fail("the pipeline ", in_quotes(p.class_name), " is not supported; supported are ", listed(known));
  }
  p.family = at->second;
  p.zeros_for_empty = c.flag("force_zeros_for_empty_prompt", p.family == Family::StableDiffusionXL);
  std::vector<std::string_view> parts = parts_of(p.family);
  parts.push_back(p.network());
  for (const std::string_view part : parts)
    if (!p.has(part)) c.fail("there is no folder ", part, " beside it");
  // parts that are opened by their folders, and those that look at pictures that are made or given
  c.neutral({"unet", "vae", "text_encoder", "tokenizer", "scheduler", "text_encoder_2", "tokenizer_2", "transformer",
             "text_encoder_3", "tokenizer_3", "safety_checker", "feature_extractor", "requires_safety_checker",
             "image_encoder", "controlnet", "add_watermarker"});
  c.lacks({"requires_aesthetics_score"});
  c.require_all_known(p.class_name);
  return p;
}

std::string PipelineIndex::part(std::string_view name) const { return (fs::path(folder) / name).string(); }
bool PipelineIndex::has(std::string_view name) const { return fs::is_directory(fs::path(folder) / name); }

Weights open_part(const std::string& folder, const ReadOptions& o) {
  for (const std::string_view name : kFiles)
    if (const fs::path file = fs::path(folder) / name; fs::exists(file)) return Weights::open(file.string(), o);
  return Weights::open(folder, o);
}

}  // namespace lc::diffusion
