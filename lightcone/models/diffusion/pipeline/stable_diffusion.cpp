#include "lightcone/models/diffusion/pipeline/stable_diffusion.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "lightcone/base/error.h"
#include "lightcone/io/images/images.h"
#include "lightcone/io/printable.h"
#include "lightcone/models/diffusion/autoencoder_tiny.h"
#include "lightcone/models/diffusion/pipeline/components.h"
#include "lightcone/models/diffusion/pipeline/denoiser.h"
#include "lightcone/models/diffusion/pipeline/lora.h"
#include "lightcone/models/diffusion/pipeline/prompts.h"
#include "lightcone/nn/init.h"
#include "lightcone/runtime/default_compiler.h"

namespace lc::diffusion {
namespace {

constexpr std::int64_t kLargestSide = 1024;  // that latents may have

// Standard normal numbers, the same on every machine and for any number of threads.
std::vector<float> normal_numbers(std::size_t n, std::int64_t seed, const std::string& stream) {
  const nn::init::Values v = nn::init::normal({static_cast<std::int64_t>(n)}, {.seed = seed, .parameter = stream});
  return {v.begin(), v.end()};
}

std::vector<float> as_floats(const std::vector<double>& v) { return {v.begin(), v.end()}; }

}  // namespace

struct StableDiffusion::Loaded {
  StableDiffusionOptions o;
  PipelineIndex index;
  SchedulerConfig scheduler;
  Compiler compiler;
  std::vector<Lora> loras;
  PromptEncoder texts;
  NetworkFacts network;
  std::int64_t height = 0, width = 0, scale = 8;  // the first two are those of latents
  std::map<bool, Program> denoisers;              // by whether they are guided
  std::optional<Program> encoder, decoder;

