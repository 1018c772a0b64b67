// The command line of `lightcone imagine`.
#include <memory>

#include "lightcone/base/numbers.h"
#include "lightcone/models/diffusion/sampling/scheduler_config.h"
#include "options.h"

namespace lc::tool {

void add_imagine(CLI::App& app) {
  auto o = std::make_shared<ImagineOptions>();
  CLI::App* c = app.add_subcommand("imagine", "A picture from a text, with Stable Diffusion 1, 2, XL or 3, or FLUX.1");
  c->footer(
      "  lightcone imagine stable-diffusion-v1-5 \"a lighthouse at dawn, oil on canvas\" -o dawn.png\n"
      "  lightcone imagine sdxl \"a red fox\" --negative \"blurry\" --steps 25 --seed 7 --size 1024x768 -o fox.png\n"
      "  lightcone imagine sd \"in autumn\" --init photo.jpg --strength 0.6 -o autumn.png\n"
      "  lightcone imagine sd \"a vase\" --init room.jpg --mask place.png -o vase.png\n"
      "  lightcone imagine sd \"a house\" --controlnet canny --control edges.png -o house.png\n"
      "  lightcone imagine flux.1-schnell \"a vase\" --steps 4 --text-length 256 --size 512 -o vase.png\n"
      "MODEL is a folder of diffusers: model_index.json with unet or transformer, vae, text_encoder, tokenizer, "
      "scheduler.\n"
      "The same seed gives the same picture. --steps: more take longer and are finer, 20 to 50 are usual, 1 to 4 for "
      "FLUX.1\n"
      "schnell; --guidance: how closely the text is followed, 4 to 9 are usual, 2 to 4 for FLUX.1 dev. --strength says "
      "how much of --init is made anew, and where --mask is "
      "white\n"
      "alone is painted. --lora FILE:0.8 merges 80 % of a LoRA; several may be given. A text of more than 75 or so "
      "tokens\n"
      "is cut off. -o FILE.npy writes numbers from -1 to 1, f32 [3, height, width]. docs/models.md says more.");
  c->add_option("MODEL", o->model, "folder of the model")->required()->type_name("");
  c->add_option("PROMPT", o->prompt, "what the picture shows")->required()->type_name("");
  c->add_option("-o,--output", o->output, "a .png, .jpg or .npy file")->required()->type_name("FILE");
  c->add_option("--negative", o->negative, "what it is not to show")->type_name("TEXT");
  c->add_option("--steps", o->steps, "steps of the sampler")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000))
      ->type_name("N");
  c->add_option_function<std::string>(
       "--guidance", [o](const std::string& given) { o->guidance = real_of<double>(given); },
       "how closely the prompt is followed; 1: in half the time without it; without: 7.5, for Stable Diffusion 3 7, "
       "for "
       "FLUX.1 dev 3.5")
      ->check([](const std::string& given) { return real_of<double>(given) ? "" : given + " is no number"; })
      ->type_name("G");
  c->add_option("--seed", o->seed, "the same seed gives the same picture")->capture_default_str()->type_name("N");
  c->add_option("--size", o->size, "of the picture: N or WIDTHxHEIGHT; without: as the model was trained")
      ->type_name("SIZE");
  c->add_option("--text-length", o->text_length, "tokens of T5's texts; without: 256, for FLUX 512")
      ->check(CLI::Range(1, 4096))
      ->type_name("N");
  std::vector<std::string> words;
  for (const std::string_view name : diffusion::scheduler_names()) words.emplace_back(name);
  one_of(c->add_option("--scheduler", o->scheduler, "in place of the model's: " + joined(words, ", ")), words)
      ->type_name("NAME");
  c->add_option("--init", o->init, "a picture to begin with")->type_name("FILE");
  c->add_option("--mask", o->mask, "where it is white, --init is painted anew")->needs("--init")->type_name("FILE");
  add_real(*c, "--strength", o->strength, "of --init: above 0; 1 keeps nothing of it")
      ->capture_default_str()
      ->type_name("S");
  c->add_option("--controlnet", o->controlnet, "folder of a ControlNet")->type_name("FOLDER");
  c->add_option("--control", o->control, "the picture that it follows")->needs("--controlnet")->type_name("FILE");
  add_real(*c, "--control-scale", o->control_scale, "how closely")->capture_default_str()->type_name("S");
  c->add_option("--lora", o->loras, "a LoRA to merge, FILE or FILE:SCALE; may be repeated")
      ->allow_extra_args(false)
      ->type_name("FILE");
  add_real(*c, "--eta", o->eta, "of DDIM: 1 adds as much noise as DDPM")->capture_default_str()->type_name("E");
  c->add_option("--noise", o->noise, "f32 [channels, height / 8, width / 8] to begin with, in place of the seed's")
      ->type_name("NPY");
  c->add_option("--ignore", o->ignore, "a key of the model's JSON files that changes nothing; may be repeated")
      ->allow_extra_args(false)
      ->type_name("KEY");
  add_device(*c, o->device);
  add_threads(*c, o->threads);
  add_precision(*c, o->precision);
  c->callback([o] { imagine(*o); });
}

}  // namespace lc::tool
