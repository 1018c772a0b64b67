// lightcone imagine: a picture from a text.
#include <cmath>
#include <span>

#include "command.h"
#include "commands.h"
#include "lightcone/base/error.h"
#include "lightcone/base/numbers.h"
#include "lightcone/io/checkpoints/save.h"
#include "lightcone/io/data/readers.h"
#include "lightcone/io/images/images.h"
#include "lightcone/io/printable.h"
#include "lightcone/models/diffusion/pipeline/stable_diffusion.h"

namespace lc::tool {
namespace {

using diffusion::StableDiffusion;

// Returns the height and the width that "512" or "768x512", 768 wide, names.
std::pair<std::int64_t, std::int64_t> size_in(const std::string& text) {
  if (text.empty()) return {0, 0};
  const std::size_t by = text.find('x');
  const auto number = [&](std::string_view part) {
    const auto n = real_of<double>(std::string(part));
    if (!n || !(*n >= 8 && *n <= 8192) || *n != std::floor(*n))
      throw Error("imagine", str_cat("--size ", in_quotes(text), " is neither a number nor WIDTHxHEIGHT"));
    return static_cast<std::int64_t>(*n);
  };
  if (by == text.npos) return {number(text), number(text)};
  return {number(std::string_view(text).substr(by + 1)), number(std::string_view(text).substr(0, by))};
}

// "file.safetensors" or "file.safetensors:0.8".
diffusion::LoraFile lora_in(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon != text.npos)
    if (const auto scale = real_of<double>(text.substr(colon + 1))) return {text.substr(0, colon), *scale};
  return {text, 1};
}

std::vector<float> noise_in(const std::string& path) {
  const Array a = read_npy(path);
  const auto values = a.values<float>();
  return {values.begin(), values.end()};
}

void write(const std::string& path, const StableDiffusion& model, const diffusion::ImageRequest& r,
           const std::function<void(double)>& progress) {
  if (path.ends_with(".npy")) {
    const std::vector<float> v = model.generate_f32(r, progress);
    save_npy(path, {.name = "picture",
                    .dtype = DType::F32,
                    .shape = {3, model.height(), model.width()},
                    .bytes = std::as_bytes(std::span(v))});
    return;
  }
  const Array picture = model.generate(r, progress);
  if (path.ends_with(".png")) write_png(path, picture);
  else write_jpeg(path, picture);
}

}  // namespace

void imagine(const ImagineOptions& o) {
  bool known = false;
  for (const char* end : {".png", ".jpg", ".jpeg", ".npy"}) known = known || o.output.ends_with(end);
  if (!known) throw Error("imagine", str_cat(in_quotes(o.output), " ends in none of .png, .jpg and .npy"));
  const auto [height, width] = size_in(o.size);
  diffusion::StableDiffusionOptions s{
      .height = height,
      .width = width,
      .scheduler = o.scheduler,
      .controlnet = o.controlnet,
      .text_length = o.text_length,
      .ignore = o.ignore,
      .compiler = compiler_for(open_device(o.device), {.threads = o.threads, .precision = o.precision})};
  for (const std::string& lora : o.loras) s.loras.push_back(lora_in(lora));
  diffusion::ImageRequest r{.prompt = o.prompt,
                            .negative = o.negative,
                            .steps = o.steps,
                            .guidance = o.guidance,
                            .seed = o.seed,
                            .strength = o.strength,
                            .control_scale = o.control_scale,
                            .eta = o.eta};
  if (!o.init.empty()) r.picture = read_image(o.init);
  if (!o.mask.empty()) r.mask = read_image(o.mask);
  if (!o.control.empty()) r.control = read_image(o.control);
  if (!o.noise.empty()) r.noise = noise_in(o.noise);
  Progress progress;
  progress.show("opening", 0);
  const StableDiffusion model = StableDiffusion::load(o.model, s);
  progress.clear();
  for (const std::string& note : model.notes(r)) std::fprintf(stderr, "lightcone: %s\n", note.c_str());
  write(o.output, model, r, [&](double part) { progress.show("denoising", part, str_cat("of ", o.steps, " steps")); });
}

}  // namespace lc::tool
