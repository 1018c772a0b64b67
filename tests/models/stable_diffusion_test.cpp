// StableDiffusion makes the pictures that diffusers makes of the same folder, texts and noise: from noise, from a
// picture, in a mask, with a LoRA, with SDXL's two text encoders, with Stable Diffusion 3 with and without its T5, and
// with FLUX; and the same bits for any number of threads.
#include "lightcone/models/diffusion/pipeline/stable_diffusion.h"

#include <array>

#include "error_of.h"
#include "lightcone/models/diffusion/pipeline/lora.h"
#include "tiny_models.h"

using namespace lc;
using namespace lc::diffusion;

namespace {

using nlohmann::json;
namespace fs = std::filesystem;

const std::string kPrompt = "A cat, the red zebra!", kNegative = "fog";

json pipelines() {
  return json::parse(slurp(std::string(paths::kSource) + "/tests/goldens/diffusion.json"))["pipelines"];
}

// A folder of diffusers with the parts of tools/make_diffusion_goldens.py.
struct PipelineFolder {
  TempDir folder;
  explicit PipelineFolder(const json& c) {
    for (const auto& [name, part] : c["parts"].items()) {
      const test::FormulaFolder made(part["config"], part["tensors"]);
      fs::copy(made.folder.path, folder / name);
    }
    fs::create_directory(folder / "scheduler");
    spit(folder / "scheduler/scheduler_config.json", c["scheduler"].dump());
    const json& parts = c["parts"];
    const bool flux = parts.contains("transformer") && !parts.contains("text_encoder_3");
    tokenizer("tokenizer", "<|endoftext|>");
    if (flux) t5_tokenizer("tokenizer_2", c["t5"]);
    else if (parts.contains("text_encoder_2")) tokenizer("tokenizer_2", "!");
    if (parts.contains("text_encoder_3")) t5_tokenizer("tokenizer_3", c["t5"]);
    const char* name = flux                               ? "FluxPipeline"
                       : parts.contains("transformer")    ? "StableDiffusion3Pipeline"
                       : parts.contains("text_encoder_2") ? "StableDiffusionXLPipeline"
                                                          : "StableDiffusionPipeline";
    index({{"_class_name", name}});
  }
  void index(const json& j) const { spit(folder / "model_index.json", j.dump()); }
  std::string path() const { return folder.path.string(); }

