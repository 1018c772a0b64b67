#include "lightcone/models/diffusion/pipeline/stable_diffusion.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "lightcone/base/error.h"
#include "lightcone/io/images/images.h"
#include "lightcone/models/diffusion/autoencoder_tiny.h"
#include "lightcone/models/diffusion/pipeline/clip_tokenizer.h"
#include "lightcone/models/diffusion/pipeline/components.h"
#include "lightcone/models/diffusion/pipeline/denoiser.h"
#include "lightcone/models/diffusion/pipeline/lora.h"
#include "lightcone/models/diffusion/pipeline/text_encoder.h"
#include "lightcone/nn/init.h"
#include "lightcone/runtime/default_compiler.h"

namespace lc::diffusion {
namespace {

// Standard normal numbers, the same on every machine and for any number of threads.
std::vector<float> normal_numbers(std::size_t n, std::int64_t seed, const std::string& stream) {
  const nn::init::Values v = nn::init::normal({static_cast<std::int64_t>(n)}, {.seed = seed, .parameter = stream});
  return {v.begin(), v.end()};
}

std::vector<float> as_floats(const std::vector<double>& v) { return {v.begin(), v.end()}; }

std::int64_t extent_of(const LoadedModel& m, const char* input, int axis) {
  return m.inputs.at(input).extent(axis).constant().value_or(0);
}

}  // namespace

struct StableDiffusion::Loaded {
  // A text encoder with its tokenizer.
  struct Texts {
    PromptTokenizer tokenizer;
    Program program;
    std::int64_t width = 0, length = 0, embeds = 0;
  };

  // What the denoiser reads of the texts of a request, the negative one first.
  struct Prompts {
    std::vector<float> states, embeds;
    std::int64_t texts = 1, width = 0;
  };

  StableDiffusionOptions o;
  PipelineIndex index;
  SchedulerConfig scheduler;
  Compiler compiler;
  std::vector<Lora> loras;
  std::vector<Texts> texts;
  std::int64_t height = 0, width = 0, scale = 8;  // the first two are those of latents
  std::int64_t channels = 4, beside = 0;
  bool zeros_for_empty = false;
  std::map<bool, Program> denoisers;  // by whether they are guided
  std::optional<Program> encoder, decoder;