  LoadModelOptions options() const { return {.ignore = o.ignore, .read = o.read}; }
  void open(const std::string& folder, StableDiffusionOptions given);
  void open_sizes();
  Weights network_weights() const { return open_part(index.part(index.network()), o.read); }
  bool guided(const ImageRequest& r) const { return network.steers && guidance(r) > 1; }
  double guidance(const ImageRequest& r) const;
  LoadedModel autoencoder(const char* output) const;
  const Program& denoiser(bool guided);
  const Program& encode_program();
  const Program& decode_program();
  Prompts prompts(const ImageRequest& r) const;
  std::vector<float> encoded(const std::vector<float>& picture);
  std::size_t latents() const { return static_cast<std::size_t>(network.channels * height * width); }
  void set_conditions(Context& c, const ImageRequest& r) const;
  std::vector<float> beside_of(const Array& picture, const std::vector<float>& keep);
  static void run_step(Context& c, const SamplingStep& s, const std::vector<float>& fresh, bool guided,
                       std::vector<float>& x, std::vector<float>& memory);
  std::vector<float> denoised(const ImageRequest& r, const std::function<void(double)>& progress);
  void check(const ImageRequest& r) const;
  std::vector<float> pixels_of(const Array& picture, std::int64_t h, std::int64_t w) const;
  std::vector<float> mask_of(const Array& mask) const;
};

double StableDiffusion::Loaded::guidance(const ImageRequest& r) const {
  const double usual = index.family == Family::Flux ? 3.5 : index.family == Family::StableDiffusion3 ? 7 : 7.5;
  return r.guidance.value_or(usual);
}

// The size of latents, by the options or by what the network was trained for.
void StableDiffusion::Loaded::open_sizes() {
  const ConfigFile vae(open_part(index.part("vae"), o.read), o.ignore);
  const std::size_t levels =
      vae.sizes(vae.has("encoder_block_out_channels") ? "encoder_block_out_channels" : "block_out_channels").size();
  if (levels < 1 || levels > kMostLevels) vae.fail("block_out_channels has ", levels, " levels");
  scale = std::int64_t{1} << (levels - 1);
  const std::int64_t unit = scale * network.patch, most = scale * kLargestSide;
  const auto latent = [&](std::int64_t given, std::int64_t otherwise) {
    const std::int64_t n = given > 0 ? given : otherwise * scale;
    if (n % unit != 0 || n < unit || n > most)
      throw Error("StableDiffusion", str_cat("pictures of ", n, " pixels along a side, and not a multiple of ", unit,
                                             " of at most ", most));
    return n / scale;
  };
  height = latent(o.height, network.sample_height);
  width = latent(o.width, network.sample_width);
}

void StableDiffusion::Loaded::open(const std::string& folder, StableDiffusionOptions given) {
  o = std::move(given);
  index = PipelineIndex::read(folder, o.read, o.ignore);
  if (index.family >= Family::StableDiffusion3 && !o.controlnet.empty())
    throw Error("StableDiffusion", str_cat("ControlNets of ", index.class_name, " are not supported"));
  compiler = o.compiler ? *o.compiler : default_compiler({.threads = o.threads, .precision = o.precision});
  scheduler = SchedulerConfig::from(ConfigFile(
      (std::filesystem::path(index.part("scheduler")) / "scheduler_config.json").string(), o.read, o.ignore));
  if (!o.scheduler.empty()) scheduler = scheduler.with(o.scheduler);
  for (const LoraFile& f : o.loras) loras.emplace_back(f.path, f.scale, o.read);
  network = network_facts(index.family, network_weights(), options());
  open_sizes();
  texts = PromptEncoder(index, compiler, options(), loras, o.text_length, network.context);
  const auto fits = [&](const char* what, std::int64_t read, std::int64_t given_width) {
    if (read != given_width)
      throw file_error("StableDiffusion", folder, "the ", index.network(), " reads ", what, " of a width of ", read,
                       ", and the text encoders give ", given_width);
  };
  fits("texts", network.context, texts.width());
  fits("pooled texts", network.pooled, texts.pooled_width());
}

LoadedModel StableDiffusion::Loaded::autoencoder(const char* output) const {
  const Weights w = open_part(index.part("vae"), o.read);
  LoadModelOptions chosen = options();
  chosen.outputs = {{output}};
  const ConfigFile config(w, o.ignore);
  const AutoencoderSizes sizes{1, height, width};
  if (config.text("_class_name") == "AutoencoderTiny") return load_autoencoder_tiny(w, config, chosen, sizes);
  config.only("_class_name", "AutoencoderKL");
  return load_autoencoder_kl(w, config, chosen, sizes);
}
const Program& StableDiffusion::Loaded::encode_program() {
  if (!encoder) encoder = autoencoder("encoded").program(compiler);
  return *encoder;
}
const Program& StableDiffusion::Loaded::decode_program() {
  if (!decoder) decoder = autoencoder("decoded").program(compiler);
  return *decoder;
}

const Program& StableDiffusion::Loaded::denoiser(bool guided) {
  if (const auto at = denoisers.find(guided); at != denoisers.end()) return at->second;
  std::optional<Weights> control;
  if (!o.controlnet.empty()) control = open_part(o.controlnet, o.read);
  const LoadedModel m =
      load_denoiser(index.family, network_weights(), control, options(), {height, width, texts.length(), guided});
  Program p = m.program(compiler);
  merge_loras(p, m, index.network(), loras);
  for (const Lora& lora : loras) lora.require_all_used();
  return denoisers.emplace(guided, std::move(p)).first->second;
}

// The texts that the network reads, the negative one first.
Prompts StableDiffusion::Loaded::prompts(const ImageRequest& r) const {
  if (!guided(r)) return texts({r.prompt});
  Prompts p = texts({r.negative, r.prompt});
  if (index.zeros_for_empty && r.negative.empty()) {  // SDXL's empty text is nothing at all
    std::fill_n(p.states.begin(), p.states.size() / 2, 0.0f);
    std::fill_n(p.pooled.begin(), p.pooled.size() / 2, 0.0f);
  }
  return p;
}

void StableDiffusion::Loaded::check(const ImageRequest& r) const {
  const auto refuse = [](const std::string& what) { throw Error("StableDiffusion", what); };
  if (r.mask && !r.picture) refuse("a mask needs a picture, parts of which it keeps");
  if (network.beside > 0 && network.beside != network.channels + 1)
    refuse(str_cat("the UNet reads ", network.beside, " channels besides the latents, and inpainting has ",
                   network.channels + 1));
  if (network.beside > 0 && !r.mask) refuse("the model is for inpainting: it needs a picture and a mask");
  if (o.controlnet.empty() == r.control.has_value())
    refuse(r.control ? "a picture that controls needs a ControlNet" : "a ControlNet needs a picture that controls");
  if (!r.noise.empty() && r.noise.size() != latents())
    refuse(str_cat(r.noise.size(), " numbers of noise, and the latents are ", latents()));
  if (!network.steers && !r.negative.empty())
    refuse(str_cat("a negative prompt, which ", index.class_name, " cannot take: its guidance is learnt"));
  if (!std::isfinite(guidance(r)) || !std::isfinite(r.control_scale)) refuse("a guidance or scale that is no number");
}

// A picture cut to a size, with values from -1 to 1.
std::vector<float> StableDiffusion::Loaded::pixels_of(const Array& picture, std::int64_t h, std::int64_t w) const {
  if (picture.shape.size() != 3 || picture.shape[0] != 3)
    throw Error("StableDiffusion", "a picture is not u8 [3, height, width]");
  Array fitted = picture;
  if (picture.shape[1] != h || picture.shape[2] != w) {
    const double larger = std::max(static_cast<double>(h) / static_cast<double>(picture.shape[1]),
                                   static_cast<double>(w) / static_cast<double>(picture.shape[2]));
    const auto shorter = static_cast<double>(std::min(picture.shape[1], picture.shape[2]));
    fitted = fitted_image(picture,
                          {.resize = static_cast<std::int64_t>(std::ceil(larger * shorter)), .height = h, .width = w});
  }
  std::vector<float> v;
  for (const std::uint8_t x : fitted.values<std::uint8_t>()) v.push_back(static_cast<float>(x) / 127.5f - 1);
  return v;
}

// A mask for latents, [height, width]: 1 is made anew. The middle of each square of pixels counts, as in "nearest".
std::vector<float> StableDiffusion::Loaded::mask_of(const Array& mask) const {
  if (mask.shape.size() != 3 || mask.dtype != DType::U8 || mask.elements() == 0)
    throw Error("StableDiffusion", "a mask is not u8 [1 or 3, height, width]");
  const std::int64_t h = mask.shape[1], w = mask.shape[2];
  const auto pixels = mask.values<std::uint8_t>();
  std::vector<float> v;
  for (std::int64_t y = 0; y < height; ++y)
    for (std::int64_t x = 0; x < width; ++x)
      v.push_back(pixels[static_cast<std::size_t>(y * h / height * w + x * w / width)] >= 128 ? 1.0f : 0.0f);
  return v;
}

std::vector<float> StableDiffusion::Loaded::encoded(const std::vector<float>& picture) {
  Context c(encode_program());
  c.set("image", picture).run();
  return c.get("encoded");
}

// The inputs of the denoiser that stay the same in all steps.
void StableDiffusion::Loaded::set_conditions(Context& c, const ImageRequest& r) const {
  const bool two = guided(r);
  const Prompts p = prompts(r);
  c.set("encoder_hidden_states", p.states);
  const std::int64_t h = height * scale, w = width * scale;
  if (index.family >= Family::StableDiffusion3) {
    c.set("pooled_projections", p.pooled);
  } else if (!p.pooled.empty()) {
    std::vector<float> ids;
    for (int k = 0; k < (two ? 2 : 1); ++k)
      for (const std::int64_t n : {h, w, std::int64_t{0}, std::int64_t{0}, h, w}) ids.push_back(static_cast<float>(n));
    c.set("text_embeds", p.pooled).set("time_ids", ids);
  }
  if (two || network.embeds_guidance) c.set("guidance", std::vector{static_cast<float>(guidance(r))});
  if (!r.control) return;
  std::vector<float> hint = pixels_of(*r.control, h, w);
  for (float& x : hint) x = x / 2 + 0.5f;
  const std::vector<float> one = hint;
  if (two) hint.insert(hint.end(), one.begin(), one.end());
  c.set("controlnet_cond", hint).set("control_scale", std::vector{static_cast<float>(r.control_scale)});
}

// What a UNet for inpainting reads beside the sample: the mask, and the latents of the picture in which all that is
// made anew is grey.
std::vector<float> StableDiffusion::Loaded::beside_of(const Array& picture, const std::vector<float>& keep) {
  const auto w = static_cast<std::size_t>(width * scale), size = static_cast<std::size_t>(height * scale) * w,
             by = static_cast<std::size_t>(scale);
  std::vector<float> hidden = pixels_of(picture, height * scale, width * scale), shown = keep;
  for (std::size_t k = 0; k < hidden.size(); ++k) {
    const std::size_t y = k % size / w / by, x = k % w / by;
    if (keep[y * static_cast<std::size_t>(width) + x] > 0.5f) hidden[k] = 0;
  }
  const std::vector<float> masked = encoded(hidden);
  shown.insert(shown.end(), masked.begin(), masked.end());
  return shown;
}

// Runs the denoiser once; the sample and the memories become the next ones.
void StableDiffusion::Loaded::run_step(Context& c, const SamplingStep& s, const std::vector<float>& fresh, bool guided,
                                       std::vector<float>& x, std::vector<float>& memory) {
  std::vector<double> update;
  for (const auto& row : s.update) update.insert(update.end(), row.begin(), row.end());
  const double limit = s.limit > 0 ? s.limit : 3e38;
  c.set("sample", x).set("memory", memory).set("update", as_floats(update)).set("noise", fresh);
  c.set("step", as_floats({s.input_scale, s.from_sample, s.from_output, limit}));
  c.set("timestep", std::vector<float>(guided ? 2 : 1, static_cast<float>(s.timestep))).run();
  x = c.get("next"), memory = c.get("next_memory");
}

std::vector<float> StableDiffusion::Loaded::denoised(const ImageRequest& r,
                                                     const std::function<void(double)>& progress) {
  check(r);
  const bool two = guided(r), begins = r.picture && network.beside == 0;
  const SamplingPlan plan = sampling_plan(scheduler, {.steps = r.steps,
                                                      .strength = begins ? r.strength : 1,
                                                      .eta = r.eta,
                                                      .length = height / network.patch * (width / network.patch),
                                                      .evenly = index.family == Family::Flux});
  Context c(denoiser(two));
  set_conditions(c, r);
  const std::vector<float> noise = r.noise.empty() ? normal_numbers(latents(), r.seed, "noise") : r.noise;
  std::vector<float> begun, keep, x(latents()), memory(kMemories * x.size());
  if (r.mask) keep = mask_of(*r.mask);
  if (network.beside > 0) c.set("beside", beside_of(*r.picture, keep));
  if (begins) begun = encoded(pixels_of(*r.picture, height * scale, width * scale));
  const auto noised = [&](const NoiseLevel& level, std::size_t k) {
    return static_cast<float>(level.alpha * static_cast<double>(begun[k]) +
                              level.sigma * static_cast<double>(noise[k]));
  };
  for (std::size_t k = 0; k < x.size(); ++k)
    x[k] = begins ? noised(plan.steps.front().level, k)
                  : static_cast<float>(plan.first_scale * static_cast<double>(noise[k]));
  for (std::size_t n = 0; n < plan.steps.size(); ++n) {
    if (progress) progress(static_cast<double>(n) / static_cast<double>(plan.steps.size()));
    const std::vector<float> fresh =
        plan.steps[n].draws() ? normal_numbers(x.size(), r.seed, str_cat("noise.", n)) : std::vector<float>(x.size());
    run_step(c, plan.steps[n], fresh, two, x, memory);
    if (!begins || keep.empty()) continue;
    const NoiseLevel level = n + 1 < plan.steps.size() ? plan.steps[n + 1].level : NoiseLevel{1, 0};
    for (std::size_t k = 0; k < x.size(); ++k)
      if (keep[k % keep.size()] < 0.5f) x[k] = noised(level, k);
  }
  return x;
}

StableDiffusion StableDiffusion::load(const std::string& folder, const StableDiffusionOptions& o) {
  auto loaded = std::make_shared<Loaded>();
  loaded->open(folder, o);
  return StableDiffusion(std::move(loaded));
}

std::vector<float> StableDiffusion::generate_f32(const ImageRequest& r,
                                                 const std::function<void(double part)>& progress) const {
  const std::vector<float> latent = loaded_->denoised(r, progress);
  Context c(loaded_->decode_program());
  c.set("latent", latent).run();
  if (progress) progress(1);
  return c.get("decoded");
}

Array StableDiffusion::generate(const ImageRequest& r, const std::function<void(double part)>& progress) const {
  const std::vector<float> v = generate_f32(r, progress);
  Array picture = Array::zeros(DType::U8, {3, height(), width()});
  const auto pixels = picture.values<std::uint8_t>();
  if (pixels.size() != v.size())
    throw Error("StableDiffusion",
                str_cat("the autoencoder gives ", v.size(), " numbers, and a picture has ", pixels.size()));
  for (std::size_t k = 0; k < v.size(); ++k)
    pixels[k] = static_cast<std::uint8_t>(std::nearbyint(std::clamp(v[k] / 2 + 0.5f, 0.0f, 1.0f) * 255));
  return picture;
}

std::int64_t StableDiffusion::height() const { return loaded_->height * loaded_->scale; }
std::int64_t StableDiffusion::width() const { return loaded_->width * loaded_->scale; }
const SchedulerConfig& StableDiffusion::scheduler() const { return loaded_->scheduler; }

std::vector<std::string> StableDiffusion::notes(const ImageRequest& r) const {
  std::vector<std::string> all;
  const PromptEncoder& texts = loaded_->texts;
  for (const auto& [name, text] : {std::pair("the prompt", &r.prompt), std::pair("the negative prompt", &r.negative)})
    if (const std::int64_t most = texts.cut_to(*text); most > 0)
      all.push_back(str_cat(name, " is longer than the ", most, " tokens that count; its end is cut off"));
  if (texts.lacks_t5()) all.emplace_back("the folder has no text_encoder_3: the texts are read by CLIP alone");
  return all;
}

}  // namespace lc::diffusion