 private:
  void t5_tokenizer(const std::string& name, const json& tokenizer_json) const {
    fs::create_directory(folder / name);
    spit(folder / (name + "/tokenizer.json"), tokenizer_json.dump());
    spit(folder / (name + "/tokenizer_config.json"), json{{"pad_token", "<pad>"}}.dump());
  }
  void tokenizer(const std::string& name, const std::string& padding) const {
    fs::create_directory(folder / name);
    const std::string letters = "abcdefghijklmnopqrstuvwxyz!";
    json vocab;
    std::int64_t next = 0;
    for (const char* end : {"", "</w>"})
      for (const char c : letters) vocab[std::string(1, c) + end] = next++;
    for (const char* piece : {"at</w>", "cat</w>", "th", "the</w>", "<|startoftext|>", "<|endoftext|>"})
      vocab[piece] = next++;
    spit(folder / (name + "/vocab.json"), vocab.dump());
    spit(folder / (name + "/merges.txt"), "#version: 0.2\na t</w>\nc at</w>\nt h\nth e</w>\n");
    spit(folder / (name + "/tokenizer_config.json"), json{{"pad_token", padding}}.dump());
  }
};

std::vector<float> formula_noise() {
  std::vector<float> v;
  for (int k = 0; k < 64; ++k) v.push_back(static_cast<float>(std::sin(0.9 * k)));
  return v;
}
Array photo() {
  Array a = Array::zeros(DType::U8, {3, 8, 8});
  for (int k = 0; k < 192; ++k)
    a.values<std::uint8_t>()[static_cast<std::size_t>(k)] = static_cast<std::uint8_t>(37 * k);
  return a;
}
Array mask() {
  Array a = Array::zeros(DType::U8, {1, 8, 8});
  for (std::size_t y = 2; y < 6; ++y)
    for (std::size_t x = 4; x < 8; ++x) a.values<std::uint8_t>()[8 * y + x] = 255;
  return a;
}

void expect_picture(const std::vector<float>& got, const json& want, const std::string& what) {
  std::vector<double> clamped;
  for (const float v : got) clamped.push_back(std::fmin(std::fmax(static_cast<double>(v), -1.0), 1.0));
  EXPECT_LT(test::farthest(clamped, test::numbers_of(want)), 1e-4) << what;
}

TEST(StableDiffusion, PicturesAreDiffusers) {
  const json all = pipelines();
  const PipelineFolder folder(all[0]);
  const StableDiffusion model = StableDiffusion::load(folder.path(), {.threads = 2});
  EXPECT_EQ(model.height(), 8);
  const ImageRequest r{.prompt = kPrompt, .negative = kNegative, .steps = 4, .guidance = 3, .noise = formula_noise()};
  std::vector<double> parts;
  expect_picture(model.generate_f32(r, [&](double part) { parts.push_back(part); }), all[0]["runs"]["text"], "text");
  EXPECT_EQ(parts, (std::vector<double>{0, 0.25, 0.5, 0.75, 1}));
  EXPECT_EQ(model.notes(r).size(), 1u);  // the prompt has 13 tokens, of which 12 count
  ImageRequest begun = r;
  begun.steps = 6, begun.strength = 0.6, begun.picture = photo();
  expect_picture(model.generate_f32(begun), all[0]["runs"]["picture"], "picture");
  begun.mask = mask();
  expect_picture(model.generate_f32(begun), all[0]["runs"]["mask"], "mask");
}

TEST(StableDiffusion, TwoTextEncoders) {
  const json all = pipelines();
  const PipelineFolder folder(all[1]);
  const StableDiffusion model = StableDiffusion::load(folder.path(), {.threads = 2});
  ImageRequest r{.prompt = kPrompt, .negative = kNegative, .steps = 4, .guidance = 3, .noise = formula_noise()};
  expect_picture(model.generate_f32(r), all[1]["runs"]["text"], "text");
  r.negative = "";
  expect_picture(model.generate_f32(r), all[1]["runs"]["empty"], "without a negative prompt");
}

TEST(StableDiffusion, StableDiffusion3) {
  const json all = pipelines();
  const PipelineFolder folder(all[2]);
  const StableDiffusionOptions o{.text_length = 10, .threads = 2};
  const StableDiffusion model = StableDiffusion::load(folder.path(), o);
  EXPECT_EQ(model.height(), 8);
  const ImageRequest r{.prompt = kPrompt, .negative = kNegative, .steps = 4, .guidance = 3, .noise = formula_noise()};
  expect_picture(model.generate_f32(r), all[2]["runs"]["text"], "text");
  ImageRequest begun = r;
  begun.steps = 6, begun.strength = 0.6, begun.picture = photo();
  expect_picture(model.generate_f32(begun), all[2]["runs"]["picture"], "picture");
  EXPECT_PRED2(contains, error_of([&] { StableDiffusion::load(folder.path(), {.height = 6}); }),
               "pictures of 6 pixels along a side, and not a multiple of 4");
  EXPECT_PRED2(contains, error_of([&] { StableDiffusion::load(folder.path(), {.controlnet = folder.path()}); }),
               "ControlNets of StableDiffusion3Pipeline are not supported");
  EXPECT_TRUE(model.notes({.prompt = "the cat"}).empty());
  fs::remove_all(folder.folder / "text_encoder_3");
  const StableDiffusion without = StableDiffusion::load(folder.path(), o);
  expect_picture(without.generate_f32(r), all[2]["runs"]["without"], "without T5");
  EXPECT_EQ(without.notes({.prompt = "the cat"}).size(), 1u);  // that there is none
}

// FLUX.1 dev is told the guidance, and its noise levels depend on the size; schnell knows neither.
TEST(StableDiffusion, Flux) {
  const json all = pipelines();
  for (const std::size_t k : {std::size_t{3}, std::size_t{4}}) {
    const PipelineFolder folder(all[k]);
    const StableDiffusion model =
        StableDiffusion::load(folder.path(), {.height = 8, .width = 8, .text_length = 10, .threads = 2});
    ImageRequest r{.prompt = kPrompt, .steps = 4, .guidance = 3, .noise = formula_noise()};
    expect_picture(model.generate_f32(r), all[k]["runs"]["text"], str_cat("text ", k));
    r.steps = 6, r.strength = 0.6, r.picture = photo();
    expect_picture(model.generate_f32(r), all[k]["runs"]["picture"], str_cat("picture ", k));
    r.negative = kNegative;
    EXPECT_PRED2(contains, error_of([&] { model.generate_f32(r); }),
                 "a negative prompt, which FluxPipeline cannot take");
    const StableDiffusion large = StableDiffusion::load(folder.path(), {.text_length = 10});
    EXPECT_EQ(large.height(), 256);  // 128 latents, which the autoencoder doubles
    fs::copy(folder.folder / "text_encoder", folder.folder / "text_encoder_2",
             fs::copy_options::overwrite_existing | fs::copy_options::recursive);
    EXPECT_PRED2(contains, error_of([&] { StableDiffusion::load(folder.path()); }), "which is a T5");
  }
}

// A LoRA of rank 2, alpha 4, of which half counts, in the names of kohya's trainer and of diffusers.
TEST(StableDiffusion, Lora) {
  const json all = pipelines();
  const PipelineFolder folder(all[0]);
  const auto formula = [](int i) {
    std::vector<float> v;
    for (int k = 0; k < 8; ++k) v.push_back(static_cast<float>(0.4 * std::sin(1.3 * i + 0.7 * k + 0.1)));
    return v;
  };
  const std::vector<float> down = formula(0), up = formula(1), alpha{4};
  const ImageRequest r{.prompt = kPrompt, .negative = kNegative, .steps = 4, .guidance = 3, .noise = formula_noise()};
  const std::string kohya = "lora_unet_down_blocks_0_attentions_0_transformer_blocks_0_attn1_to_q",
                    peft = "unet.down_blocks.0.attentions.0.transformer_blocks.0.attn1.to_q";
  for (const auto& [name, a, b] : {std::array{kohya, std::string(".lora_down.weight"), std::string(".lora_up.weight")},
                                   std::array{peft, std::string(".lora_A.weight"), std::string(".lora_B.weight")}}) {
    const std::string file = folder.folder / "lora.safetensors";
    save_safetensors(file,
                     std::vector<TensorToSave>{{name + a, DType::F32, {2, 4}, std::as_bytes(std::span(down))},
                                               {name + b, DType::F32, {4, 2}, std::as_bytes(std::span(up))},
                                               {name + ".alpha", DType::F32, {1}, std::as_bytes(std::span(alpha))}});
    const StableDiffusion model = StableDiffusion::load(folder.path(), {.loras = {{file, 0.5}}, .threads = 2});
    expect_picture(model.generate_f32(r), all[0]["runs"]["lora"], name);
  }
  // A LoRA of the text encoder changes the picture.
  const std::string text = folder.folder / "text.safetensors",
                    layer = "lora_te_text_model_encoder_layers_1_self_attn_q_proj";
  save_safetensors(
      text, std::vector<TensorToSave>{{layer + ".lora_down.weight", DType::F32, {1, 8}, std::as_bytes(std::span(down))},
                                      {layer + ".lora_up.weight", DType::F32, {8, 1}, std::as_bytes(std::span(up))}});
  const auto plain = StableDiffusion::load(folder.path(), {.threads = 2}).generate_f32(r);
  EXPECT_NE(StableDiffusion::load(folder.path(), {.loras = {{text, 9}}, .threads = 2}).generate_f32(r), plain);
  EXPECT_EQ(StableDiffusion::load(folder.path(), {.loras = {{text, 0}}, .threads = 2}).generate_f32(r), plain);
  const std::string other = folder.folder / "other.safetensors";
  save_safetensors(other,
                   std::vector<TensorToSave>{
                       {"lora_unet_conv_up.lora_down.weight", DType::F32, {2, 4}, std::as_bytes(std::span(down))},
                       {"lora_unet_conv_up.lora_up.weight", DType::F32, {4, 2}, std::as_bytes(std::span(up))}});
  const StableDiffusion wrong = StableDiffusion::load(folder.path(), {.loras = {{other, 1}}, .threads = 2});
  EXPECT_PRED2(contains, error_of([&] { wrong.generate_f32(r); }),
               "'lora_unet_conv_up.lora_up.weight' is for a layer that the model does not have");
}

TEST(StableDiffusion, SeedsAndThreads) {
  const json all = pipelines();
  const PipelineFolder folder(all[0]);
  ImageRequest r{.prompt = "the cat", .steps = 3, .seed = 7};
  const auto by = [&](int threads, const std::string& scheduler) {
    return StableDiffusion::load(folder.path(), {.scheduler = scheduler, .threads = threads}).generate(r).bytes;
  };
  const auto one = by(1, "euler_a");  // which draws noise in each step
  EXPECT_EQ(one, by(2, "euler_a"));
  r.seed = 8;
  EXPECT_NE(one, by(2, "euler_a"));
}

TEST(StableDiffusion, MistakesAreNamed) {
  const json all = pipelines();
  const PipelineFolder folder(all[0]);
  const auto load = [&](const StableDiffusionOptions& o) {
    return error_of([&] { StableDiffusion::load(folder.path(), o); });
  };
  EXPECT_PRED2(contains, load({.height = 9}), "pictures of 9 pixels along a side, and not a multiple of 2");
  EXPECT_PRED2(contains, load({.scheduler = "eular"}), "there is no scheduler 'eular'");
  const StableDiffusion model = StableDiffusion::load(folder.path());
  const auto generate = [&](const ImageRequest& r) { return error_of([&] { model.generate(r); }); };
  EXPECT_PRED2(contains, generate({.prompt = "a", .mask = mask()}), "a mask needs a picture");
  EXPECT_PRED2(contains, generate({.prompt = "a", .control = photo()}), "needs a ControlNet");
  EXPECT_PRED2(contains, generate({.prompt = "a", .steps = 0}), "0 steps, and not 1 to the 1000 of the training");
  EXPECT_PRED2(contains, generate({.prompt = "a", .noise = {1, 2}}), "2 numbers of noise, and the latents are 64");
  folder.index({{"_class_name", "StableDiffusionPipelin"}});
  EXPECT_PRED2(contains, load({}), "the pipeline 'StableDiffusionPipelin' is not supported");
  folder.index({{"_class_name", "StableDiffusionPipeline"}, {"refiner", {"diffusers", "UNet2DConditionModel"}}});
  EXPECT_PRED2(contains, load({}), "refiner is [...], and no key of this name is known");
}

}  // namespace