  LoadModelOptions options() const { return {.ignore = o.ignore, .read = o.read}; }
  void open(const std::string& folder, StableDiffusionOptions given);
  void open_texts(const std::string& name, const std::string& tokenizer);
  void open_unet();
  LoadedModel autoencoder(const char* output) const;
  const Program& denoiser(bool guided);
  const Program& encode_program();
  const Program& decode_program();
  Prompts prompts(const ImageRequest& r, bool guided) const;
  std::vector<float> encoded(const std::vector<float>& picture);
  std::size_t latents() const { return static_cast<std::size_t>(channels * height * width); }
  void set_conditions(Context& c, const ImageRequest& r, bool guided) const;
  std::vector<float> beside_of(const Array& picture, const std::vector<float>& keep);
  static void run_step(Context& c, const SamplingStep& s, const std::vector<float>& fresh, bool guided,
                       std::vector<float>& x, std::vector<float>& memory);
  std::vector<float> denoised(const ImageRequest& r, const std::function<void(double)>& progress);
  void check(const ImageRequest& r) const;
  std::vector<float> pixels_of(const Array& picture, std::int64_t h, std::int64_t w) const;
  std::vector<float> mask_of(const Array& mask) const;
};

void StableDiffusion::Loaded::open_texts(const std::string& name, const std::string& tokenizer) {
  const LoadedModel m = load_text_encoder(open_part(index.part(name), o.read), options());
  Texts t;
  t.length = m.limits.at("length");
  t.tokenizer = PromptTokenizer::load(index.part(tokenizer), t.length, o.read);
  t.width = m.outputs.at("hidden").extent(2).constant().value_or(0);
  if (m.outputs.contains("text_embeds")) t.embeds = m.outputs.at("text_embeds").extent(1).constant().value_or(0);
  t.program = m.program(compiler);
  merge_loras(t.program, m, name, loras);
  texts.push_back(std::move(t));
}

// Reads what the sizes of the others depend on, and checks them.
void StableDiffusion::Loaded::open_unet() {
  const Weights w = open_part(index.part("unet"), o.read);
  const ConfigFile config(w, o.ignore);
  const UNetConfig u = UNetConfig::from(config, false, w.tensors().size());
  channels = u.out_channels, beside = channels_beside(u);
  const std::vector<std::int64_t> sample = config.sizes("sample_size");
  const ConfigFile vae(open_part(index.part("vae"), o.read), o.ignore);
  const std::size_t levels =
      vae.sizes(vae.has("encoder_block_out_channels") ? "encoder_block_out_channels" : "block_out_channels").size();
  if (levels < 1 || levels > kMostLevels) vae.fail("block_out_channels has ", levels, " levels");
  scale = std::int64_t{1} << (levels - 1);
  const auto latent = [&](std::int64_t given, std::int64_t otherwise) {
    const std::int64_t n = given > 0 ? given : otherwise * scale;
    if (n % scale != 0 || n < scale || n > scale * 4 * kLargestLatent)
      throw Error("StableDiffusion", str_cat("pictures of ", n, " pixels along a side, and not a multiple of ", scale,
                                             " of at most ", scale * 4 * kLargestLatent));
    return n / scale;
  };
  height = latent(o.height, sample.empty() ? 64 : sample.front());
  width = latent(o.width, sample.empty() ? 64 : sample.back());
  std::int64_t context = 0;
  for (const Texts& t : texts) context += t.width;
  if (u.context() != context)
    config.fail("the UNet reads texts of a width of ", u.context(), ", and the text encoders give ", context);
}

void StableDiffusion::Loaded::open(const std::string& folder, StableDiffusionOptions given) {
  o = std::move(given);
  index = PipelineIndex::read(folder, o.read, o.ignore);
  zeros_for_empty = index.zeros_for_empty;
  compiler = o.compiler ? *o.compiler : default_compiler({.threads = o.threads, .precision = o.precision});
  scheduler = SchedulerConfig::from(ConfigFile(
      (std::filesystem::path(index.part("scheduler")) / "scheduler_config.json").string(), o.read, o.ignore));
  if (!o.scheduler.empty()) scheduler = scheduler.with(o.scheduler);
  for (const LoraFile& f : o.loras) loras.emplace_back(f.path, f.scale, o.read);
  open_texts("text_encoder", "tokenizer");
  if (index.two_encoders) open_texts("text_encoder_2", "tokenizer_2");
  open_unet();
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
  const LoadedModel m = load_denoiser(open_part(index.part("unet"), o.read), control, options(),
                                      {height, width, texts.front().length, guided});
  Program p = m.program(compiler);
  merge_loras(p, m, "unet", loras);
  for (const Lora& lora : loras) lora.require_all_used();
  if (index.two_encoders && m.inputs.contains("text_embeds") && extent_of(m, "text_embeds", 1) != texts.back().embeds)
    throw Error("StableDiffusion", str_cat("the UNet reads pooled texts of a width of ", extent_of(m, "text_embeds", 1),
                                           ", and the second text encoder gives ", texts.back().embeds));
  return denoisers.emplace(guided, std::move(p)).first->second;
}

StableDiffusion::Loaded::Prompts StableDiffusion::Loaded::prompts(const ImageRequest& r, bool guided) const {
  Prompts p;
  p.texts = guided ? 2 : 1;
  const std::vector<std::string> all = guided ? std::vector<std::string>{r.negative, r.prompt} : std::vector{r.prompt};
  const auto n = static_cast<std::size_t>(p.texts), length = static_cast<std::size_t>(texts.front().length);
  std::vector<std::vector<float>> parts;
  for (const Texts& t : texts) {
    std::vector<std::int64_t> ids;
    for (const std::string& text : all) {
      const std::vector<std::int64_t> one = t.tokenizer.ids(text);
      ids.insert(ids.end(), one.begin(), one.end());
    }
    Context c(t.program);
    c.bind("batch", p.texts).bind("length", t.length).set("input_ids", ids).run();
    parts.push_back(c.get(index.two_encoders ? "penultimate" : "hidden"));
    if (index.two_encoders && &t == &texts.back()) p.embeds = c.get("text_embeds");
    p.width += t.width;
  }
  for (std::size_t row = 0; row < n * length; ++row)
    for (std::size_t k = 0; k < parts.size(); ++k) {
      const auto w = static_cast<std::ptrdiff_t>(texts[k].width), at = static_cast<std::ptrdiff_t>(row) * w;
      p.states.insert(p.states.end(), parts[k].begin() + at, parts[k].begin() + at + w);
    }
  if (guided && zeros_for_empty && r.negative.empty()) {  // SDXL's empty text is nothing at all
    std::fill_n(p.states.begin(), p.states.size() / 2, 0.0f);
    std::fill_n(p.embeds.begin(), p.embeds.size() / 2, 0.0f);
  }
  return p;
}

void StableDiffusion::Loaded::check(const ImageRequest& r) const {
  const auto refuse = [](const std::string& what) { throw Error("StableDiffusion", what); };
  if (r.mask && !r.picture) refuse("a mask needs a picture, parts of which it keeps");
  if (beside > 0 && beside != channels + 1)
    refuse(str_cat("the UNet reads ", beside, " channels besides the latents, and inpainting has ", channels + 1));
  if (beside > 0 && !r.mask) refuse("the model is for inpainting: it needs a picture and a mask");
  if (o.controlnet.empty() == r.control.has_value())
    refuse(r.control ? "a picture that controls needs a ControlNet" : "a ControlNet needs a picture that controls");
  if (!r.noise.empty() && r.noise.size() != latents())
    refuse(str_cat(r.noise.size(), " numbers of noise, and the latents are ", latents()));
  if (!std::isfinite(r.guidance) || !std::isfinite(r.control_scale)) refuse("a guidance or scale that is no number");
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
void StableDiffusion::Loaded::set_conditions(Context& c, const ImageRequest& r, bool guided) const {
  const Prompts p = prompts(r, guided);
  c.set("encoder_hidden_states", p.states);
  const std::int64_t h = height * scale, w = width * scale;
  if (!p.embeds.empty()) {
    std::vector<float> ids;
    for (std::int64_t k = 0; k < p.texts; ++k)
      for (const std::int64_t n : {h, w, std::int64_t{0}, std::int64_t{0}, h, w}) ids.push_back(static_cast<float>(n));
    c.set("text_embeds", p.embeds).set("time_ids", ids);
  }
  if (guided) c.set("guidance", std::vector{static_cast<float>(r.guidance)});
  if (!r.control) return;
  std::vector<float> hint = pixels_of(*r.control, h, w);
  for (float& x : hint) x = x / 2 + 0.5f;
  const std::vector<float> one = hint;
  if (guided) hint.insert(hint.end(), one.begin(), one.end());
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
  const bool guided = r.guidance > 1, begins = r.picture && beside == 0;
  const SamplingPlan plan =
      sampling_plan(scheduler, {.steps = r.steps, .strength = begins ? r.strength : 1, .eta = r.eta});
  Context c(denoiser(guided));
  set_conditions(c, r, guided);
  const std::vector<float> noise = r.noise.empty() ? normal_numbers(latents(), r.seed, "noise") : r.noise;
  std::vector<float> begun, keep, x(latents()), memory(kMemories * x.size());
  if (r.mask) keep = mask_of(*r.mask);
  if (beside > 0) c.set("beside", beside_of(*r.picture, keep));
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
    run_step(c, plan.steps[n], fresh, guided, x, memory);
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
  const Loaded::Texts& t = loaded_->texts.front();
  for (const auto& [name, text] : {std::pair("the prompt", &r.prompt), std::pair("the negative prompt", &r.negative)})
    if (t.tokenizer.too_long(*text))
      all.push_back(str_cat(name, " is longer than the ", t.length, " tokens that count; its end is cut off"));
  return all;
}

}  // namespace lc::diffusion
