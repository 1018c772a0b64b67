// StableDiffusion: pictures from texts by a folder of diffusers (model_index.json): Stable Diffusion 1, 2, XL, 3
// and 3.5, and FLUX.1; with negative prompts, pictures to begin with, masks, ControlNets and LoRA.
//
//   const StableDiffusion model = StableDiffusion::load("stable-diffusion-v1-5");
//   const Array picture = model.generate({.prompt = "a lighthouse at dawn", .seed = 7});   // u8 [3, 512, 512]
//   write_png("lighthouse.png", picture);
//
// R. Rombach et al., "High-resolution image synthesis with latent diffusion models", 2022; D. Podell et al., "SDXL",
// 2023; P. Esser et al., "Scaling rectified flow transformers", 2024; J. Ho and T. Salimans, "Classifier-free diffusion
// guidance", 2022.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lightcone/io/data/array.h"
#include "lightcone/io/read_options.h"
#include "lightcone/models/diffusion/sampling/sampling_plan.h"
#include "lightcone/passes/compiler.h"
#include "lightcone/passes/precision.h"

namespace lc::diffusion {

// A file of LoRA weights and how much of it counts.
struct LoraFile {
  std::string path;
  double scale = 1;  // 1: all of it
};

// Options of StableDiffusion::load().
struct StableDiffusionOptions {
  // The size of pictures, multiples of the autoencoder's scale (8) and of the network's patch (2 in Stable Diffusion 3
  // and FLUX); 0: what the files say.
  std::int64_t height = 0, width = 0;
  std::string scheduler = {};             // one of scheduler_names(); "": what the files say
  std::string controlnet = {};            // folder of a ControlNetModel; for UNets
  std::int64_t text_length = 0;           // tokens of T5's texts; 0: 256, and 512 for FLUX
  std::vector<LoraFile> loras = {};       // merged into the weights, one after the other
  std::vector<std::string> ignore = {};   // keys of JSON files, see LoadModelOptions
  std::optional<Compiler> compiler = {};  // unset: default_compiler({threads, precision})
  int threads = 0;                        // threads of the default compiler; 0: all cores this process may use
  Precision precision = Precision::Highest;
  ReadOptions read = {};
};

// What a picture is to be.
struct ImageRequest {
  std::string prompt;         // what the picture shows
  std::string negative = {};  // what it is not to be; not for FLUX
  std::int64_t steps = 30;    // more take longer and are finer
  // How closely the prompt is followed; unset: 7.5, for Stable Diffusion 3 7, for FLUX.1 dev 3.5, which takes it as an
  // input. For the others 1 or less means without guidance, in half the time. FLUX.1 schnell has none.
  std::optional<double> guidance = {};
  std::int64_t seed = 0;              // the same seed gives the same picture
  std::optional<Array> picture = {};  // u8 [3, h, w] to begin with; it is cut to the model's size
  double strength = 0.8;              // with a picture: how much of it is made anew, above 0 and at most 1
  std::optional<Array> mask = {};     // u8 [1 or 3, h, w], with a picture: white is made anew, black is kept
  std::optional<Array> control = {};  // u8 [3, h, w], what a ControlNet looks at: edges, poses, depths
  double control_scale = 1;           // how much of what the ControlNet says counts
  double eta = 0;                     // DDIM's: 1 adds as much noise as DDPM
  // The noise to begin with, f32 [channels, height / scale, width / scale], in place of the seed's.
  std::vector<float> noise = {};
};

// A loaded pipeline. Programs are compiled when they are first needed. One thread at a time may use it.
class StableDiffusion {
 public:
  // Opens a folder with model_index.json. Throws Error that names a component, a key or a weight that is missing, not
  // supported or not known.
  static StableDiffusion load(const std::string& folder, const StableDiffusionOptions& o = {});

  // Makes a picture, u8 [3, height(), width()]. `progress` is called with the finished part, 0 to 1. Throws Error for
  // sizes and numbers that do not fit.
  Array generate(const ImageRequest& r, const std::function<void(double part)>& progress = {}) const;
  // The same as numbers before they are rounded, f32 [3, height, width], mostly from -1 to 1.
  std::vector<float> generate_f32(const ImageRequest& r, const std::function<void(double part)>& progress = {}) const;

  std::int64_t height() const;               // that pictures have, in pixels
  std::int64_t width() const;                // the same
  const SchedulerConfig& scheduler() const;  // what the files said, or the options
  // Sentences about prompts that are longer than the model takes, whose ends are cut off, and about a T5 that is
  // missing.
  std::vector<std::string> notes(const ImageRequest& r) const;

 private:
  struct Loaded;
  explicit StableDiffusion(std::shared_ptr<Loaded> loaded) : loaded_(std::move(loaded)) {}
  std::shared_ptr<Loaded> loaded_;
};

}  // namespace lc::diffusion
